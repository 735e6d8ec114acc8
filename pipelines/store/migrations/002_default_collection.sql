-- The collection that answers questions which name none.
alter table collection add column is_default boolean not null default false;
create unique index collection_one_default on collection (is_default) where is_default;
