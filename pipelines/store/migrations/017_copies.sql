-- What the text of a page is compared by with that of others (its content hash, then the sketch), and the URL of the page
-- that it is a copy of.
alter table page add column sketch text, add column copy_of text;
