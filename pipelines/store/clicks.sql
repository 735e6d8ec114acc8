-- Sources that readers opened.

-- name: record_click
-- Only if the answer shows the source and the asker may read the answer.
insert into click (shown, source, question_id, collection)
select q.id, %(source)s, q.id, coalesce(nullif(q.collection, ''), i.collection, '')
from question q left join index i on q.collection = '' and i.id = q.index
where q.id = %(id)s and q.error is null and (q.key_name = %(key_name)s or q.shared_at is not null)
    and (
        jsonb_path_exists(q.answer, '$.citations[*] ? (@.source == $source)', jsonb_build_object('source', %(source)s::text))
        or jsonb_path_exists(q.answer, '$.hits[*].sources[*] ? (@ == $source)', jsonb_build_object('source', %(source)s::text))
    )
on conflict do nothing;

-- name: record_search_click
insert into click (shown, source, collection, query)
values (%(shown)s, %(source)s, %(collection)s, %(query)s) on conflict do nothing;

-- name: opened_sources
select source, collection, date_trunc('day', opened_at, 'UTC') as day, count(*)::int as clicks from click
where (%(collection)s::text is null or collection = %(collection)s)
    and (%(since)s::timestamptz is null or opened_at >= %(since)s)
    and (%(until)s::timestamptz is null or opened_at < %(until)s)
group by 1, 2, 3 order by clicks desc, source, day;

-- name: opened_questions
-- The questions and searches, in standalone form, with the sources that were opened for them. The clicks on an answer
-- that was rated down mean nothing, because its reader kept looking.
select coalesce(nullif(q.standalone, ''), q.question, c.query) as question, array_agg(c.source order by c.opened_at, c.source) as sources
from click c left join question q on q.id = c.question_id
where c.collection = %(collection)s and not exists (
    select from feedback f where f.question_id = c.question_id group by f.question_id having sum(f.rating) < 0
)
group by c.shown, 1 order by min(c.opened_at), c.shown;

-- name: delete_search_clicks
delete from click where question_id is null and collection = any(%(names)s);
