-- All tables except those that the code creates: `chunk_<index id>` for each index (../chunks.sql) and the record of
-- migrations (migrate.sql). Columns that are added to chunks later (../chunks.py) are added to staged_chunk too.

create table collection (
    name text primary key,
    settings jsonb not null default '{}',
    created timestamptz not null default now(),
    is_default boolean not null default false,  -- answers questions that name no collection
    announcing_secret text  -- signs announcements; null: none are accepted
);
create unique index collection_one_default on collection (is_default) where is_default;

-- `interrupted`: a person ended it by Ctrl-C or SIGTERM. `steps` are the results of the transactions that change an
-- index, by name: a step is done once, even if the connection broke before its commit was confirmed.
create table run (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    kind text not null,
    state text not null default 'running'
        check (state in ('running', 'done', 'failed', 'interrupted', 'abandoned')),
    counts jsonb not null default '{}',
    steps jsonb not null default '{}',
    error text,
    started timestamptz not null default now(),
    ended timestamptz
);
create index run_of_collection on run (collection, id);

-- How the crawl of each host ended; a run deletes vanished pages only if all of its crawls are complete.
create table crawl (
    run bigint not null references run on delete cascade,
    host text not null,
    complete boolean not null,
    stopped_by text not null,
    counts jsonb not null,
    primary key (run, host)
);

-- The crawl frontier and the state of every page. `run` is the last run that saw the page, `first_run` the first,
-- `changed_run` the one that fetched its current body. `body` is the fetched body, zlib-compressed.
create table page (
    collection text not null references collection on delete cascade,
    url text not null,
    state text not null check (state in ('ok', 'failed', 'gone', 'skipped', 'redirect', 'duplicate')),
    http_status integer,
    etag text,
    content_hash text,
    body bytea,
    content_type text not null default 'text/html',
    charset text,
    links text[] not null default array[]::text[],
    canonical text,
    title text,
    language text,
    tags text[] not null default array[]::text[],
    version text,
    attempts integer not null default 0,
    unreadable text,  -- the content_hash of a body that could not be read
    error text,
    fetched_at timestamptz,
    run bigint not null,
    first_run bigint not null,
    changed_run bigint,
    file_stamp text,  -- a hash of the file's path, size and times, and of its folder's settings; null: no file, or too new
    checked_at timestamptz,  -- when it was last fetched or read without a failure
    changed_at timestamptz,  -- when its content last changed
    sketch text,  -- compares its text with other pages', after the content_hash
    copy_of text,  -- the URL of its original
    primary key (collection, url)
);
alter table page alter column body set storage external;

-- The text that repeats on most pages of a collection's sites and is left out of their chunks, and the hash of the
-- sample of pages that it was learned from.
create table layout (
    collection text primary key references collection (name) on delete cascade,
    sample text not null,
    sites jsonb not null
);

-- The URLs that the site of a folder listed when it last responded. A run uses them if the site does not respond.
create table listing (
    collection text not null references collection (name) on delete cascade,
    base_url text not null,
    urls text[] not null,
    primary key (collection, base_url)
);

-- Announced changes of pages, kept until runs over these pages have brought them into the index.
create table announcement (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    delivery text,  -- identifies repeated deliveries; null: unknown
    changed text[] not null,
    deleted text[] not null,
    received timestamptz not null default now(),
    due timestamptz not null default now(),  -- the next attempt
    attempts integer not null default 0,
    run bigint references run on delete set null,  -- the last attempt
    ended timestamptz,
    error text,
    unique (collection, delivery)
);
create index announcement_to_come on announcement (collection, id) where ended is null;

create table index (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    fingerprint text not null,
    settings jsonb not null,
    state text not null check (state in ('building', 'candidate', 'live', 'retired', 'failed')),
    revision bigint not null default 0,
    stats jsonb not null default '{}',
    published_at timestamptz,
    created timestamptz not null default now()
);
create unique index index_one_live on index (collection) where state = 'live';

-- The input (page body and metadata rules) of each page in an index.
create table indexed_page (
    index bigint not null references index on delete cascade,
    url text not null,
    input_hash text not null,
    sections integer not null,
    primary key (index, url)
);

-- Pages and chunks of a run that are not published yet. Logged tables, so that a crash loses none of them.
create table staged_page (
    run bigint not null references run on delete cascade,
    url text not null,
    input_hash text not null,
    title text not null,
    language text not null,
    tags text[] not null,
    version text,
    sections integer not null,
    chunks integer not null,
    primary key (run, url)
);

create table staged_chunk (
    run bigint not null references run on delete cascade,
    id text not null,
    url text not null,
    anchor text not null,
    anchors text[] not null,
    title text not null,
    headings text[] not null,
    ordinal integer not null,
    text text not null,
    plain text not null,
    text_hash text not null,
    embed_hash text not null,
    tokens integer not null,
    tags text[] not null,
    version text,
    language text not null,
    primary key (run, id)
);

-- Vectors that are not in a chunk table yet. They outlive their run, so that nothing is embedded twice.
create table staged_vector (
    embed_hash text primary key,
    run bigint not null,
    embedding vector not null
);

-- The page whose task embeds a text in a run: the first that needs it, and the same one when Ray repeats its task.
create table embedding_claim (
    run bigint not null references run on delete cascade,
    embed_hash text not null,
    url text not null,
    primary key (run, embed_hash)
);

-- The changes that BM25 replicas replay after a publish.
create table change (
    index bigint not null references index on delete cascade,
    revision bigint not null,
    chunk_id text not null,
    op text not null check (op in ('upsert', 'delete')),
    primary key (index, revision, chunk_id)
);

-- The rows that each publish into an index replaced, so that it can be undone. They need no graph. `publication` has a
-- row for each revision; its replaced rows are deleted with it.
create table publication (
    index bigint not null references index on delete cascade,
    revision bigint not null,
    published_at timestamptz not null default now(),
    run bigint not null,
    returned_to bigint,  -- the revision that a rollback restored
    pages_added bigint not null default 0,
    pages_changed bigint not null default 0,
    pages_removed bigint not null default 0,
    chunks_added bigint not null default 0,
    chunks_changed bigint not null default 0,
    chunks_removed bigint not null default 0,
    primary key (index, revision)
);

-- `old` is the former row, without its embedding; null for a chunk that was added.
create table replaced_chunk (
    index bigint not null,
    revision bigint not null,
    chunk_id text not null,
    op text not null check (op in ('added', 'changed', 'removed')),
    old jsonb,
    embedding vector,
    primary key (index, revision, chunk_id),
    foreign key (index, revision) references publication on delete cascade
);

-- The former row of indexed_page, with columns of the page's row; null for a page that was added.
create table replaced_page (
    index bigint not null,
    revision bigint not null,
    url text not null,
    op text not null check (op in ('added', 'changed', 'removed')),
    input_hash text,
    sections integer,
    title text,
    language text,
    tags text[],
    version text,
    primary key (index, revision, url),
    foreign key (index, revision) references publication on delete cascade
);

-- Every question, answered or failed (`error`). `answer` is one document, in the format of `Answer.to_dict`; queries
-- search by the other columns. `asked_at` is when the answer was ready: the row may be written later.
create table question (
    id text primary key,
    collection text not null,
    conversation text not null,
    asked_at timestamptz not null,
    question text not null,
    standalone text not null,  -- the question condensed with its conversation, '' if that was not needed
    mode text not null,
    known boolean not null,
    answer jsonb,  -- null: failed
    cited text[] default array[]::text[],  -- ids of the chunks
    index bigint,
    key_name text not null,  -- '': asked without a key
    error text,
    channel text default 'api',  -- page, widget, slack, mcp, openai or api
    page text default '',  -- URL of the page that the reader had open, without query and fragment
    language text default '',  -- of the question, as BCP 47; '': not certain
    shared_at timestamptz  -- when everyone who may ask was first allowed to read the answer; null: only its asker
);
create index question_asked_at on question (asked_at);
create index question_of_conversation on question (conversation, asked_at) where conversation <> '';

-- No foreign key: feedback may arrive before its question's row, which is written after the answer was sent.
create table feedback (
    id bigint generated always as identity primary key,
    question_id text not null,
    rating smallint not null check (rating in (-1, 0, 1)),
    reasons text[] not null default array[]::text[],  -- wrong, incomplete, outdated, not_asked
    comment text not null,
    created timestamptz not null default now(),
    key_name text not null,
    unique (question_id, key_name)
);

-- The sources that readers opened, once per answer or search. No key, session or address is stored. A click on an
-- answer is deleted with its question. A search is not recorded, so its click contains the query.
create table click (
    shown text not null,  -- the id of the answer, or a digest of the search
    source text not null,
    question_id text references question (id) on delete cascade,
    collection text not null,
    query text not null default '',
    opened_at timestamptz not null default now(),
    primary key (shown, source)
);
create index click_of_question on click (question_id) where question_id is not null;
create index click_opened_at on click (opened_at);

-- Answers that a person wrote, each with the sections that it relies on, as they were when a person last accepted it.
create table verified_answer (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    questions text[] not null,  -- wordings of the question that it answers
    answer text not null,  -- Markdown; [n] is the n-th of the sections
    sections jsonb not null,  -- source, text_hash, text
    retired boolean not null default false,
    written timestamptz not null default now(),
    changed timestamptz not null default clock_timestamp()  -- when it was last written, accepted or retired
);
create index verified_answer_of_collection on verified_answer (collection);

-- API keys, as hashes only: a key itself is shown once and stored nowhere. Publishable keys are part of pages: they
-- have only the scope `ask`, and are bound to origins.
create table api_key (
    id bigint generated always as identity primary key,
    name text not null unique,
    hash bytea not null unique,
    scopes text[] not null,
    origins text[] not null default array[]::text[],  -- pages that may contain it; none: a secret key
    collections text[] not null default array[]::text[],  -- that it may query; none: all
    rate_per_minute integer,  -- null: the service's rate
    created timestamptz not null default now(),
    expires timestamptz,
    revoked_at timestamptz,
    last_used timestamptz
);

-- One token bucket per key, shared by all replicas. Unlogged: a crash empties the table, which fills every bucket.
create unlogged table rate_bucket (
    key text primary key,
    tokens double precision not null,
    allowed boolean not null,  -- whether the last request was allowed
    updated timestamptz not null
);

-- The secret with which all replicas sign sessions and hash addresses: 244 random bits. Deleting the row ends all
-- sessions.
create table service_secret (
    only_one boolean primary key default true check (only_one),
    value bytea not null default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
);
insert into service_secret default values;

-- Evaluations. The fingerprint identifies everything that determines the result. They outlive their index and
-- collection; an unfinished evaluation continues from where it stopped.
create table evaluation (
    id bigint generated always as identity primary key,
    fingerprint text not null,
    collection text not null,
    index bigint not null,
    revision bigint not null,
    dataset jsonb not null,  -- name, fingerprint, questions
    configuration jsonb not null,  -- without keys
    scores jsonb,
    started timestamptz not null default now(),
    ended timestamptz
);
create index evaluation_of_fingerprint on evaluation (fingerprint, id);

create table evaluated_question (
    evaluation bigint not null references evaluation on delete cascade,
    id text not null,  -- of the example: its question and reference sources
    question text not null,
    sources text[] not null,
    hits jsonb not null,
    degraded text[] not null,
    timings jsonb not null,  -- seconds
    answer jsonb,
    scores jsonb not null,  -- of the answer
    error text,
    asked_at timestamptz not null,
    attempts integer not null default 1,  -- limited, so that a question that always lacks a part is not asked forever
    primary key (evaluation, id)
);

-- Judgments, by the hash of everything that the judge was shown.
create table judgement (
    hash text primary key,
    dimension text not null,
    model text not null,
    score double precision,
    reasoning text not null,
    error text,
    created timestamptz not null default now(),
    check ((score is null) = (error is not null))
);

-- How good a language model is for a collection, and the form of answers that its trial recommends.
create table model_trial (
    collection text not null references collection (name) on delete cascade,
    endpoint text not null,
    model text not null,
    form text not null check (form in ('written', 'full', 'summary', 'quoted')),
    scores jsonb not null,
    tried timestamptz not null default clock_timestamp(),
    primary key (collection, endpoint, model)
);
