-- The state of a database, read without changing it.

-- name: database_state
select current_setting('server_version') as version, current_user as role, pg_is_in_recovery() as standby,
       current_setting('transaction_read_only')::bool as read_only,
       (select extversion from pg_extension where extname = 'vector') as pgvector,
       (select default_version from pg_available_extensions where name = 'vector') as pgvector_offered,
       coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create_tables,
       coalesce(has_database_privilege(current_database(), 'create'), false) as may_create_extensions,
       has_database_privilege(current_database(), 'temporary') as may_create_temporary,
       current_setting('max_connections')::int as most_connections,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
       pg_database_size(current_database()) as bytes;

-- name: closed_tables
-- The tables of Raydex, by name, that this role may not read and write.
select c.relname as name from pg_class c
where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace and c.relname = any(%(tables)s)
  and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
           and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
order by c.relname;
