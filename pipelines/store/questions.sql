-- Questions with their answers, conversations and feedback.

-- name: record_questions
insert into question
select * from jsonb_populate_recordset(null::question, %(rows)s) order by id collate "C"
on conflict do nothing;

-- name: answer_fields
-- The fields of an answer's document, which is parsed once; a failed question has none.
cross join lateral jsonb_to_record(coalesce(q.answer, jsonb_build_object())) as a (
    text text, agent text, confidence text, degraded text[], citations jsonb, hits jsonb, timings jsonb, usage jsonb
)

-- name: question
select * from question where id = %(id)s;

-- name: named_question
-- By id, or by words, given as a LIKE pattern with single blanks. Among several matches, one that did not fail is
-- preferred, then one to the given collection, then the worst-rated, then the newest. The character class lists the
-- blanks that \s does not match in some locales.
select q.* from question q left join lateral (
    select sum(rating) as rating from feedback where question_id = q.id
) f on true
where q.id = %(name)s or exists (
    select from unnest(array[q.question, q.standalone]) as worded (text)
    where btrim(regexp_replace(worded.text, '[\s\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g')) ilike %(words)s
)
order by q.id <> %(name)s, q.error is not null, q.collection is distinct from %(collection)s, coalesce(f.rating, 0), q.asked_at desc limit 1;

-- name: readable_answer
select q.*, f.rating
from question q left join feedback f on f.question_id = q.id and f.key_name = %(key_name)s
where q.id = %(id)s and q.error is null and (q.key_name = %(key_name)s or q.shared_at is not null or %(all)s);

-- name: share_answer
update question set shared_at = case when %(shared)s then coalesce(shared_at, now()) end
where id = %(id)s and error is null and (key_name = %(key_name)s or %(all)s);

-- name: conversation
-- If the answer is unknown, its closest passages are not what the next question refers to.
select question, coalesce(answer ->> 'text', '') as answer, case when known then cited end as cited
from question
where conversation = %(conversation)s and conversation <> '' and key_name = %(key_name)s and error is null
    and (%(among)s::text[] is null or id = any(%(among)s::text[]))
order by asked_at desc, id desc limit %(most)s;

-- name: record_feedback
insert into feedback (question_id, rating, comment, key_name, reasons)
values (%(question_id)s, %(rating)s, %(comment)s, %(key_name)s, %(reasons)s)
on conflict (question_id, key_name) do update
set rating = excluded.rating, comment = excluded.comment, reasons = excluded.reasons, created = now()
returning id;

-- name: feedback_of
select rating, comment, reasons, created, key_name from feedback where question_id = %(question_id)s order by created, id;

-- name: rated_questions
-- One row per answered question that anyone rated: `rating` is the sum of their ratings.
select q.*, sum(f.rating)::int as rating
from question q join feedback f on f.question_id = q.id
where q.collection = %(collection)s and q.error is null
group by q.id order by q.asked_at, q.id;

-- name: recent_questions
-- The sources come from the answer's citations.
select q.id, q.asked_at, q.collection, q.question, coalesce(a.text, '') as answer, q.known, coalesce(a.agent, '') as agent,
    jsonb_path_query_array(coalesce(a.citations, '[]'), '$[*].source') as sources,
    coalesce(a.degraded, array[]::text[]) as degraded, (a.timings ->> 'total')::float8 as seconds,
    coalesce((a.usage ->> 'cost')::float8, 0) as cost, a.confidence,
    q.key_name, q.error, q.channel, q.page, q.language, f.rating,
    coalesce(f.comments, array[]::text[]) as comments,
    array(select distinct unnest(g.reasons) from feedback g where g.question_id = q.id order by 1) as reasons
from question q {answer} left join lateral (
    select sum(rating)::int as rating, array_agg(comment order by created) filter (where comment <> '') as comments
    from feedback where question_id = q.id
) f on true
where (%(collection)s::text is null or q.collection = %(collection)s)
    and (%(before)s::timestamptz is null or q.asked_at < %(before)s)
    and (not %(unknown)s or not q.known)
order by q.asked_at desc, q.id desc limit %(most)s;

-- name: forget_questions
-- Skips rows that another replica is deleting. Feedback and clicks are deleted with their question or, without one, by
-- their age.
with forgotten as (
    delete from question where id in (
        select id from question where asked_at < now() - make_interval(secs => %(seconds)s)
          and (%(names)s::text[] is null or {asked}) for update skip locked
    ) returning id
), unheard as (
    delete from feedback f where f.question_id in (select id from forgotten)
    or (
        %(names)s::text[] is null and f.created < now() - make_interval(secs => %(seconds)s)
        and not exists (select from question q where q.id = f.question_id)
    )
), unopened as (
    -- Clicks on answers are deleted with their questions; a search has no row.
    delete from click c where c.question_id is null and c.opened_at < now() - make_interval(secs => %(seconds)s)
        and (%(names)s::text[] is null or c.collection = any(%(names)s))
)
select count(*) as forgotten from forgotten;
