-- All tables except the chunk tables: the store creates one `chunk_<index id>` per index (chunks.py). Columns that were
-- added to chunks later are added to staged_chunk too. "if not exists": databases that are older than numbered migrations
-- have these tables already.

create table if not exists collection (
    name text primary key,
    settings jsonb not null default '{}',
    created timestamptz not null default now()
);

create table if not exists run (
    id bigint generated always as identity primary key,
    collection text not null references collection on delete cascade,
    kind text not null,
    state text not null default 'running' check (state in ('running', 'done', 'failed', 'abandoned')),
    counts jsonb not null default '{}',
    error text,
    started timestamptz not null default now(),
    ended timestamptz
);
create index if not exists run_of_collection on run (collection, id);

-- How the crawl of each host ended; a run deletes vanished pages only if all of its crawls are complete.
create table if not exists crawl (
    run bigint not null references run on delete cascade,
    host text not null,
    complete boolean not null,
    stopped_by text not null,
    counts jsonb not null,
    primary key (run, host)
);

-- The crawl frontier and the state of every page. `run` is the last run that saw the page, `first_run` the first,
-- `changed_run` the one that fetched its current body. `body` is the fetched body, zlib-compressed.
create table if not exists page (
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
    primary key (collection, url)
);
alter table page alter column body set storage external;

create table if not exists index (
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
create unique index if not exists index_one_live on index (collection) where state = 'live';

-- The input (page body and metadata rules) of each page that an index holds.
create table if not exists indexed_page (
    index bigint not null references index on delete cascade,
    url text not null,
    input_hash text not null,
    sections integer not null,
    primary key (index, url)
);

-- Pages and chunks of a run that are not published yet. Logged tables, so that a crash loses none of them.
create table if not exists staged_page (
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

create table if not exists staged_chunk (
    run bigint not null references run on delete cascade,
    id text not null,
    url text not null,
    anchor text not null,
    anchors text[] not null,
    title text not null,
    headings text[] not null,
    ordinal integer not null,
    text text not null,
    text_hash text not null,
    embed_hash text not null,
    tokens integer not null,
    tags text[] not null,
    version text,
    language text not null,
    primary key (run, id)
);

-- Vectors that are not in a chunk table yet. They outlive their run, so that nothing is embedded twice.
create table if not exists staged_vector (
    embed_hash text primary key,
    run bigint not null,
    embedding vector not null
);

-- The page whose task embeds a text in a run: the first that needs it, and the same one when Ray repeats its task.
create table if not exists embedding_claim (
    run bigint not null references run on delete cascade,
    embed_hash text not null,
    url text not null,
    primary key (run, embed_hash)
);

-- The changes that BM25 replicas replay after a publish.
create table if not exists change (
    index bigint not null references index on delete cascade,
    revision bigint not null,
    chunk_id text not null,
    op text not null check (op in ('upsert', 'delete')),
    primary key (index, revision, chunk_id)
);

-- Every question, answered or failed (`error`). `hits` and `citations` hold snippets instead of whole texts, so that a
-- row can be read without its index. `asked_at` is when the answer was ready: the row may be written later.
create table if not exists question (
    id text primary key,
    collection text not null,
    conversation text not null,
    asked_at timestamptz not null,
    question text not null,
    standalone text not null,  -- the question condensed with its conversation, '' if that was not needed
    mode text not null,
    agent text not null,
    why text not null,  -- why this agent was chosen
    answer text not null,
    known boolean not null,
    citations jsonb not null,
    hits jsonb not null,
    queries text[] not null,
    degraded text[] not null,
    prompt_tokens integer not null,
    completion_tokens integer not null,
    calls integer not null,
    cost double precision not null,  -- US dollars
    timings jsonb not null,  -- seconds
    index bigint,
    revision bigint,
    key_name text not null,  -- '': asked without a key
    error text
);
create index if not exists question_asked_at on question (asked_at);
create index if not exists question_of_conversation on question (conversation, asked_at) where conversation <> '';

-- No foreign key: feedback may arrive before its question's row, which is written after the answer was sent.
create table if not exists feedback (
    id bigint generated always as identity primary key,
    question_id text not null,
    rating smallint not null check (rating in (-1, 0, 1)),
    comment text not null,
    created timestamptz not null default now(),
    key_name text not null,
    unique (question_id, key_name)
);

-- API keys, as hashes only: a key itself is shown once and stored nowhere.
create table if not exists api_key (
    id bigint generated always as identity primary key,
    name text not null unique,
    hash bytea not null unique,
    scopes text[] not null,
    rate_per_minute integer,  -- null: the service's rate
    created timestamptz not null default now(),
    expires timestamptz,
    revoked_at timestamptz,
    last_used timestamptz
);

-- One token bucket per key, shared by all replicas. Unlogged: a crash empties the table, which fills every bucket.
create unlogged table if not exists rate_bucket (
    key text primary key,
    tokens double precision not null,
    allowed boolean not null,  -- whether the last request was allowed
    updated timestamptz not null
);

-- Evaluations. The fingerprint names everything that decides the result. They outlive their index and collection; one
-- that has not ended is continued where it stopped.
create table if not exists evaluation (
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
create index if not exists evaluation_of_fingerprint on evaluation (fingerprint, id);

create table if not exists evaluated_question (
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
    primary key (evaluation, id)
);

-- Judgements, by the hash of everything that the judge was shown.
create table if not exists judgement (
    hash text primary key,
    dimension text not null,
    model text not null,
    score double precision,
    reasoning text not null,
    error text,
    created timestamptz not null default now(),
    check ((score is null) = (error is not null))
);
