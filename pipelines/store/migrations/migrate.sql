-- Migrations. The lock is held until the transaction ends.

-- name: schema_lock
select pg_advisory_xact_lock(hashtextextended('raydex schema', 0));

-- name: create_extension
create extension if not exists vector;

-- name: pgvector_version
select extversion from pg_extension where extname = 'vector';

-- name: migrations_exist
-- Not to_regclass: its answer may come from a cache filled before the lock was taken.
select exists (
    select from pg_tables where tablename = 'schema_migration' and schemaname = any(current_schemas(false))
) as exist;

-- name: create_migrations
create table if not exists schema_migration (
    number integer primary key,
    name text not null,
    applied timestamptz not null default now()
);

-- name: applied_migrations
select number, name from schema_migration order by number;

-- name: record_migration
insert into schema_migration (number, name) values (%(number)s, %(name)s);
