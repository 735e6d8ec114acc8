-- Searches, and BM25's view of an index.

-- {hit} are the columns of a hit, {kept} the conditions of the filters. {k} is written into the statement: a plan for
-- any number of rows would not use the graph.

-- name: answering_rules
-- The settings of a collection c that affect its answers.
jsonb_strip_nulls(jsonb_build_object(
    'boosts', c.settings -> 'boosts', 'synonyms', c.settings -> 'synonyms', 'pinned', c.settings -> 'pinned'))

-- name: begin_search
-- Sets up the transaction of a search: the limit of its next statements' time, and a graph search that is wide enough
-- for k. Returns which indexes are live.
with prepared as materialized (
    select set_config('statement_timeout', %(timeout_ms)s, true), set_config('jit', 'off', true),
        set_config('hnsw.iterative_scan', 'relaxed_order', true),
        set_config('hnsw.ef_search', least(%(most)s, greatest(%(k)s,
            case when reltuples > %(huge)s then %(huge_ef)s else %(ef)s end))::text, true)
    from pg_class where oid = to_regclass(%(table)s))
select c.name, c.is_default, live.id as index, live.revision, searched.revision as searched, {rules} as rules
from prepared
cross join collection c
left join index live on live.collection = c.name and live.state = 'live'
left join index searched on searched.collection = c.name and searched.id = %(index)s
where c.name = coalesce(%(collection)s, c.name) order by c.name;

-- name: kept_by_tags
c.tags && %(tags)s::text[]

-- name: kept_by_version
c.version = %(version)s

-- name: kept_by_language
c.language = %(language)s

-- name: kept_by_url_prefix
starts_with(c.url collate "C", %(url_prefix)s)

-- name: open_session
-- Session settings are changed only in a direct session: behind a pooler, the next transaction may be another client's.
select current_setting('server_encoding') as encoding, pg_backend_pid() = %(pid)s as direct,
    case when pg_backend_pid() = %(pid)s then set_config('jit', 'off', false) end as jit;

-- name: keeps_few
with bound as (
    select greatest(least(reltuples * %(share)s, %(most)s), %(least)s)::bigint as chunks from pg_class
    where oid = %(table)s::regclass)
select (select count(*) from (select from {chunk} c where {kept} limit (select chunks + 1 from bound)) as found)
    <= (select chunks from bound) as few;

-- name: search_chunks
-- The distance is computed once, in the inner query: each mention of it would read the vector again.
select id, coalesce(nullif(1 - distance, 'NaN'), 0) as score from (
    select c.id, c.embedding <=> %(vector)s::{vector} as distance
    from {chunk} c where {kept} order by c.embedding <=> %(vector)s::{vector} limit {k}) as found;

-- name: measure_chunks
-- A graph search misses a near chunk now and then.
select c.id, coalesce(nullif(1 - (c.embedding <=> %(vector)s::{vector}), 'NaN'), 0) as score
from {chunk} c where c.id = any(string_to_array(%(ids)s, ' ')) and {kept};

-- name: search_exactly
with kept as materialized (
    select c.id, c.embedding <=> %(vector)s::{vector} as distance from {chunk} c where {kept})
select id, coalesce(nullif(1 - distance, 'NaN'), 0) as score from kept order by distance, id limit {k};

-- name: get_chunks
-- The ids are hashes, so one text can hold them: psycopg takes 0.07 ms to encode 50 of them as an array.
select {hit} from {chunk} c where c.id = any(string_to_array(%(ids)s, ' '));

-- name: neighbours
select h.id as of, {hit}
from {chunk} h join {chunk} c
    on c.url = h.url and c.ordinal between h.ordinal - %(reach)s and h.ordinal + 2 * %(reach)s and (
        c.anchor = h.anchor and c.headings = h.headings and c.ordinal <= h.ordinal + %(reach)s + 1
        or c.ordinal > h.ordinal and cardinality(h.headings) between 1 and cardinality(c.headings) - 1
        and c.headings[:cardinality(h.headings)] = h.headings
    )
where h.id = any(%(ids)s) order by h.id, c.ordinal;

-- name: chunks_of_pages
select {hit} from {chunk} c where c.url = any(%(urls)s) order by c.url, c.ordinal;

-- name: scan_chunks
select {hit} from {chunk} c;

-- name: scan_vectors
select c.id, c.embedding::vector as embedding from {chunk} c;

-- name: changes_since
select distinct on (chunk_id) chunk_id, op from change
where index = %(index)s and revision > %(revision)s order by chunk_id, revision desc;
