-- The sources that readers opened: each of an answer, or of a search, once. Nothing says who: no key, session or address.
-- A click of an answer goes with its question; one of a search, which is recorded nowhere, holds what was searched for.
create table click (
    shown text not null,  -- the id of the answer, or a digest of the search
    source text not null,
    question_id text references question (id) on delete cascade,
    collection text not null,
    query text not null default '',
    opened_at timestamptz not null default now(),
    primary key (shown, source)
);
create index click_of_question on click (question_id) where question_id is not null;
create index click_opened_at on click (opened_at);
