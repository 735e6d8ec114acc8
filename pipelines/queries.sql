-- Every statement that Store runs, by name. {chunk} is an index's chunk table, {vectors} all stored vectors by
-- embed_hash, {vector} the column type; %(name)s are parameters.

-- name: server_version
select extversion from pg_extension where extname = 'vector';

-- name: try_lock
select pg_try_advisory_lock(hashtextextended('raydex collection ' || %(collection)s, 0)) as locked;

-- name: schema_lock
select pg_advisory_xact_lock(hashtextextended('raydex schema', 0));

------------------------------------------------------------------------------------------------ runs

-- name: save_collection
insert into collection (name, settings) values (%(collection)s, %(settings)s)
on conflict (name) do update set settings = excluded.settings where collection.settings <> excluded.settings;

-- name: abandon_runs
update run set state = 'abandoned', ended = now(), error = 'ended without a word: its process or its database session died'
where collection = %(collection)s and state = 'running';

-- name: insert_run
insert into run (collection, kind) values (%(collection)s, %(kind)s) returning id;

-- name: own_run
select state from run where id = %(run)s for update;

-- name: finish_run
update run set state = %(state)s, counts = %(counts)s, error = %(error)s, ended = now() where id = %(run)s;

-- name: save_crawl
insert into crawl (run, host, complete, stopped_by, counts)
values (%(run)s, %(host)s, %(complete)s, %(stopped_by)s, %(counts)s)
on conflict (run, host) do update
set complete = excluded.complete, stopped_by = excluded.stopped_by, counts = excluded.counts;

-- name: crawls
select host, complete, stopped_by, counts from crawl where run = %(run)s order by host;

------------------------------------------------------------------------------------------------ pages

-- name: save_page
insert into page as p (collection, url, state, http_status, etag, content_hash, body, content_type, charset, links,
    canonical, error, attempts, fetched_at, run, first_run, changed_run)
values (%(collection)s, %(url)s, %(state)s, %(http_status)s, %(etag)s, %(content_hash)s, %(body)s, %(content_type)s,
    %(charset)s, %(links)s, %(canonical)s, %(error)s, case when %(state)s = 'failed' then 1 else 0 end, now(), %(run)s, %(run)s,
    case when %(content_hash)s::text is not null then %(run)s::bigint end)
on conflict (collection, url) do update set
    -- A body that could not be read, and has not changed, is still a failure.
    state = case when {still_unreadable} then p.state else excluded.state end,
    http_status = excluded.http_status,
    error = case when {still_unreadable} then p.error else excluded.error end,
    attempts = case when {still_unreadable} then p.attempts when excluded.state = 'failed' then p.attempts + 1 else 0 end,
    fetched_at = now(),
    run = excluded.run,
    etag = case when excluded.body is null then p.etag else excluded.etag end,
    content_hash = coalesce(excluded.content_hash, p.content_hash),
    body = case when excluded.content_hash = p.content_hash then p.body else coalesce(excluded.body, p.body) end,
    content_type = case when excluded.body is null then p.content_type else excluded.content_type end,
    charset = case when excluded.body is null then p.charset else excluded.charset end,
    links = case when excluded.body is null and cardinality(excluded.links) = 0 then p.links else excluded.links end,
    canonical = case when excluded.body is null then p.canonical else excluded.canonical end,
    changed_run = case when excluded.content_hash <> p.content_hash or p.content_hash is null
                       then coalesce(excluded.changed_run, p.changed_run) else p.changed_run end;

-- name: still_unreadable
(excluded.state = 'ok' and p.state = 'failed' and p.unreadable = coalesce(excluded.content_hash, p.content_hash))

-- name: known_page
select url, state, case when body is not null then etag end as etag, content_hash, links
from page where collection = %(collection)s and url = %(url)s;

-- name: content_hashes
select url, content_hash from page where collection = %(collection)s and url = any(%(urls)s) and body is not null;

-- name: known_urls
select url from page
where collection = %(collection)s and state in ('ok', 'failed', 'duplicate') and url > %(after)s order by url limit 1000;

-- name: failed_urls
select url from page
where collection = %(collection)s and state = 'failed' and url > %(after)s order by url limit 1000;

-- name: fail_page
update page set state = 'failed', error = %(error)s, attempts = attempts + 1, unreadable = content_hash
where collection = %(collection)s and url = %(url)s;

-- name: forgive_pages
update page set state = 'ok', error = null, attempts = 0, unreadable = null
where collection = (select collection from run where id = %(run)s) and url = any(%(urls)s) and unreadable is not null;

-- name: mark_unseen
update page set state = 'gone', error = %(error)s
where collection = %(collection)s and run <> %(run)s and state in ('ok', 'failed', 'duplicate')
  and starts_with(url, %(prefix)s);

-- name: mark_duplicates
update page p set state = 'duplicate', error = 'same page as ' || p.canonical
from page target
where p.collection = %(collection)s and p.state = 'ok' and target.collection = p.collection
  and target.url = p.canonical and target.url <> p.url and target.state = 'ok'
  and (target.canonical is distinct from p.url or p.url > target.url);

-- name: unmark_duplicates
update page p set state = 'ok', error = null
where p.collection = %(collection)s and p.state = 'duplicate' and not exists (
    select from page target
    where target.collection = p.collection and target.url = p.canonical and target.state in ('ok', 'failed', 'duplicate'));

-- name: drop_staged_duplicates
with dropped as (
    delete from staged_page s using page p
    where s.run = %(run)s and p.collection = %(collection)s and p.url = s.url and p.state = 'duplicate' returning s.url)
delete from staged_chunk s using dropped where s.run = %(run)s and s.url = dropped.url;

-- name: ranges_to_index
select min(url) as first, max(url) as last, count(*) as pages from (
    select p.url, (row_number() over (order by p.url) - 1) / %(size)s as part
    from page p left join indexed_page i on i.index = %(index)s and i.url = p.url
    where p.collection = %(collection)s and p.body is not null and p.state in ('ok', 'failed')
      and i.input_hash is distinct from p.content_hash || %(rules)s
      and (p.unreadable is distinct from p.content_hash or p.attempts < %(attempts)s)
      and not exists (select from staged_page s where s.run = %(run)s and s.url = p.url)) todo
group by part order by part;

-- name: urls_in_range
select url from page
where collection = %(collection)s and url between %(first)s and %(last)s and body is not null and state in ('ok', 'failed')
order by url;

-- name: pages_to_index
select p.url, p.body, p.content_type, p.charset, p.content_hash || %(rules)s as input_hash
from page p left join indexed_page i on i.index = %(index)s and i.url = p.url
where p.collection = %(collection)s and p.url = any(%(urls)s) and p.body is not null and p.state in ('ok', 'failed')
  and i.input_hash is distinct from p.content_hash || %(rules)s
  and (p.unreadable is distinct from p.content_hash or p.attempts < %(attempts)s)
  and not exists (
    select from page target
    where target.collection = p.collection and target.url = p.canonical and target.url <> p.url and target.state = 'ok'
      and (target.canonical is distinct from p.url or p.url > target.url)
      and target.first_run < %(run)s)
order by p.url;

-- name: page_counts
select
    count(*) filter (where state in ('ok', 'failed', 'duplicate')) as seen,
    count(*) filter (where state = 'ok' and first_run = %(run)s) as new,
    count(*) filter (where state = 'ok' and first_run <> %(run)s and changed_run = %(run)s) as changed,
    count(*) filter (where state = 'ok' and first_run <> %(run)s and changed_run is distinct from %(run)s) as unchanged,
    count(*) filter (where state = 'failed') as failed,
    count(*) filter (where state = 'duplicate') as duplicate,
    count(*) filter (where state = 'skipped') as skipped
from page where collection = %(collection)s and run = %(run)s;

-- name: page_states
select state, count(*) as pages from page where collection = %(collection)s group by state order by state;

-- name: page_failures
select url, http_status, error, attempts from page
where collection = %(collection)s and state = 'failed' order by url limit %(most)s;

------------------------------------------------------------------------------------------------ staging

-- name: stage_page
insert into staged_page (run, url, input_hash, title, language, tags, version, sections, chunks)
values (%(run)s, %(url)s, %(input_hash)s, %(title)s, %(language)s, %(tags)s, %(version)s, %(sections)s, %(chunks)s)
on conflict (run, url) do nothing;

-- name: incoming_chunks
create temp table incoming_chunk (like staged_chunk) on commit drop;

-- name: copy_chunks
copy incoming_chunk (run, id, url, anchor, anchors, title, headings, ordinal, text, text_hash, embed_hash, tokens, tags,
    version, language) from stdin (format binary);

-- name: stage_chunks
insert into staged_chunk select * from incoming_chunk on conflict (run, id) do nothing;

-- name: unknown_hashes
select wanted.embed_hash from unnest(%(hashes)s::text[]) as wanted (embed_hash)
where not exists (select from {vectors} known where known.embed_hash = wanted.embed_hash);

-- name: claim_hashes
insert into embedding_claim as c (run, embed_hash, url)
select %(run)s, embed_hash, url from unnest(%(hashes)s::text[], %(urls)s::text[]) as asked (embed_hash, url) order by embed_hash
on conflict (run, embed_hash) do update set url = c.url where c.url = excluded.url
returning embed_hash;

-- name: incoming_vectors
create temp table incoming_vector (like staged_vector) on commit drop;

-- name: copy_vectors
copy incoming_vector (embed_hash, run, embedding) from stdin (format binary);

-- name: stage_vectors
insert into staged_vector select * from incoming_vector on conflict (embed_hash) do nothing;

-- name: staged_counts
select (select count(*) from staged_page where run = %(run)s) as pages,
       (select coalesce(sum(sections), 0) from staged_page where run = %(run)s)::bigint as sections,
       (select count(*) from staged_chunk where run = %(run)s) as chunks,
       (select count(*) from staged_vector where run = %(run)s) as embedded;

-- name: staged_changes
select count(*) filter (where s.id is null or c.id is null or c.embed_hash <> s.embed_hash) as chunks
from (select id, embed_hash from staged_chunk where run = %(run)s) s
full join (select c.id, c.embed_hash from {chunk} c join staged_page p on p.run = %(run)s and p.url = c.url) c using (id);

-- name: vectors_missing
select count(*) as chunks from staged_chunk s
where s.run = %(run)s and not exists (select from {vectors} v where v.embed_hash = s.embed_hash);

-- name: clear_staged_chunks
delete from staged_chunk where run in (select id from run where collection = %(collection)s and id <= %(run)s);

-- name: clear_staged_pages
delete from staged_page where run in (select id from run where collection = %(collection)s and id <= %(run)s);

-- name: clear_claims
delete from embedding_claim where run in (select id from run where collection = %(collection)s and id <= %(run)s);

-- name: clear_staged_vectors
delete from staged_vector v where run in (select id from run where collection = %(collection)s and id <= %(run)s)
  and not exists (select from staged_chunk s where s.embed_hash = v.embed_hash);

------------------------------------------------------------------------------------------------ indexes

-- name: live_index
select id, collection, settings, state, revision, fingerprint from index where collection = %(collection)s and state = 'live';

-- name: get_index
select id, collection, settings, state, revision, fingerprint from index where id = %(index)s;

-- name: candidate_index
select id, collection, settings, state, revision, fingerprint from index
where collection = %(collection)s and state = 'candidate' order by id desc limit 1;

-- name: previous_index
select id, collection, settings, state, revision, fingerprint from index
where collection = %(collection)s and state = 'retired' order by published_at desc, id desc limit 1;

-- name: indexes
select id, collection, settings, state, revision, fingerprint, stats, published_at from index
where collection = %(collection)s order by id;

-- name: index_tables
select id from index where state in ('candidate', 'live', 'retired') order by id;

-- name: prunable_indexes
select id from index where collection = %(collection)s and state in ('retired', 'failed')
order by published_at desc nulls last, id desc offset %(keep)s;

-- name: superseded_candidates
select id from index where collection = %(collection)s and state = 'candidate';

-- name: insert_index
insert into index (collection, fingerprint, settings, state)
values (%(collection)s, %(fingerprint)s, %(settings)s, 'candidate') returning id;

-- name: create_chunks
create table {chunk} (
    id text not null,
    url text not null,
    anchor text not null,
    anchors text[] not null,
    title text not null,
    headings text[] not null,
    ordinal integer not null,
    text text not null,
    text_hash text not null,
    embed_hash text not null,
    tokens integer not null,
    tags text[] not null,
    version text,
    language text not null,
    embedding {vector} not null
);

-- name: carry_chunks
insert into {chunk}
select c.id, c.url, c.anchor, c.anchors, c.title, c.headings, c.ordinal, c.text, c.text_hash, c.embed_hash, c.tokens, c.tags,
    c.version, c.language, c.embedding
from {base} c where not exists (select from replaced r where r.url = c.url);

-- name: carry_pages
insert into indexed_page (index, url, input_hash, sections)
select %(index)s, url, input_hash, sections from indexed_page i
where i.index = %(base)s and not exists (select from replaced r where r.url = i.url);

-- name: fill_chunks
insert into {chunk}
select s.id, s.url, s.anchor, s.anchors, s.title, s.headings, s.ordinal, s.text, s.text_hash, s.embed_hash, s.tokens, s.tags,
    s.version, s.language, v.embedding
from staged_chunk s
cross join lateral (select embedding from {vectors} v where v.embed_hash = s.embed_hash limit 1) v
where s.run = %(run)s;

-- name: index_chunks_id
alter table {chunk} add primary key (id);

-- name: index_chunks_url
create index on {chunk} (url);

-- name: index_chunks_embed_hash
create index on {chunk} (embed_hash);

-- name: index_chunks_vector
create index on {chunk} using hnsw (embedding {ops}) with (m = 16, ef_construction = 64);

-- name: analyze_chunks
analyze {chunk};

-- name: drop_chunks
drop table if exists {chunk};

-- name: delete_index
delete from index where id = %(index)s;

-- name: replaced_pages
create temp table replaced on commit drop as
select url from staged_page where run = %(run)s
union
select i.url from indexed_page i join page p on p.collection = %(collection)s and p.url = i.url
where %(delete)s and i.index = %(index)s and p.state in ('gone', 'skipped', 'redirect', 'duplicate');

-- name: deletable_pages
select count(*) filter (where p.state in ('gone', 'skipped', 'redirect', 'duplicate')) as deletable, count(*) as pages
from indexed_page i join page p on p.collection = %(collection)s and p.url = i.url where i.index = %(index)s;

-- name: delete_chunks
with gone as (
    delete from {chunk} c using replaced r
    where c.url = r.url and not exists (select from staged_chunk s where s.run = %(run)s and s.id = c.id)
    returning c.id)
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, 'delete' from gone;

-- name: update_chunks
with changed as (
    update {chunk} c set
        anchor = s.anchor, anchors = s.anchors, title = s.title, headings = s.headings, ordinal = s.ordinal,
        embed_hash = s.embed_hash, tokens = s.tokens, tags = s.tags, version = s.version, language = s.language,
        embedding = case when c.embed_hash = s.embed_hash then c.embedding
            else (select v.embedding from {vectors} v where v.embed_hash = s.embed_hash limit 1) end
    from staged_chunk s
    where s.run = %(run)s and c.id = s.id and
        (c.anchors, c.title, c.headings, c.ordinal, c.embed_hash, c.tokens, c.tags, c.version, c.language)
        is distinct from
        (s.anchors, s.title, s.headings, s.ordinal, s.embed_hash, s.tokens, s.tags, s.version, s.language)
    returning c.id)
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, 'upsert' from changed;

-- name: insert_chunks
with added as (
    insert into {chunk}
    select s.id, s.url, s.anchor, s.anchors, s.title, s.headings, s.ordinal, s.text, s.text_hash, s.embed_hash, s.tokens, s.tags,
        s.version, s.language, v.embedding
    from staged_chunk s
    cross join lateral (select embedding from {vectors} v where v.embed_hash = s.embed_hash limit 1) v
    where s.run = %(run)s and not exists (select from {chunk} c where c.id = s.id)
    returning id)
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, 'upsert' from added;

-- name: forget_pages
delete from indexed_page i using replaced r
where i.index = %(index)s and i.url = r.url
  and not exists (select from staged_page s where s.run = %(run)s and s.url = i.url);

-- name: remember_pages
insert into indexed_page as i (index, url, input_hash, sections)
select %(index)s, url, input_hash, sections from staged_page where run = %(run)s
on conflict (index, url) do update set input_hash = excluded.input_hash, sections = excluded.sections
where (i.input_hash, i.sections) is distinct from (excluded.input_hash, excluded.sections);

-- name: describe_pages
update page p set title = s.title, language = s.language, tags = s.tags, version = s.version
from staged_page s
where s.run = %(run)s and p.collection = %(collection)s and p.url = s.url
  and (p.title, p.language, p.tags, p.version) is distinct from (s.title, s.language, s.tags, s.version);

-- name: raise_revision
update index set revision = %(revision)s, published_at = now() where id = %(index)s;

-- name: forget_changes
delete from change where index = %(index)s and revision <= %(revision)s;

-- name: retire_live
update index set state = 'retired' where collection = %(collection)s and state = 'live' and id <> %(index)s;

-- name: make_live
update index set state = 'live', revision = revision + 1, published_at = now() where id = %(index)s;

-- name: notify
select pg_notify('raydex', %(collection)s);

-- name: left_behind
select (select count(*) from {base} b where not exists (select from {chunk} c where c.id = b.id)) as chunks,
       (select count(*) from indexed_page b where b.index = %(base)s and not exists (
            select from indexed_page i where i.index = %(index)s and i.url = b.url)) as pages;

-- name: index_counts
select (select count(*) from {chunk}) as chunks,
       (select count(*) from indexed_page where index = %(index)s) as pages,
       (select coalesce(sum(sections), 0) from indexed_page where index = %(index)s)::bigint as sections;

-- name: save_stats
update index set stats = %(stats)s where id = %(index)s;

------------------------------------------------------------------------------------------------ reading

-- name: search_chunks
select id, url, anchors, title, headings, text, text_hash, 1 - (embedding <=> %(vector)s::{vector}) as score
from {chunk} order by embedding <=> %(vector)s::{vector} limit %(k)s;

-- name: get_chunks
select id, url, anchors, title, headings, text, text_hash, 0.0::float8 as score from {chunk} where id = any(%(ids)s);

-- name: scan_chunks
select id, url, anchors, title, headings, text, text_hash, 0.0::float8 as score from {chunk};

-- name: oldest_change
select min(revision) as revision from change where index = %(index)s;

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
