-- Migrations. The lock is held until the transaction ends.

-- name: schema_lock
select pg_advisory_xact_lock(hashtextextended('raydex schema', 0));

-- name: create_extension
create extension if not exists vector;

-- name: pgvector_version
select extversion from pg_extension where extname = 'vector';

-- name: recorded_tables
-- Whether migrations are recorded, and which of the given tables exist. One statement, so that both results are from the
-- same moment. Not to_regclass: its result may come from a cache filled before the lock was taken.
select coalesce(bool_or(tablename = %(record)s), false) as recorded,
       coalesce(array_agg(tablename::text order by tablename) filter (where tablename <> %(record)s), array[]::text[]) as tables
from pg_tables where schemaname = any(current_schemas(false)) and tablename = any(%(record)s::text || %(tables)s::text[]);

-- name: create_migrations
create table if not exists schema_version (
    number integer primary key,
    name text not null,
    raydex text not null,  -- the version that applied it
    applied timestamptz not null default now()
);

-- name: applied_migrations
select number, name, raydex from schema_version order by number;

-- name: record_migration
insert into schema_version (number, name, raydex) values (%(number)s, %(name)s, %(raydex)s);
