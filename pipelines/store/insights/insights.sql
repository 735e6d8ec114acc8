-- Data for insights: questions with their ratings, the pages of an index, the headings of sections.

-- name: asked
-- The newest questions. A question that named no collection belongs to the collection of the index that answered it.
-- The answer is included only if a reader rated it down, the beginnings of the hits only if there was no answer.
select coalesce(nullif(q.collection, ''), i.collection, '') as collection, q.asked_at,
    coalesce(nullif(q.standalone, ''), q.question) as question, q.known, a.confidence, q.error is not null as failed,
    coalesce(q.channel, '') as channel, coalesce(a.agent, '') as agent, coalesce((a.usage ->> 'cost')::float8, 0) as cost,
    coalesce((a.usage ->> 'prompt_tokens')::int, 0) as prompt_tokens,
    coalesce((a.usage ->> 'completion_tokens')::int, 0) as completion_tokens,
    (a.timings ->> 'total')::float8 as seconds, (a.timings ->> 'first_delta')::float8 as first_word,
    jsonb_path_query_array(coalesce(a.citations, '[]'), '$[*].source') as cited,
    jsonb_path_query_array(h.first, '$[*].sources[0]') as found, jsonb_path_query_array(h.first, '$[*].scores.vector') as cosines,
    case when q.known then jsonb_build_array() else jsonb_path_query_array(h.first, '$[*].text') end as passages,
    f.ups, f.downs, coalesce(f.reasons, array[]::text[]) as reasons, coalesce(f.comments, array[]::text[]) as comments,
    case when f.downs > 0 then coalesce(a.text, '') else '' end as answer
from question q {answer} left join index i on q.collection = '' and i.id = q.index left join lateral (
    select count(*) filter (where rating > 0)::int as ups, count(*) filter (where rating < 0)::int as downs,
        array_agg(comment order by created, id) filter (where comment <> '') as comments,
        (select array_agg(reason) from feedback r, unnest(r.reasons) reason where r.question_id = q.id) as reasons
    from feedback where question_id = q.id
) f on true cross join lateral (
    select jsonb_path_query_array(coalesce(a.hits, '[]'), %(first_hits)s::jsonpath) as first
) h
where (%(collection)s::text is null or coalesce(nullif(q.collection, ''), i.collection, '') = %(collection)s)
    and (%(since)s::timestamptz is null or q.asked_at >= %(since)s)
    and (%(until)s::timestamptz is null or q.asked_at < %(until)s)
order by q.asked_at desc, q.id desc limit %(most)s;

-- name: count_asked
select count(*) as questions from question q left join index i on q.collection = '' and i.id = q.index
where (%(collection)s::text is null or coalesce(nullif(q.collection, ''), i.collection, '') = %(collection)s)
    and (%(since)s::timestamptz is null or q.asked_at >= %(since)s)
    and (%(until)s::timestamptz is null or q.asked_at < %(until)s);

-- name: indexed_pages
select c.url, min(c.title) as title from {chunk} c group by c.url order by c.url;

-- name: indexed_sections
select distinct on (c.url, c.anchor) c.url, c.anchor, c.title, c.headings from {chunk} c
join unnest(%(urls)s::text[], %(anchors)s::text[]) as wanted (url, anchor) on c.url = wanted.url and c.anchor = wanted.anchor
order by c.url, c.anchor, c.ordinal;

-- name: changed_sections
-- The id of a chunk is a hash of its section and text. If the live index lacks a cited chunk, the answer relies on a
-- section that was changed or deleted.
with cited as (
    select q.id, q.asked_at, coalesce(nullif(q.standalone, ''), q.question) as question, h.value -> 'sources' ->> 0 as source
    from question q {answer}
    cross join lateral jsonb_array_elements(coalesce(a.hits, '[]')) h (value)
    where (q.collection = %(collection)s or (q.collection = '' and q.index = %(index)s)) and q.known
        and h.value ->> 'chunk_id' = any(q.cited)
        and not exists (select from {chunk} c where c.id = h.value ->> 'chunk_id')
        and (%(since)s::timestamptz is null or q.asked_at >= %(since)s)
        and (%(until)s::timestamptz is null or q.asked_at < %(until)s))
select source, count(distinct id) as answers, max(asked_at) as last,
    (array_agg(question order by asked_at desc, id))[1:3] as questions,
    not exists (
        select from {chunk} c where c.url = split_part(source, '#', 1)
          and (strpos(source, '#') = 0 or split_part(source, '#', 2) = any(c.anchors))) as gone
from cited where source like 'http%%' group by source order by answers desc, source limit %(most)s;
