-- What repeats on most pages of a collection's sites and is left out of their chunks, and the hash of the sample of pages
-- from which that was learnt.
create table layout (
    collection text primary key references collection (name) on delete cascade,
    sample text not null,
    sites jsonb not null
);
