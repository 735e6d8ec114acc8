-- Dumps and restores: an index and its pages as COPY streams.

-- name: dump_pages
copy (select url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical, title, language,
        tags, version, attempts, unreadable, error, fetched_at
      from page where collection = {collection}) to stdout (format binary);

-- name: dump_indexed_pages
copy (select url, input_hash, sections from indexed_page where index = {index}) to stdout (format binary);

-- name: dump_chunks
copy (select {columns}, embedding from {chunk}) to stdout (format binary);

-- name: incoming_pages
create temp table incoming_page on commit drop as
select url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical, title, language,
    tags, version, attempts, unreadable, error, fetched_at
from page limit 0;

-- name: restore_pages
copy incoming_page from stdin (format binary);

-- name: incoming_bodies
select url, body from incoming_page where body is not null;

-- name: adopt_pages
insert into page (collection, url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical,
    title, language, tags, version, attempts, unreadable, error, fetched_at, run, first_run)
select %(collection)s, i.*, %(run)s, %(run)s from incoming_page i
on conflict (collection, url) do update set
    state = excluded.state, http_status = excluded.http_status, etag = excluded.etag,
    content_hash = excluded.content_hash, body = excluded.body, content_type = excluded.content_type,
    charset = excluded.charset, links = excluded.links, canonical = excluded.canonical, title = excluded.title,
    language = excluded.language, tags = excluded.tags, version = excluded.version, attempts = excluded.attempts,
    unreadable = excluded.unreadable, error = excluded.error, fetched_at = excluded.fetched_at, run = excluded.run,
    checked_at = null, changed_at = null, changed_run = null, file_stamp = null;

-- name: incoming_indexed_pages
create temp table incoming_indexed_page on commit drop as
select url, input_hash, sections from indexed_page limit 0;

-- name: restore_indexed_pages
copy incoming_indexed_page from stdin (format binary);

-- name: adopt_indexed_pages
insert into indexed_page (index, url, input_hash, sections) select %(index)s, i.* from incoming_indexed_page i;

-- name: restore_chunks
copy {chunk} ({names}, embedding) from stdin (format binary);
