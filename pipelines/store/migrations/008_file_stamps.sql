-- What tells whether the file that a page was read from has changed since: a hash of its path, size and times, and of how
-- its folder is read. Null: no file, or one that was too new to be sure.
alter table page add column file_stamp text;
