-- Indexes: building, publishing, pruning.

-- name: live_index
select i.id, i.collection, i.settings, i.state, i.revision, i.fingerprint, {rules} as rules
from index i join collection c on c.name = i.collection where i.collection = %(collection)s and i.state = 'live';

-- name: get_index
select id, collection, settings, state, revision, fingerprint from index where id = %(index)s;

-- name: candidate_index
select i.id, i.collection, i.settings, i.state, i.revision, i.fingerprint, {rules} as rules
from index i join collection c on c.name = i.collection
where i.collection = %(collection)s and i.state = 'candidate' order by i.id desc limit 1;

-- name: retired_indexes
select id, collection, settings, state, revision, fingerprint from index
where collection = %(collection)s and state = 'retired' order by published_at desc, id desc;

-- name: indexes
select id, collection, settings, state, revision, fingerprint, stats, published_at from index
where collection = %(collection)s order by id;

-- name: prunable_indexes
select id from index where collection = %(collection)s and state in ('retired', 'failed')
order by published_at desc nulls last, id desc offset %(keep)s;

-- name: superseded_candidates
select id from index where collection = %(collection)s and state = 'candidate' and id <> %(index)s order by id;

-- name: insert_index
insert into index (collection, fingerprint, settings, state)
values (%(collection)s, %(fingerprint)s, %(settings)s, 'candidate') returning id;

-- name: carry_chunks
insert into {chunk} ({columns}, embedding)
select {columns}, embedding
from {base} c where not exists (select from replaced r where r.url = c.url);

-- name: carry_pages
insert into indexed_page (index, url, input_hash, sections)
select %(index)s, url, input_hash, sections from indexed_page i
where i.index = %(base)s and not exists (select from replaced r where r.url = i.url);

-- name: fill_chunks
insert into {chunk} ({columns}, embedding)
select {columns}, v.embedding
from staged_chunk s
cross join lateral (select embedding from {vectors} v where v.embed_hash = s.embed_hash limit 1) v
where s.run = %(run)s;

-- name: graph_size
select count(*) as chunks, coalesce((select pg_column_size(embedding) from {chunk} limit 1), 0) as vector_bytes,
    pg_size_bytes(current_setting('maintenance_work_mem')) as allowed,
    (select source = 'command line' from pg_settings where name = 'maintenance_work_mem') as strict
from {chunk};

-- name: index_chunks_id
alter table {chunk} add primary key (id);

-- name: index_chunks_url
create index on {chunk} (url);

-- name: index_chunks_filters
create index on {chunk} using gin (tags);
create index on {chunk} (version);
create index on {chunk} (language);
create index on {chunk} (url collate "C");

-- name: index_chunks_embed_hash
create index on {chunk} (embed_hash);

-- name: index_chunks_vector
create index on {chunk} using hnsw (embedding {ops}) with (m = 16, ef_construction = {ef_construction});

-- name: analyze_chunks
analyze {chunk};

-- name: replaced_pages
create temp table replaced on commit drop as {replaced};

-- name: replaced_urls
select url from staged_page where run = %(run)s
union
select i.url from indexed_page i join page p on p.collection = %(collection)s and p.url = i.url
where %(delete)s and i.index = %(index)s and p.state in ('gone', 'skipped', 'redirect', 'duplicate')
  and (%(only)s::text[] is null or i.url = any(%(only)s))

-- name: stages_text
select exists (select from staged_chunk where run = %(run)s) as found;

-- name: keeps_text
select exists (select from {chunk} c where c.url not in ({replaced})) as found;

-- name: staged_text
select coalesce(sum(octet_length(text)), 0)::bigint as size from staged_chunk where run = %(run)s;

-- name: replaced_text
-- Without duplicates, because their text remains in the originals.
select coalesce(sum(octet_length(c.text)), 0)::bigint as size from {chunk} c join ({replaced}) r on r.url = c.url
where c.url not in (select url from page where collection = %(collection)s and state = 'duplicate');

-- name: text_before
-- The text of an index. Text that occurs twice, such as in pages that are copies of others, counts once.
select coalesce(sum(size), 0)::bigint as size from (
    select max(octet_length(c.text)) as size from {chunk} c
    where c.url not in (select url from page where collection = %(collection)s and state = 'duplicate')
    group by c.text_hash) texts;

-- name: text_after
-- The text that remains when a run replaces pages.
select coalesce(sum(size), 0)::bigint as size from (
    select max(octet_length(c.text)) as size from {chunk} c where c.url not in ({replaced}) group by c.text_hash) texts;

-- name: deletable_pages
select count(*) as pages, count(*) filter (where vanished) as deletable
from (
    select p.state in ('gone', 'skipped', 'redirect', 'duplicate')
        and (%(only)s::text[] is null or i.url = any(%(only)s)) as vanished
    from indexed_page i join page p on p.collection = %(collection)s and p.url = i.url where i.index = %(index)s) held;

-- name: vanished_pages
-- Where the text of vanished pages went. It is lost unless most of it is on a page that the run has staged, or on a
-- page of the index `base` that stays.
with vanished as materialized (
    select i.url, p.state from indexed_page i join page p on p.collection = %(collection)s and p.url = i.url
    where i.index = %(index)s and p.state in ('gone', 'skipped', 'redirect', 'duplicate')
      and (%(only)s::text[] is null or i.url = any(%(only)s))),
texts as materialized (
    select c.url, c.text_hash, length(c.text) as size from {chunk} c where c.url in (select url from vanished)),
held as materialized (
    select text_hash from staged_chunk where run = %(run)s and text_hash in (select text_hash from texts)
    union
    select b.text_hash from {base} b
    where %(base)s::bigint is not null and b.text_hash in (select text_hash from texts)
      and b.url not in (select url from vanished) and b.url not in (select url from staged_page where run = %(run)s)),
sizes as (
    select t.url, sum(t.size) as size, coalesce(sum(t.size) filter (where h.text_hash is not null), 0) as held
    from texts t left join held h on h.text_hash = t.text_hash group by t.url)
select v.url, case when v.state = 'duplicate' then 'copied' when s.size is null then 'empty'
    when 2 * s.held >= s.size then 'moved' else 'lost' end as fate
from vanished v left join sizes s on s.url = v.url order by v.url;

-- name: delete_chunks
-- "not in" builds a hash table of the staged rows. For "not exists", Postgres would scan all of them for each chunk: it
-- expects one row, because there are no statistics for a new run.
with gone as (
    delete from {chunk} c using replaced r
    where c.url = r.url and c.id not in (select s.id from staged_chunk s where s.run = %(run)s)
    returning c.*),
kept as (
    insert into replaced_chunk (index, revision, chunk_id, op, old, embedding)
    select %(index)s, %(revision)s, id, 'removed', to_jsonb(gone) - 'embedding', embedding::vector from gone)
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, 'delete' from gone;

-- name: update_chunks
with before as materialized (
    select c.* from {chunk} c join staged_chunk s on s.run = %(run)s and c.id = s.id
    where ({current}) is distinct from ({staged})),
kept as (
    insert into replaced_chunk (index, revision, chunk_id, op, old, embedding)
    select %(index)s, %(revision)s, id, 'changed', to_jsonb(before) - 'embedding', embedding::vector from before),
changed as (
    update {chunk} c set
        ({variable}) = row({staged}),
        embedding = case when c.embed_hash = s.embed_hash then c.embedding
            else (select v.embedding from {vectors} v where v.embed_hash = s.embed_hash limit 1) end
    from staged_chunk s
    where s.run = %(run)s and c.id = s.id and c.id in (select id from before)
    returning c.id)
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, 'upsert' from changed;

-- name: insert_chunks
with added as (
    insert into {chunk} ({columns}, embedding)
    select {columns}, v.embedding
    from staged_chunk s
    cross join lateral (select embedding from {vectors} v where v.embed_hash = s.embed_hash limit 1) v
    where s.run = %(run)s and not exists (select from {chunk} c where c.id = s.id)
    returning id),
kept as (
    insert into replaced_chunk (index, revision, chunk_id, op)
    select %(index)s, %(revision)s, id, 'added' from added)
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, 'upsert' from added;

-- name: forget_pages
delete from indexed_page i using replaced r
where i.index = %(index)s and i.url = r.url
  and i.url not in (select s.url from staged_page s where s.run = %(run)s);  -- as for delete_chunks

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
       (select count(*) from indexed_page where index = %(index)s and sections = 0) as listings,
       (select coalesce(sum(sections), 0) from indexed_page where index = %(index)s)::bigint as sections;

-- name: save_stats
update index set stats = %(stats)s where id = %(index)s;
