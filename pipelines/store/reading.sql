-- Reading: search, BM25's view of an index, status.

-- name: search_chunks
select id, url, anchors, title, headings, text, text_hash, 1 - (embedding <=> %(vector)s::{vector}) as score
from {chunk} order by embedding <=> %(vector)s::{vector} limit %(k)s;

-- name: get_chunks
select id, url, anchors, title, headings, text, text_hash, 0.0::float8 as score from {chunk} where id = any(%(ids)s);

-- name: scan_chunks
select id, url, anchors, title, headings, text, text_hash, 0.0::float8 as score from {chunk};

-- name: changes_since
select distinct on (chunk_id) chunk_id, op from change
where index = %(index)s and revision > %(revision)s order by chunk_id, revision desc;

-- name: collections
select c.name, i.id as index, i.revision, coalesce(i.stats, jsonb_build_object()) as stats, i.settings, i.published_at
from collection c left join index i on i.collection = c.name and i.state = 'live' order by c.name;

-- name: last_runs
select id, kind, state, counts, error, started, ended from run
where collection = %(collection)s order by id desc limit %(most)s;

-- name: running_run
select id, kind, started from run where collection = %(collection)s and state = 'running' order by id desc limit 1;
