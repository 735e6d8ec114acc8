-- Archives of BM25 folders.

-- name: lexical_archive
select revision, format, digest from lexical_archive where index = %(index)s;

-- name: lexical_pieces
select file, content from lexical_piece where index = %(index)s order by number;

-- name: claim_lexical_archive
-- Whether no other session stores an archive of the index now.
select pg_try_advisory_xact_lock(hashtext('lexical_archive'), %(index)s::bigint::int) as claimed;

-- name: clear_lexical_archive
delete from lexical_archive where index = %(index)s;

-- name: insert_lexical_archive
insert into lexical_archive (index, revision, format, digest) values (%(index)s, %(revision)s, %(format)s, '');

-- name: copy_lexical_pieces
copy lexical_piece (index, number, file, content) from stdin (format binary);

-- name: finish_lexical_archive
update lexical_archive set digest = %(digest)s where index = %(index)s;
