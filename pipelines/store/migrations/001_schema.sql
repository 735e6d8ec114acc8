-- All tables except the chunk tables: indexes.sql creates one `chunk_<index id>` per index.
-- «if not exists»: databases made before migrations were numbered have these tables already.

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

-- How each host's crawl of a run ended; a run deletes vanished pages only if all of its crawls are complete.
create table if not exists crawl (
    run bigint not null references run on delete cascade,
    host text not null,
    complete boolean not null,
    stopped_by text not null,
    counts jsonb not null,
    primary key (run, host)
);

-- The crawl frontier and the record of every page. `run` is the last one that saw it, `first_run` and
-- `changed_run` the ones that brought it and its present body. `body` is zlib-compressed, as fetched.
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

-- Which input (page body and metadata rules) of each page an index holds.
create table if not exists indexed_page (
    index bigint not null references index on delete cascade,
    url text not null,
    input_hash text not null,
    sections integer not null,
    primary key (index, url)
);

-- What a run has prepared and not yet published. Logged, so that a crash loses none of it.
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

-- Vectors not yet in a chunk table. They outlive the run that made them: nothing is embedded twice.
create table if not exists staged_vector (
    embed_hash text primary key,
    run bigint not null,
    embedding vector not null
);

-- Which page's task embeds a text in a run: the first to ask, and the same again when Ray repeats its task.
create table if not exists embedding_claim (
    run bigint not null references run on delete cascade,
    embed_hash text not null,
    url text not null,
    primary key (run, embed_hash)
);

-- What BM25 replicas replay after a publish.
create table if not exists change (
    index bigint not null references index on delete cascade,
    revision bigint not null,
    chunk_id text not null,
    op text not null check (op in ('upsert', 'delete')),
    primary key (index, revision, chunk_id)
);

-- Every question that was answered, or failed (`error`). `hits` and `citations` keep snippets, not whole texts, so
-- that a row stands for itself when its index is gone. `asked_at` is when its answer was ready: the row may come later.
create table if not exists question (
    id text primary key,
    collection text not null,
    conversation text not null,
    asked_at timestamptz not null,
    question text not null,
    standalone text not null,  -- the question condensed with its conversation, '' if it was not
    mode text not null,
    agent text not null,
    why text not null,  -- why this agent
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

-- No foreign key: feedback may arrive before its question's row, which is written behind the answer.
create table if not exists feedback (
    id bigint generated always as identity primary key,
    question_id text not null,
    rating smallint not null check (rating in (-1, 0, 1)),
    comment text not null,
    created timestamptz not null default now(),
    key_name text not null,
    unique (question_id, key_name)
);

-- Who may ask. Only hashes: the keys themselves are shown once and kept nowhere.
create table if not exists api_key (
    id bigint generated always as identity primary key,
    name text not null unique,
    hash bytea not null unique,
    scopes text[] not null,
    rate_per_minute integer,  -- null: the service's own
    created timestamptz not null default now(),
    expires timestamptz,
    revoked_at timestamptz,
    last_used timestamptz
);

-- One token bucket a key, shared by all replicas. Unlogged: a crash empties it, which fills every bucket.
create unlogged table if not exists rate_bucket (
    key text primary key,
    tokens double precision not null,
    allowed boolean not null,  -- whether the last request was let through
    updated timestamptz not null
);

-- Every evaluation: what was asked of what (its fingerprint names all of it) and what it came to. They outlive their
-- index and collection; one that did not end goes on where it stopped.
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
    id text not null,  -- of the example: question and reference sources
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

-- What judges said, by all that they were shown.
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
