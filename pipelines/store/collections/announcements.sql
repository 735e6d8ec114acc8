-- Announced changes of pages. A running announcement belongs to a run that has locked its collection; a killed run has
-- no lock.

-- name: announce
insert into announcement (collection, delivery, changed, deleted)
values (%(collection)s, %(delivery)s, %(changed)s, %(deleted)s)
on conflict (collection, delivery) do update set delivery = excluded.delivery returning id;

-- name: forget_announcements
delete from announcement where ended < now() - make_interval(days => %(days)s);

-- name: announcement
select a.id, a.collection, a.changed, a.deleted, a.received, a.ended, a.run, a.attempts, a.error,
    case when a.ended is null then case when r.state = 'running' then 'running' else 'waiting' end
        when a.error is null then 'done' else 'failed' end as state
from announcement a left join run r on r.id = a.run where a.collection = %(collection)s and a.id = %(id)s;

-- name: announced_collections
-- As in `last_runs`, the advisory lock shows whether a run has locked the collection.
select collection, min(due) <= now() as due, exists (
    select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = hashtextextended('raydex collection ' || collection, 0)) as held
from announcement where ended is null group by collection order by collection;

-- name: take_announcements
with taken as (
    update announcement set run = %(run)s, attempts = attempts + 1
    where collection = %(collection)s and ended is null and due <= now() returning id, changed, deleted, attempts)
select * from taken order by id;

-- name: end_announcement
update announcement set error = %(error)s, due = now() + make_interval(secs => coalesce(%(again_s)s, 0)),
    ended = case when %(again_s)s::float8 is null then now() end
where id = %(id)s;

-- name: announcing_secret
select announcing_secret as secret from collection where name = %(collection)s;

-- name: set_announcing_secret
update collection set announcing_secret = %(secret)s where name = %(collection)s;
