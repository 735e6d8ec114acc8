-- What the text of a page is compared by with that of others (its content hash, then the sketch), and the URL of the page
-- that it is a copy of.
alter table page add column sketch text, add column copy_of text;
update page set copy_of = case when error like 'same content as %' then substr(error, 17) else canonical end
where state = 'duplicate';
