-- Collections: their list, their state, the default.

-- name: collections
select c.name, c.is_default, i.id as index, i.revision, coalesce(i.stats, jsonb_build_object()) as stats, i.settings, i.published_at
from collection c left join index i on i.collection = c.name and i.state = 'live' order by c.name;

-- name: last_runs
-- A running run has the lock of its collection (runs.sql): `alive` is false for a run that died.
select id, kind, state, counts, steps, error, started, ended, state = 'running' and exists (
    select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = hashtextextended('raydex collection ' || collection, 0)) as alive
from run where collection = %(collection)s order by id desc limit %(most)s;

-- name: last_run_with
select max(started) as started from run
where collection = %(collection)s and steps @> %(steps)s and started > now() - make_interval(secs => %(seconds)s);

-- name: page_states
select state, count(*) as pages from page where collection = %(collection)s group by state order by state;

-- name: page_failures
select url, http_status, error, attempts from page
where collection = %(collection)s and state = 'failed' and run >= %(since)s order by url limit %(most)s;

-- name: freshness
-- A page that was never read counts as failing since the run that found it; that run may be deleted.
select (select min(p.checked_at) from index x join indexed_page i on i.index = x.id
        join page p on p.collection = x.collection and p.url = i.url
        where x.collection = %(collection)s and x.state = 'live') as oldest_check,
    (select max(ended) from run where collection = %(collection)s and state = 'done' and kind in ('reindex', 'nightly')
        and counts -> 'night' ->> 'verdict' is distinct from 'refused') as last_run,
    (select count(*) from page p left join run r on r.id = p.first_run where p.collection = %(collection)s and p.state = 'failed'
        and coalesce(p.checked_at, r.started, '-infinity') < now() - make_interval(secs => %(failing_s)s)) as failing;

-- name: collection_settings
select settings from collection where name = %(collection)s;

-- name: indexes_of
select id from index where collection = any(%(names)s) order by id;

-- name: clear_default
update collection set is_default = false where is_default;

-- name: set_default
update collection set is_default = true where name = %(collection)s;

-- name: read_or_succeeded
select where exists (
        select from page where collection = %(collection)s and run = %(run)s
          and (state in ('ok', 'duplicate') or changed_run = %(run)s))
    or exists (select from run where collection = %(collection)s and id > %(run)s);

-- name: forget_unread_pages
delete from page where collection = %(collection)s and first_run = %(run)s and body is null;

-- name: restore_settings
update collection set settings = %(settings)s where name = %(collection)s;

-- name: delete_empty_collection
delete from collection c where name = %(collection)s
  and not exists (select from page p where p.collection = c.name and p.body is not null)
  and not exists (select from index i where i.collection = c.name);

-- name: collection_contents
select (select count(*) from page where collection = any(%(names)s)) as pages,
       (select count(*) from index where collection = any(%(names)s)) as indexes,
       (select coalesce(sum((stats ->> 'chunks')::bigint), 0) from index where collection = any(%(names)s))::bigint as chunks,
       (select count(*) from run where collection = any(%(names)s)) as runs,
       (select count(*) from verified_answer where collection = any(%(names)s)) as verified_answers,
       (select count(*) from question where {asked}) as questions,
       (select count(*) from feedback where question_id in (select id from question where {asked})) as feedback,
       (select count(*) from evaluation where collection = any(%(names)s)) as evaluations;

-- name: asked_of_collections
-- A question that named no collection belongs to the collection of the index that answered it.
(collection = any(%(names)s) or index in (select i.id from index i where i.collection = any(%(names)s)))

-- name: delete_collections
with gone as (delete from collection where name = any(%(names)s) returning name)
select id from run where collection in (select name from gone);

-- name: delete_vectors_of_runs
delete from staged_vector v where run = any(%(runs)s)
  and not exists (select from staged_chunk s where s.embed_hash = v.embed_hash);

-- name: delete_feedback
delete from feedback where question_id in (select id from question where {asked});

-- name: delete_questions
delete from question where {asked};

-- name: delete_evaluations
delete from evaluation where collection = any(%(names)s);

-- name: copy_pages
insert into page as p (collection, url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical,
    title, language, tags, version, attempts, unreadable, error, fetched_at, checked_at, changed_at, run, first_run,
    changed_run)
select %(copy)s, url, state, http_status, etag, content_hash, body, content_type, charset, links, canonical,
    title, language, tags, version, attempts, unreadable, error, fetched_at, checked_at, changed_at, %(run)s, %(run)s,
    %(run)s
from page where collection = %(collection)s
on conflict (collection, url) do update set
    (state, content_hash, content_type, charset, canonical, attempts, unreadable, error, run) = (
        excluded.state, excluded.content_hash, excluded.content_type, excluded.charset, excluded.canonical,
        excluded.attempts, excluded.unreadable, excluded.error, excluded.run),
    body = case when p.content_hash = excluded.content_hash then p.body else excluded.body end,
    file_stamp = null;

-- name: copies
select name from collection where starts_with(name, %(collection)s || %(mark)s) order by name;
