-- Collections: what there is, their state, the default.

-- name: collections
select c.name, c.is_default, i.id as index, i.revision, coalesce(i.stats, jsonb_build_object()) as stats, i.settings, i.published_at
from collection c left join index i on i.collection = c.name and i.state = 'live' order by c.name;

-- name: last_runs
select id, kind, state, counts, error, started, ended from run
where collection = %(collection)s order by id desc limit %(most)s;

-- name: page_states
select state, count(*) as pages from page where collection = %(collection)s group by state order by state;

-- name: page_failures
select url, http_status, error, attempts from page
where collection = %(collection)s and state = 'failed' order by url limit %(most)s;

-- name: collection_settings
select settings from collection where name = %(collection)s;

-- name: indexes_of
select id from index where collection = %(collection)s order by id;

-- name: delete_collection
delete from collection where name = %(collection)s;

-- name: clear_default
update collection set is_default = false where is_default;

-- name: set_default
update collection set is_default = true where name = %(collection)s;
