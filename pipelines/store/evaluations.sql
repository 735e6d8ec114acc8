-- Evaluations, their questions, and judgments of answers.

-- name: resume_evaluation
select id from evaluation where fingerprint = %(fingerprint)s order by id desc limit 1;

-- name: begin_evaluation
insert into evaluation (fingerprint, collection, index, revision, dataset, configuration)
values (%(fingerprint)s, %(collection)s, %(index)s, %(revision)s, %(dataset)s, %(configuration)s)
returning id;

-- name: record_evaluated_questions
insert into evaluated_question
select * from jsonb_populate_recordset(null::evaluated_question, %(rows)s) order by id collate "C"
on conflict (evaluation, id) do update set
    (question, sources, hits, degraded, timings, answer, scores, error, asked_at, attempts) = (
        excluded.question, excluded.sources, excluded.hits, excluded.degraded, excluded.timings,
        excluded.answer, excluded.scores, excluded.error, excluded.asked_at, evaluated_question.attempts + 1
    );

-- name: evaluated_questions
select id, question, sources, hits, degraded, timings, answer, scores, error, asked_at, attempts
from evaluated_question where evaluation = %(evaluation)s order by asked_at, id;

-- name: finish_evaluation
update evaluation set scores = %(scores)s, ended = now() where id = %(id)s;

-- name: get_judgements
select hash, dimension, model, score, reasoning, error from judgement where hash = any(%(hashes)s);

-- name: save_judgements
-- A judgment replaces a failed one, never a successful one.
insert into judgement (hash, dimension, model, score, reasoning, error)
select hash, dimension, model, score, reasoning, error from jsonb_populate_recordset(null::judgement, %(rows)s)
order by hash collate "C"
on conflict (hash) do update set
    (dimension, model, score, reasoning, error, created) = (
        excluded.dimension, excluded.model, excluded.score, excluded.reasoning, excluded.error, now()
    )
where judgement.error is not null;
