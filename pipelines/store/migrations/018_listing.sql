-- The URLs that the site of a folder listed when it last answered: a run to which it does not answer names pages by them.
create table listing (
    collection text not null references collection (name) on delete cascade,
    base_url text not null,
    urls text[] not null,
    primary key (collection, base_url)
);
