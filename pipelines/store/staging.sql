-- Staging: pages, chunks and vectors of a run that are not published yet. Many tasks write here at once. Each takes its
-- locks in the key's code point order, which is how Python sorts strings, so they can't deadlock.

-- name: stage_page
insert into staged_page (run, url, input_hash, title, language, tags, version, sections, chunks)
values (%(run)s, %(url)s, %(input_hash)s, %(title)s, %(language)s, %(tags)s, %(version)s, %(sections)s, %(chunks)s)
on conflict (run, url) do nothing;

-- name: drop_outdated_pages
with locked as materialized (
    select s.url from staged_page s join unnest(%(urls)s::text[], %(hashes)s::text[]) as now (url, input_hash) using (url)
    where s.run = %(run)s and s.input_hash <> now.input_hash order by s.url collate "C" for update of s),
outdated as (delete from staged_page s using locked where s.run = %(run)s and s.url = locked.url returning s.url)
delete from staged_chunk s using outdated where s.run = %(run)s and s.url = outdated.url;

-- name: incoming_chunks
create temp table if not exists incoming_chunk (like staged_chunk) on commit {ending};

-- name: copy_chunks
copy incoming_chunk (run, {columns}) from stdin (format binary);

-- name: stage_chunks
insert into staged_chunk (run, {columns}) select run, {columns} from incoming_chunk order by id collate "C"
on conflict (run, id) do nothing;

-- name: unknown_hashes
select wanted.embed_hash from unnest(%(hashes)s::text[]) as wanted (embed_hash)
where not exists (select from {vectors} known where known.embed_hash = wanted.embed_hash);

-- name: claim_hashes
insert into embedding_claim as c (run, embed_hash, url)
select %(run)s, embed_hash, url from unnest(%(hashes)s::text[], %(urls)s::text[]) as asked (embed_hash, url)
order by embed_hash collate "C"
on conflict (run, embed_hash) do update set url = c.url where c.url = excluded.url
returning embed_hash;

-- name: incoming_vectors
create temp table if not exists incoming_vector (like staged_vector) on commit {ending};

-- name: copy_vectors
copy incoming_vector (embed_hash, run, embedding) from stdin (format binary);

-- name: stage_vectors
insert into staged_vector select * from incoming_vector order by embed_hash collate "C"
on conflict (embed_hash) do nothing;

-- name: staged_counts
select (select count(*) from staged_page where run = %(run)s) as pages,
       (select coalesce(sum(sections), 0) from staged_page where run = %(run)s)::bigint as sections,
       (select count(*) from staged_chunk where run = %(run)s) as chunks,
       (select count(*) from staged_vector where run = %(run)s) as embedded;

-- name: staging_progress
with read as materialized (
    select s.url, octet_length(p.body) as bytes
    from staged_page s join page p on p.collection = %(collection)s and p.url = s.url
    where s.run = %(run)s and right(s.input_hash, length(%(rules)s)) = %(rules)s)
select (select count(*) from read) as pages,
    (select coalesce(sum(bytes), 0) from read)::bigint as bytes,
    (select count(*) from staged_vector v where v.run = %(run)s) as embedded,
    count(*) as chunks,
    coalesce(sum(c.tokens) filter (where k.url = c.url), 0)::bigint as tokens,
    coalesce(sum(c.tokens) filter (where k.url = c.url and v.embed_hash is not null), 0)::bigint as embedded_tokens
from staged_chunk c
join read using (url)
left join embedding_claim k on k.run = c.run and k.embed_hash = c.embed_hash
left join staged_vector v on v.embed_hash = c.embed_hash
where c.run = %(run)s;

-- name: reused_chunks
-- A page that is later left out as a duplicate leaves its vectors behind: they only count as embedded.
select count(*) - count(distinct v.embed_hash) as chunks
from staged_chunk s left join staged_vector v on v.embed_hash = s.embed_hash and v.run = s.run
where s.run = %(run)s;

-- name: staged_changes
select greatest(
    count(*) filter (where s.id is not null and c.embed_hash is distinct from s.embed_hash),
    count(*) filter (where s.id is null)) as chunks
from (select id, embed_hash from staged_chunk where run = %(run)s) s
full join (select c.id, c.embed_hash from {chunk} c join staged_page p on p.run = %(run)s and p.url = c.url) c using (id);

-- name: vectors_missing
select count(*) as chunks from staged_chunk s
where s.run = %(run)s and not exists (select from {vectors} v where v.embed_hash = s.embed_hash);

-- name: clear_staged_chunks
delete from staged_chunk where run in (select id from run where collection = %(collection)s and id between %(first)s and %(run)s);

-- name: clear_staged_pages
delete from staged_page where run in (select id from run where collection = %(collection)s and id between %(first)s and %(run)s);

-- name: clear_claims
delete from embedding_claim where run in (select id from run where collection = %(collection)s and id between %(first)s and %(run)s);

-- name: clear_staged_vectors
delete from staged_vector v where run in (select id from run where collection = %(collection)s and id between %(first)s and %(run)s)
  and not exists (select from staged_chunk s where s.embed_hash = v.embed_hash);
