-- How good a language model is for a collection, and the form of answers that its trial recommends.
create table model_trial (
    collection text not null references collection (name) on delete cascade,
    endpoint text not null,
    model text not null,
    form text not null check (form in ('written', 'summary', 'quoted')),
    scores jsonb not null,
    tried timestamptz not null default clock_timestamp(),
    primary key (collection, endpoint, model)
);
