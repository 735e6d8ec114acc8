-- The owner of the embedded database.

-- name: lock_roles
-- Roles are shared by all databases of a server: a lock on a table of one database would not stop others.
lock table pg_authid in share row exclusive mode;

-- name: find_role
select from pg_roles where rolname = %(owner)s;

-- name: create_role
create role {owner} login;

-- name: restrict_role
alter role {owner} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password {password};

-- name: own_database
alter database {database} owner to {owner};

-- name: tables_of_others
-- Tables, views and sequences, but not those that belong to an extension, nor the sequences and indexes that follow
-- their tables.
select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and pg_get_userbyid(c.relowner) <> %(owner)s
  and not exists (select from pg_depend d
    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'e', 'i'));

-- name: own_table
alter table {table} owner to {owner};

-- name: update_extension
alter extension vector update;
