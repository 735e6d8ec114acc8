-- Chunk tables. In all .sql files, {chunk} is the chunk table of an index, {columns} are its columns without the
-- embedding (see chunks.py), {vector} is the type of the embedding, and {vectors} all stored vectors by embed_hash.

-- name: create_chunks
-- A vector stays in its row, since an exact search reads the vectors of many rows. Otherwise, each one would need a
-- search in the TOAST table's index: 70 ms for 10,000 of a million rows. A row of up to 4,080 bytes keeps its texts too,
-- because a search reads those of a hundred: 98 rows of 200,000 take 1.7 ms instead of 2.8. A longer text is stored
-- outside.
create table {chunk} ({definitions}, embedding {vector} not null) with (toast_tuple_target = 4080);
alter table {chunk} alter column embedding set storage main;

-- name: missing_columns
select t.name as table, c.name as column
from (select 'staged_chunk' as name union all select 'chunk_' || id from index) t
cross join unnest(%(columns)s::text[]) with ordinality as c (name, n)
where to_regclass(t.name) is not null and not exists (
    select from pg_attribute a where a.attrelid = to_regclass(t.name) and a.attname = c.name)
order by t.name, c.n;

-- name: add_column
alter table {table} add column if not exists {definition};

-- name: drop_chunks
drop table if exists {chunk};

-- name: delete_index
delete from index where id = %(index)s;

-- name: index_tables
select id from index where state in ('candidate', 'live', 'retired') order by id for key share;

-- name: vectors_staged
select embed_hash, embedding from staged_vector

-- name: vectors_of_index
select embed_hash, embedding::vector from {chunk}
