-- Answers that a person wrote. A copy of a collection (name@…) has its original's answers: {original}.

-- name: original
split_part(%(collection)s, '@', 1)

-- name: verified_answers
select id, collection, questions, answer, sections, retired, written, changed from verified_answer
where collection = {original} order by id;

-- name: verified_mark
select count(*) as answers, max(changed) as changed from verified_answer where collection = {original};

-- name: verified_answer
select id, collection, questions, answer, sections, retired, written, changed from verified_answer where id = %(id)s;

-- name: add_verified_answer
insert into verified_answer (collection, questions, answer, sections)
values (%(collection)s, %(questions)s, %(answer)s, %(sections)s) returning id;

-- name: accept_verified_answer
update verified_answer set questions = %(questions)s, answer = %(answer)s, sections = %(sections)s, retired = false,
    changed = clock_timestamp()
where id = %(id)s;

-- name: retire_verified_answer
update verified_answer set retired = true, changed = clock_timestamp() where id = %(id)s;

-- name: dump_verified_answers
select questions, answer, sections, retired, written from verified_answer where collection = %(collection)s order by id;

-- name: restore_verified_answer
-- An existing answer to the same questions stays: it may be newer than the dump.
insert into verified_answer (collection, questions, answer, sections, retired, written)
select %(collection)s, %(questions)s, %(answer)s, %(sections)s, %(retired)s, %(written)s
where not exists (
    select from verified_answer where collection = %(collection)s and questions && %(questions)s::text[]
);
