-- The results of a run's transactions that change an index, by name: a step is done once, even if its commit was not heard.
alter table run add column steps jsonb not null default '{}';
