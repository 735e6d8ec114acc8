-- How often a question of an evaluation was asked: one that always lacks a part is not asked for ever.
alter table evaluated_question add column attempts integer not null default 1;
