-- Answers that a person wrote, each with the sections that it rests on as they were when a person last accepted it.
create table verified_answer (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    questions text[] not null,  -- wordings of the question that it answers
    answer text not null,  -- Markdown; [n] is the n-th of the sections
    sections jsonb not null,  -- source, text_hash, text
    retired boolean not null default false,
    written timestamptz not null default now(),
    changed timestamptz not null default clock_timestamp()  -- when it was last written, accepted or retired
);
create index verified_answer_of_collection on verified_answer (collection);
