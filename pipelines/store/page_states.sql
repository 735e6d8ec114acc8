-- Pages: their states, and which of them an index lacks.

-- name: save_page
insert into page as p (collection, url, state, http_status, etag, content_hash, body, content_type, charset, links,
    canonical, error, attempts, fetched_at, checked_at, changed_at, run, first_run, changed_run, file_stamp)
values (%(collection)s, %(url)s, %(state)s, %(http_status)s, %(etag)s, %(content_hash)s, %(body)s, %(content_type)s,
    %(charset)s, %(links)s, %(canonical)s, %(error)s, case when %(state)s = 'failed' then 1 else 0 end, now(),
    case when %(state)s = 'ok' then now() end, case when %(content_hash)s::text is not null then now() end, %(run)s, %(run)s,
    case when %(content_hash)s::text is not null then %(run)s::bigint end, %(stamp)s)
on conflict (collection, url) do update set
    -- An unreadable body that has not changed is still a failure.
    state = case when {still_unreadable} then p.state else excluded.state end,
    http_status = excluded.http_status,
    error = case when {still_unreadable} then p.error else excluded.error end,
    attempts = case when {still_unreadable} then p.attempts when excluded.state = 'failed' then p.attempts + 1 else 0 end,
    fetched_at = now(),
    checked_at = coalesce(excluded.checked_at, p.checked_at),
    changed_at = case when excluded.content_hash is distinct from p.content_hash then coalesce(excluded.changed_at, p.changed_at)
                      else p.changed_at end,
    run = excluded.run,
    etag = case when excluded.body is null then p.etag else excluded.etag end,
    content_hash = coalesce(excluded.content_hash, p.content_hash),
    body = case when excluded.content_hash = p.content_hash then p.body else coalesce(excluded.body, p.body) end,
    content_type = case when excluded.body is null then p.content_type else excluded.content_type end,
    charset = case when excluded.body is null then p.charset else excluded.charset end,
    links = case when excluded.body is null and cardinality(excluded.links) = 0 then p.links else excluded.links end,
    canonical = case when excluded.body is null then p.canonical else excluded.canonical end,
    changed_run = case when excluded.content_hash <> p.content_hash or p.content_hash is null
                       then coalesce(excluded.changed_run, p.changed_run) else p.changed_run end,
    file_stamp = excluded.file_stamp;

-- name: see_files
-- Like save_page for a body that has not changed.
with seen as materialized (
    select url from page
    where collection = %(collection)s and file_stamp = any(%(stamps)s::text[]) and body is not null
    order by url collate "C" for update)
update page p set
    state = case when p.state = 'failed' and p.unreadable = p.content_hash then p.state else 'ok' end,
    error = case when p.state = 'failed' and p.unreadable = p.content_hash then p.error end,
    attempts = case when p.state = 'failed' and p.unreadable = p.content_hash then p.attempts else 0 end,
    fetched_at = now(),
    checked_at = now(),
    run = %(run)s
from seen where p.collection = %(collection)s and p.url = seen.url
returning p.file_stamp, p.url;

-- name: still_unreadable
(excluded.state = 'ok' and p.state = 'failed' and p.unreadable = coalesce(excluded.content_hash, p.content_hash))

-- name: known_page
-- A killed run can be continued for half a day; after that, its pages may have changed.
select p.url, p.state, case when p.body is not null then p.etag end as etag, p.content_hash, p.links,
    p.body is not null and p.file_stamp is null and p.state in ('ok', 'duplicate')
        and (p.run = %(run)s or (r.state = 'abandoned' and p.fetched_at > now() - interval '12 hours')) is true as fetched
from page p left join run r on r.id = p.run
where p.collection = %(collection)s and p.url = %(url)s;

-- name: content_hashes
select url, content_hash from page where collection = %(collection)s and url = any(%(urls)s) and body is not null;

-- name: gone_pages
select url from page where collection = %(collection)s and url = any(%(urls)s)
  and state in ('gone', 'skipped', 'redirect', 'duplicate');

-- name: known_urls
select url from page where collection = %(collection)s and state in ('ok', 'failed', 'duplicate') order by url;

-- name: failed_urls
select url from page where collection = %(collection)s and state = 'failed' order by url;

-- name: fail_page
update page set state = 'failed', error = %(error)s, attempts = attempts + 1, unreadable = content_hash
where collection = %(collection)s and url = %(url)s;

-- name: forgive_pages
with forgiven as materialized (
    select collection, url from page
    where collection = (select collection from run where id = %(run)s) and url = any(%(urls)s) and unreadable is not null
    order by url collate "C" for update)
update page p set state = 'ok', error = null, attempts = 0, unreadable = null
from forgiven where p.collection = forgiven.collection and p.url = forgiven.url;

-- name: mark_unseen
update page set state = 'gone', error = %(error)s
where collection = %(collection)s and run <> %(run)s and state in ('ok', 'failed', 'duplicate')
  and starts_with(url, %(prefix)s) and url <> all(%(kept)s::text[]);

-- name: mark_unclaimed
update page set state = 'gone', error = 'no source of the collection has it any more'
where collection = %(collection)s and run <> %(run)s and state in ('ok', 'failed', 'duplicate') and url = any(%(urls)s);

-- name: mark_deleted
update page set state = 'gone', error = 'it was said to be deleted', run = %(run)s
where collection = %(collection)s and url = any(%(urls)s);

-- name: page_names
select url, canonical, content_hash, content_type in ('text/html', 'application/xhtml+xml') as is_html from page
where collection = %(collection)s and body is not null and state in ('ok', 'failed', 'duplicate');

-- name: page_sketches
select url, substr(sketch, length(content_hash) + 2) as sketch from page
where collection = %(collection)s and url = any(%(urls)s) and starts_with(sketch, content_hash || ' ');

-- name: save_sketch
update page set sketch = content_hash || ' ' || %(sketch)s where collection = %(collection)s and url = %(url)s;

-- name: mark_duplicates
update page p set state = 'duplicate', error = 'same text as ' || copied.original, copy_of = copied.original
from unnest(%(copies)s::text[], %(originals)s::text[]) as copied (url, original)
where p.collection = %(collection)s and p.url = copied.url and p.state in ('ok', 'duplicate')
  and (p.state, p.copy_of) is distinct from ('duplicate', copied.original);

-- name: unmark_duplicates
update page set copy_of = null, state = case when state = 'duplicate' then 'ok' else state end,
    error = case when state = 'duplicate' then null else error end
where collection = %(collection)s and (state = 'duplicate' or copy_of is not null) and url <> all(%(copies)s::text[]);

-- name: drop_staged_duplicates
with dropped as (
    delete from staged_page s using page p
    where s.run = %(run)s and p.collection = %(collection)s and p.url = s.url and p.state = 'duplicate' returning s.url)
delete from staged_chunk s using dropped where s.run = %(run)s and s.url = dropped.url;

-- name: ranges_to_index
-- A staged page whose claimed texts have no vector must be read again: the texts were lost with their node.
with lost as materialized (
    select k.url from embedding_claim k
    where k.run = %(run)s and not exists (select from staged_vector v where v.embed_hash = k.embed_hash))
select min(url) as first, max(url) as last, count(*) as pages, sum(bytes)::bigint as bytes from (
    select p.url, octet_length(p.body) as bytes, (row_number() over (order by p.url) - 1) / %(size)s as part
    from page p left join indexed_page i on i.index = %(index)s and i.url = p.url
    where p.collection = %(collection)s and p.body is not null and p.state in ('ok', 'failed')
      and i.input_hash is distinct from p.content_hash || %(rules)s and (not %(seen)s or p.run = %(run)s)
      and (p.unreadable is distinct from p.content_hash or p.attempts < %(attempts)s)
      and (p.url in (select url from lost) or not exists (
        select from staged_page s
        where s.run = %(run)s and s.url = p.url and s.input_hash = p.content_hash || %(rules)s))) todo
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
  -- A page that was a copy when this run began still is one if neither it nor its original has changed since.
  and not exists (
    select from page target
    where target.collection = p.collection and target.url = p.copy_of and target.state = 'ok'
      and p.changed_run < %(run)s and target.changed_run < %(run)s)
order by p.url;

-- name: layout_sample
-- A stable sample, which changes little when pages come or go: the pages whose URLs have the lowest hashes.
select url, content_hash from (
    select url, content_hash, count(*) over site as pages, row_number() over (site order by md5(url)) as place
    from page
    where collection = %(collection)s and body is not null and state in ('ok', 'failed')
      and content_type in ('text/html', 'application/xhtml+xml')
    window site as (partition by split_part(url, '/', 1), split_part(url, '/', 3))) page
where pages >= %(least)s and place <= %(most)s order by url;

-- name: page_bodies
select url, body, content_type, charset from page
where collection = %(collection)s and url = any(%(urls)s) and body is not null order by url;

-- name: get_layouts
select sample, sites from layout where collection = %(collection)s;

-- name: save_layouts
insert into layout (collection, sample, sites) values (%(collection)s, %(sample)s, %(sites)s)
on conflict (collection) do update set sample = excluded.sample, sites = excluded.sites;

-- name: get_listing
select urls from listing where collection = %(collection)s and base_url = %(base_url)s;

-- name: save_listing
insert into listing (collection, base_url, urls) values (%(collection)s, %(base_url)s, %(urls)s)
on conflict (collection, base_url) do update set urls = excluded.urls;

-- name: pages_failed_with
select url from page
where collection = %(collection)s and run = %(run)s and state = 'failed' and right(error, length(%(reason)s)) = %(reason)s
order by url;

-- name: page_dates
select url, checked_at as checked, changed_at as changed from page where collection = %(collection)s and url = any(%(urls)s);

-- name: unread
select asked.url, case when p.run is distinct from %(run)s then 'no file and no page is there'
    else coalesce(p.error, 'the server answered ' || p.http_status, p.state) end as reason
from unnest(%(urls)s::text[]) as asked (url)
left join page p on p.collection = %(collection)s and p.url = asked.url
where p.run is distinct from %(run)s or p.state not in ('ok', 'duplicate') order by asked.url;

-- name: seen_pages
select count(*) as pages, coalesce(sum(octet_length(body)), 0)::bigint as bytes
from page where collection = %(collection)s and run = %(run)s and state in ('ok', 'failed', 'duplicate');

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

-- name: left_out
-- Why pages that a run saw are not indexed: grouped by reason, without the URLs in it, with the first page of each.
select state, count(*) as pages, min(url) as url, (array_agg(error order by url))[1] as error from (
    select state, url, coalesce(error, case when http_status >= 400 then 'the server answered ' || http_status end) as error
    from page where collection = %(collection)s and run = %(run)s and state in ('duplicate', 'redirect', 'skipped', 'gone')) out
group by state, regexp_replace(error, 'https?://\S+', '', 'g') order by pages desc, state, url;
