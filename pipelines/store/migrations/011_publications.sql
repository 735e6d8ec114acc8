-- What each publish into an index replaced, so that it can be undone: rows without a graph. A row of `publication` for each
-- revision; its replaced rows go with it. Revisions of before this migration have none.
create table publication (
    index bigint not null references index on delete cascade,
    revision bigint not null,
    published_at timestamptz not null default now(),
    run bigint not null,
    returned_to bigint,  -- the revision that a rollback made again
    pages_added bigint not null default 0,
    pages_changed bigint not null default 0,
    pages_removed bigint not null default 0,
    chunks_added bigint not null default 0,
    chunks_changed bigint not null default 0,
    chunks_removed bigint not null default 0,
    primary key (index, revision)
);

-- `old` is the row as it was, without its embedding; null for a chunk that was added.
create table replaced_chunk (
    index bigint not null,
    revision bigint not null,
    chunk_id text not null,
    op text not null check (op in ('added', 'changed', 'removed')),
    old jsonb,
    embedding vector,
    primary key (index, revision, chunk_id),
    foreign key (index, revision) references publication on delete cascade
);

-- The row of indexed_page as it was, and what the page's row said of it; null for a page that was added.
create table replaced_page (
    index bigint not null,
    revision bigint not null,
    url text not null,
    op text not null check (op in ('added', 'changed', 'removed')),
    input_hash text,
    sections integer,
    title text,
    language text,
    tags text[],
    version text,
    primary key (index, revision, url),
    foreign key (index, revision) references publication on delete cascade
);
