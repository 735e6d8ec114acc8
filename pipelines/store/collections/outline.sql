-- Summary of a live index.

-- name: collection_root
-- The root page: the index page with the shortest path that is more than a listing.
select p.title, p.url from indexed_page i join page p on p.collection = %(collection)s and p.url = i.url
where i.index = %(index)s and i.sections > 0 and p.url ~ '/((index|README)(\.\w+)?)?$' and p.title <> ''
order by length(p.url) - length(replace(p.url, '/', '')), length(p.url), p.url limit 1;

-- name: section_starts
-- The first chunk of each section of the most linked pages, judged by the links of a sample of pages.
with sampled as (
    select links from page where collection = %(collection)s and state = 'ok' order by md5(url) limit %(sampled)s),
linked as (
    select split_part(link, '#', 1) as url, count(*) as links from sampled, unnest(links) link group by 1),
best as (
    select i.url, coalesce(l.links, 0) as links from indexed_page i left join linked l using (url)
    where i.index = %(index)s and i.sections > 0 order by 2 desc, length(i.url), i.url limit %(pages)s)
select distinct on (c.url, c.anchor) c.url, c.title, c.headings, left(c.text, %(characters)s) as text, left(c.plain, %(characters)s) as plain, best.links,
    c.language
from best join {chunk} c using (url) order by c.url, c.anchor, c.ordinal;

-- name: find_place
-- The section of a page, or its beginning.
select title, version, language, anchor, headings from {chunk} where url = %(url)s
order by anchor = %(anchor)s desc, ordinal limit 1;
