-- Where a question was asked, how far its answer can be relied on, and why an answer was rated as it was. The columns of
-- question take null: a replica of the version before writes rows without them until it is replaced.
alter table question
    add column confidence text,  -- high, some or low; null: failed, or older than this column
    add column claims jsonb,  -- total, cited, supported; null as above
    add column notes text[] default array[]::text[],
    add column finish_reason text default 'stop',
    add column channel text default 'api',  -- page, widget, slack, mcp, openai or api
    add column page text default '',  -- URL of the page that the reader had open, without query and fragment
    add column language text default '',  -- of the question, as BCP 47; '': not certain
    add column shared_at timestamptz;  -- since when whoever may ask may read the answer; null: its asker alone

alter table feedback add column reasons text[] not null default array[]::text[];  -- wrong, incomplete, outdated, not_asked
