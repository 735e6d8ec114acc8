-- BM25 folders of indexes, so that a new machine reads one instead of building it. Any archive can be deleted.

-- A folder as it was at `revision`: `format` names the versions that can open it, `digest` is a hash of its pieces.
create table lexical_archive (
    index bigint primary key references index on delete cascade,
    revision bigint not null,
    format text not null,
    digest text not null
);

create table lexical_piece (
    index bigint not null references lexical_archive on delete cascade,
    number integer not null,
    file text not null,
    content bytea not null,
    primary key (index, number)
);
alter table lexical_piece alter column content set storage external;  -- tantivy's files are packed already
