-- Publishable keys: what pages hold. They have the scope `ask` alone and are bound to origins.
alter table api_key
    add column origins text[] not null default array[]::text[],  -- pages that may hold it; none: a secret key
    add column collections text[] not null default array[]::text[];  -- that it may ask; none: all

-- What all replicas sign sessions and hash addresses with: 244 random bits. Deleting the row ends all sessions.
create table service_secret (
    only_one boolean primary key default true check (only_one),
    value bytea not null default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
);
insert into service_secret default values;
