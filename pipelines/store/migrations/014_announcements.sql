-- Changes of pages that were announced to the service, until runs over these pages have brought them into the index.
create table announcement (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    delivery text,  -- what a repeated delivery is known by; null: nothing
    changed text[] not null,
    deleted text[] not null,
    received timestamptz not null default now(),
    due timestamptz not null default now(),  -- the next attempt
    attempts integer not null default 0,
    run bigint references run on delete set null,  -- the last attempt
    ended timestamptz,
    error text,
    unique (collection, delivery)
);
create index announcement_to_come on announcement (collection, id) where ended is null;

-- What senders sign their announcements with; null: none may.
alter table collection add column announcing_secret text;
