-- Runs and the lock on a collection.

-- name: try_lock
select pg_try_advisory_lock(hashtextextended('raydex collection ' || %(collection)s, 0)) as locked;

-- name: try_lock_in_transaction
select pg_try_advisory_xact_lock(hashtextextended('raydex collection ' || %(collection)s, 0)) as locked;

-- name: no_time_limits
-- Not `set`: servers before Postgres 17 have no `transaction_timeout`.
select set_config(name, '0', %(local)s) from pg_settings
where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout');

-- name: unlock
select pg_advisory_unlock(hashtextextended('raydex collection ' || %(collection)s, 0));

-- name: save_collection
insert into collection (name, settings) values (%(collection)s, %(settings)s)
on conflict (name) do update set settings = excluded.settings where collection.settings <> excluded.settings;

-- name: add_collection
insert into collection (name) values (%(collection)s) on conflict (name) do nothing;

-- name: abandon_runs
update run set state = 'abandoned', ended = now(), error = 'its process or its database session died'
where collection = %(collection)s and state = 'running';

-- name: insert_run
insert into run (collection, kind) values (%(collection)s, %(kind)s) returning id;

-- name: own_run
select state from run where id = %(run)s for update;

-- name: step_result
select steps -> %(step)s as result from run where id = %(run)s;

-- name: record_step
update run set steps = steps || jsonb_build_object(%(step)s::text, %(result)s::jsonb) where id = %(run)s;

-- name: unfinished_steps
-- The steps of the last run before this one, unless it ended normally or is of another kind.
select steps from run
where id = (select max(id) from run where collection = %(collection)s and id < %(run)s)
  and kind = %(kind)s and state in ('failed', 'interrupted', 'abandoned')
  and started > now() - make_interval(secs => %(seconds)s);

-- name: find_run
-- Like `last_runs`, this shows whether a run is alive.
select id, collection, kind, state, started, ended, error, state = 'running' and exists (
    select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = hashtextextended('raydex collection ' || collection, 0)) as alive
from run where id = %(run)s;

-- name: run_began
select started from run where id = %(run)s;

-- name: running_run
select id, kind, started from run where collection = %(collection)s and state = 'running' order by id desc limit 1;

-- name: finish_run
update run set state = %(state)s, counts = %(counts)s, error = %(error)s, ended = now() where id = %(run)s;

-- name: save_crawl
insert into crawl (run, host, complete, stopped_by, counts)
values (%(run)s, %(host)s, %(complete)s, %(stopped_by)s, %(counts)s)
on conflict (run, host) do update
set complete = excluded.complete, stopped_by = excluded.stopped_by, counts = excluded.counts;

-- name: crawls
select host, complete, stopped_by, counts from crawl where run = %(run)s order by host;
