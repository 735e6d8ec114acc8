-- API keys and their rate limits.

-- name: create_key
insert into api_key (name, hash, scopes, rate_per_minute, expires, origins, collections)
values (
    %(name)s, %(hash)s, %(scopes)s, %(rate)s, now() + make_interval(secs => %(seconds)s), %(origins)s, %(collections)s
)
on conflict (name) do nothing
returning name, scopes, rate_per_minute, created, expires, revoked_at, last_used, origins, collections;

-- name: list_keys
select name, scopes, rate_per_minute, created, expires, revoked_at, last_used, origins, collections from api_key order by id;

-- name: revoke_key
update api_key set revoked_at = coalesce(revoked_at, now()) where name = %(name)s
returning name, scopes, rate_per_minute, created, expires, revoked_at, last_used, origins, collections;

-- name: find_key
-- `last_used` is exact to the minute: with a write per request, all replicas would wait for one row.
with used as (
    update api_key set last_used = now()
    where hash = %(hash)s and (last_used is null or last_used < now() - interval '1 minute')
)
select name, scopes, rate_per_minute, created, expires, revoked_at, last_used, origins, collections from api_key
where hash = %(hash)s and revoked_at is null and (expires is null or expires > now());

-- name: bound_origins
select distinct unnest(origins) as origin from api_key
where revoked_at is null and (expires is null or expires > now());

-- name: service_secret
select value from service_secret;

-- name: make_service_secret
insert into service_secret default values on conflict do nothing;

-- name: take_token
-- A single statement, so that all replicas share one bucket: the conflicting row is locked and then read. If the clock
-- was set back, the elapsed time adds nothing; the next request counts from the clock's present time.
insert into rate_bucket as b (key, tokens, allowed, updated)
values (%(key)s, %(burst)s::float8 - 1, true, clock_timestamp())
on conflict (key) do update set (tokens, allowed, updated) = (
    select refilled - (refilled >= 1)::int, refilled >= 1, clock_timestamp()
    from (
        select least(
            %(burst)s::float8,
            b.tokens + greatest(0, extract(epoch from clock_timestamp() - b.updated)) * %(per_second)s::float8
        ) as refilled
    ) as now
)
returning tokens, allowed;

-- name: forget_buckets
delete from rate_bucket where key in (
    select key from rate_bucket where updated < now() - make_interval(secs => %(seconds)s)
    order by key collate "C" for update skip locked
);
