-- The rows that each publish into an index replaced, and how to undo it. Written only by the driver, which has locked
-- the collection.

-- name: begin_publication
insert into publication (index, revision, run, returned_to) values (%(index)s, %(revision)s, %(run)s, %(returned_to)s);

-- name: count_publication
update publication p set
    (chunks_added, chunks_changed, chunks_removed) = (
        select count(*) filter (where op = 'added'), count(*) filter (where op = 'changed'),
            count(*) filter (where op = 'removed')
        from replaced_chunk r where r.index = p.index and r.revision = p.revision),
    (pages_added, pages_changed, pages_removed) = (
        select count(*) filter (where op = 'added'), count(*) filter (where op = 'changed'),
            count(*) filter (where op = 'removed')
        from replaced_page r where r.index = p.index and r.revision = p.revision)
where p.index = %(index)s and p.revision = %(revision)s;

-- name: cancel_publication
delete from publication where index = %(index)s and revision = %(revision)s;

-- name: forget_publications
delete from publication where index = %(index)s
  and (revision <= %(revision)s - %(kept)s or published_at < now() - make_interval(days => %(days)s));

-- name: forget_replaced
delete from publication where index in (select id from index where collection = %(collection)s);

-- name: publications
-- An index can return to a revision if the rows that replaced it are stored: they belong to the next revision, and so
-- on.
select revision, published_at, run, returned_to, pages_added, pages_changed, pages_removed,
    chunks_added, chunks_changed, chunks_removed
from publication where index = %(index)s order by revision desc;

-- name: keep_pages
insert into replaced_page (index, revision, url, op, input_hash, sections, title, language, tags, version)
select %(index)s, %(revision)s, r.url,
    case when i.url is null then 'added' when s.url is null then 'removed' else 'changed' end,
    i.input_hash, i.sections, p.title, p.language, p.tags, p.version
from replaced r
left join indexed_page i on i.index = %(index)s and i.url = r.url
left join staged_page s on s.run = %(run)s and s.url = r.url
left join page p on p.collection = %(collection)s and p.url = i.url;

-- name: returned_chunks
-- The first replacement of a chunk after a revision has the chunk as it was then. Chunks that are the same now, or
-- never existed, stay.
create temp table returned_chunk on commit drop as
select first.chunk_id as id, first.old, first.embedding from (
    select distinct on (chunk_id) chunk_id, old, embedding from replaced_chunk
    where index = %(index)s and revision > %(to)s order by chunk_id, revision) first
left join {chunk} c on c.id = first.chunk_id
where (to_jsonb(c) - 'embedding', c.embedding::vector) is distinct from (first.old, first.embedding);

-- name: keep_chunks
insert into replaced_chunk (index, revision, chunk_id, op, old, embedding)
select %(index)s, %(revision)s, r.id,
    case when c.id is null then 'added' when r.old is null then 'removed' else 'changed' end,
    to_jsonb(c) - 'embedding', c.embedding::vector
from returned_chunk r left join {chunk} c on c.id = r.id;

-- name: clear_returned
delete from {chunk} c using returned_chunk r where c.id = r.id;

-- name: put_returned
insert into {chunk} ({columns}, embedding)
select {columns_of_old}, r.embedding
from returned_chunk r cross join lateral jsonb_populate_record(null::{chunk}, {defaults} || r.old) o
where r.old is not null;

-- name: note_returned
insert into change (index, revision, chunk_id, op)
select %(index)s, %(revision)s, id, case when old is null then 'delete' else 'upsert' end from returned_chunk;

-- name: returned_pages
create temp table returned_page on commit drop as
select first.* from (
    select distinct on (url) url, input_hash, sections, title, language, tags, version from replaced_page
    where index = %(index)s and revision > %(to)s order by url, revision) first
left join indexed_page i on i.index = %(index)s and i.url = first.url
where i.input_hash is distinct from first.input_hash;

-- name: keep_returned_pages
insert into replaced_page (index, revision, url, op, input_hash, sections, title, language, tags, version)
select %(index)s, %(revision)s, r.url,
    case when i.url is null then 'added' when r.input_hash is null then 'removed' else 'changed' end,
    i.input_hash, i.sections, p.title, p.language, p.tags, p.version
from returned_page r
left join indexed_page i on i.index = %(index)s and i.url = r.url
left join page p on p.collection = %(collection)s and p.url = i.url;

-- name: clear_returned_pages
delete from indexed_page i using returned_page r where i.index = %(index)s and i.url = r.url;

-- name: put_returned_pages
insert into indexed_page (index, url, input_hash, sections)
select %(index)s, url, input_hash, sections from returned_page where input_hash is not null;

-- name: describe_returned
update page p set title = r.title, language = coalesce(r.language, p.language), tags = coalesce(r.tags, p.tags),
    version = r.version
from returned_page r where p.collection = %(collection)s and p.url = r.url and r.input_hash is not null;
