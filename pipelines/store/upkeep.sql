-- Upkeep: cleans up data that grows and is no longer needed.

-- name: tables_to_vacuum
-- Chunk tables of other collections are vacuumed by their own nights. Nothing writes to this collection's while it is
-- locked.
select relname::text as name from pg_stat_user_tables
where schemaname = current_schema() and n_dead_tup > %(least)s and n_dead_tup > %(share)s * n_live_tup
  and (not starts_with(relname, 'chunk_') or relname = any(%(own)s))
order by relname;

-- name: vacuum_table
vacuum (analyze) {table};

-- name: forget_evaluations
delete from evaluation
where collection = %(collection)s and dataset ->> 'name' = %(dataset)s and id <> all(%(kept)s);

-- name: forget_runs
-- The last successful run shows how stale the collection is, so it is kept.
delete from run where collection = %(collection)s and state <> 'running' and started < now() - make_interval(days => %(days)s)
  and id is distinct from (
    select id from run where collection = %(collection)s and state = 'done' and kind in ('reindex', 'nightly')
        and counts -> 'night' ->> 'verdict' is distinct from 'refused' order by ended desc limit 1);

-- name: forget_gone_pages
-- While an index still contains the page, its row here is needed to remove it.
delete from page p where collection = %(collection)s and state = 'gone'
  and not exists (select from run r where r.id = p.run and r.started > now() - make_interval(days => %(days)s))
  and not exists (select from indexed_page i join index x on x.id = i.index where x.collection = p.collection and i.url = p.url);
