-- The pages in an index.

-- name: list_pages
select distinct on (c.url collate "C") c.url, c.title, left(c.text, %(characters)s) as begins
from {chunk} c where c.url collate "C" > %(after)s order by c.url collate "C", c.ordinal limit %(most)s;

-- name: indexed_urls
select url from indexed_page where index = %(index)s order by url;

-- name: find_pages
-- The pages of the index at one of these URLs, or of which a page there is a copy.
select url from indexed_page where index = %(index)s and url = any(%(urls)s)
union
select i.url from page p
join indexed_page i on i.index = %(index)s and i.url = p.copy_of
where p.collection = %(collection)s and p.url = any(%(urls)s);

-- name: indexed_body
-- The stored body, unless a later run has fetched a different one than the index was made from.
select p.url, p.body, p.content_type, p.charset from page p join indexed_page i on i.index = %(index)s and i.url = p.url
where p.collection = %(collection)s and p.url = %(url)s and p.body is not null
  and starts_with(i.input_hash, p.content_hash);

-- name: first_and_last_page
select min(url collate "C") as first, max(url collate "C") as last from {chunk};

-- name: distinct_values
-- A skip scan: Postgres would read every row for `select distinct`.
with recursive value as (
    (select {column} as value from {chunk} where {column} is not null order by {column} limit 1)
    union all
    select (select {column} from {chunk} where {column} > value.value order by {column} limit 1)
    from value where value.value is not null)
select value from value where value <> '';
