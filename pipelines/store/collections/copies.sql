-- Copies of collections.

-- name: copy_pages
insert into page as p (collection, url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical,
    title, language, tags, version, attempts, unreadable, error, fetched_at, run, first_run, changed_run)
select %(copy)s, url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical,
    title, language, tags, version, attempts, unreadable, error, fetched_at, %(run)s, %(run)s, %(run)s
from page where collection = %(collection)s
on conflict (collection, url) do update set
    (state, content_hash, content_type, charset, canonical, attempts, unreadable, error, run) = (
        excluded.state, excluded.content_hash, excluded.content_type, excluded.charset, excluded.canonical,
        excluded.attempts, excluded.unreadable, excluded.error, excluded.run),
    body = case when p.content_hash = excluded.content_hash then p.body else excluded.body end,
    file_stamp = null;

-- name: copies
select name from collection where starts_with(name, %(collection)s || %(mark)s) order by name;
