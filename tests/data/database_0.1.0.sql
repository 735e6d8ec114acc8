-- A database of Raydex 0.1.0, written by pg_dump --inserts: a collection with pages and a live index of revision 2, a run
-- that staged a page and died, and one row of most other things. It never changes: later versions have to read it.
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.announcement (
    id bigint NOT NULL,
    collection text NOT NULL,
    delivery text,
    changed text[] NOT NULL,
    deleted text[] NOT NULL,
    received timestamp with time zone DEFAULT now() NOT NULL,
    due timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    run bigint,
    ended timestamp with time zone,
    error text
);
ALTER TABLE public.announcement ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.announcement_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.api_key (
    id bigint NOT NULL,
    name text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    origins text[] DEFAULT ARRAY[]::text[] NOT NULL,
    collections text[] DEFAULT ARRAY[]::text[] NOT NULL,
    rate_per_minute integer,
    created timestamp with time zone DEFAULT now() NOT NULL,
    expires timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used timestamp with time zone
);
ALTER TABLE public.api_key ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.change (
    index bigint NOT NULL,
    revision bigint NOT NULL,
    chunk_id text NOT NULL,
    op text NOT NULL,
    CONSTRAINT change_op_check CHECK ((op = ANY (ARRAY['upsert'::text, 'delete'::text])))
);
CREATE TABLE public.chunk_1 (
    id text NOT NULL,
    url text NOT NULL,
    anchor text NOT NULL,
    anchors text[] NOT NULL,
    title text NOT NULL,
    headings text[] NOT NULL,
    ordinal integer NOT NULL,
    text text NOT NULL,
    text_hash text NOT NULL,
    embed_hash text NOT NULL,
    tokens integer NOT NULL,
    tags text[] NOT NULL,
    version text,
    language text NOT NULL,
    plain text NOT NULL,
    embedding public.vector(8) NOT NULL
);
ALTER TABLE ONLY public.chunk_1 ALTER COLUMN embedding SET STORAGE MAIN;
CREATE TABLE public.click (
    shown text NOT NULL,
    source text NOT NULL,
    question_id text,
    collection text NOT NULL,
    query text DEFAULT ''::text NOT NULL,
    opened_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.collection (
    name text NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    is_default boolean DEFAULT false NOT NULL,
    announcing_secret text
);
CREATE TABLE public.crawl (
    run bigint NOT NULL,
    host text NOT NULL,
    complete boolean NOT NULL,
    stopped_by text NOT NULL,
    counts jsonb NOT NULL
);
CREATE TABLE public.embedding_claim (
    run bigint NOT NULL,
    embed_hash text NOT NULL,
    url text NOT NULL
);
CREATE TABLE public.evaluated_question (
    evaluation bigint NOT NULL,
    id text NOT NULL,
    question text NOT NULL,
    sources text[] NOT NULL,
    hits jsonb NOT NULL,
    degraded text[] NOT NULL,
    timings jsonb NOT NULL,
    answer jsonb,
    scores jsonb NOT NULL,
    error text,
    asked_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 1 NOT NULL
);
CREATE TABLE public.evaluation (
    id bigint NOT NULL,
    fingerprint text NOT NULL,
    collection text NOT NULL,
    index bigint NOT NULL,
    revision bigint NOT NULL,
    dataset jsonb NOT NULL,
    configuration jsonb NOT NULL,
    scores jsonb,
    started timestamp with time zone DEFAULT now() NOT NULL,
    ended timestamp with time zone
);
ALTER TABLE public.evaluation ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.evaluation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.feedback (
    id bigint NOT NULL,
    question_id text NOT NULL,
    rating smallint NOT NULL,
    reasons text[] DEFAULT ARRAY[]::text[] NOT NULL,
    comment text NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL,
    key_name text NOT NULL,
    CONSTRAINT feedback_rating_check CHECK ((rating = ANY (ARRAY['-1'::integer, 0, 1])))
);
ALTER TABLE public.feedback ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.feedback_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.index (
    id bigint NOT NULL,
    collection text NOT NULL,
    fingerprint text NOT NULL,
    settings jsonb NOT NULL,
    state text NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    stats jsonb DEFAULT '{}'::jsonb NOT NULL,
    published_at timestamp with time zone,
    created timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT index_state_check CHECK ((state = ANY (ARRAY['building'::text, 'candidate'::text, 'live'::text, 'retired'::text, 'failed'::text])))
);
ALTER TABLE public.index ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.index_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.indexed_page (
    index bigint NOT NULL,
    url text NOT NULL,
    input_hash text NOT NULL,
    sections integer NOT NULL
);
CREATE TABLE public.judgement (
    hash text NOT NULL,
    dimension text NOT NULL,
    model text NOT NULL,
    score double precision,
    reasoning text NOT NULL,
    error text,
    created timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT judgement_check CHECK (((score IS NULL) = (error IS NOT NULL)))
);
CREATE TABLE public.layout (
    collection text NOT NULL,
    sample text NOT NULL,
    sites jsonb NOT NULL
);
CREATE TABLE public.listing (
    collection text NOT NULL,
    base_url text NOT NULL,
    urls text[] NOT NULL
);
CREATE TABLE public.model_trial (
    collection text NOT NULL,
    endpoint text NOT NULL,
    model text NOT NULL,
    form text NOT NULL,
    scores jsonb NOT NULL,
    tried timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT model_trial_form_check CHECK ((form = ANY (ARRAY['written'::text, 'full'::text, 'summary'::text, 'quoted'::text])))
);
CREATE TABLE public.page (
    collection text NOT NULL,
    url text NOT NULL,
    state text NOT NULL,
    http_status integer,
    etag text,
    content_hash text,
    body bytea,
    content_type text DEFAULT 'text/html'::text NOT NULL,
    charset text,
    links text[] DEFAULT ARRAY[]::text[] NOT NULL,
    canonical text,
    title text,
    language text,
    tags text[] DEFAULT ARRAY[]::text[] NOT NULL,
    version text,
    attempts integer DEFAULT 0 NOT NULL,
    unreadable text,
    error text,
    fetched_at timestamp with time zone,
    run bigint NOT NULL,
    first_run bigint NOT NULL,
    changed_run bigint,
    file_stamp text,
    checked_at timestamp with time zone,
    changed_at timestamp with time zone,
    sketch text,
    copy_of text,
    CONSTRAINT page_state_check CHECK ((state = ANY (ARRAY['ok'::text, 'failed'::text, 'gone'::text, 'skipped'::text, 'redirect'::text, 'duplicate'::text])))
);
ALTER TABLE ONLY public.page ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE public.publication (
    index bigint NOT NULL,
    revision bigint NOT NULL,
    published_at timestamp with time zone DEFAULT now() NOT NULL,
    run bigint NOT NULL,
    returned_to bigint,
    pages_added bigint DEFAULT 0 NOT NULL,
    pages_changed bigint DEFAULT 0 NOT NULL,
    pages_removed bigint DEFAULT 0 NOT NULL,
    chunks_added bigint DEFAULT 0 NOT NULL,
    chunks_changed bigint DEFAULT 0 NOT NULL,
    chunks_removed bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.question (
    id text NOT NULL,
    collection text NOT NULL,
    conversation text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    question text NOT NULL,
    standalone text NOT NULL,
    mode text NOT NULL,
    known boolean NOT NULL,
    answer jsonb,
    cited text[] DEFAULT ARRAY[]::text[],
    index bigint,
    key_name text NOT NULL,
    error text,
    channel text DEFAULT 'api'::text,
    page text DEFAULT ''::text,
    language text DEFAULT ''::text,
    shared_at timestamp with time zone
);
CREATE UNLOGGED TABLE public.rate_bucket (
    key text NOT NULL,
    tokens double precision NOT NULL,
    allowed boolean NOT NULL,
    updated timestamp with time zone NOT NULL
);
CREATE TABLE public.replaced_chunk (
    index bigint NOT NULL,
    revision bigint NOT NULL,
    chunk_id text NOT NULL,
    op text NOT NULL,
    old jsonb,
    embedding public.vector,
    CONSTRAINT replaced_chunk_op_check CHECK ((op = ANY (ARRAY['added'::text, 'changed'::text, 'removed'::text])))
);
CREATE TABLE public.replaced_page (
    index bigint NOT NULL,
    revision bigint NOT NULL,
    url text NOT NULL,
    op text NOT NULL,
    input_hash text,
    sections integer,
    title text,
    language text,
    tags text[],
    version text,
    CONSTRAINT replaced_page_op_check CHECK ((op = ANY (ARRAY['added'::text, 'changed'::text, 'removed'::text])))
);
CREATE TABLE public.run (
    id bigint NOT NULL,
    collection text NOT NULL,
    kind text NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    steps jsonb DEFAULT '{}'::jsonb NOT NULL,
    error text,
    started timestamp with time zone DEFAULT now() NOT NULL,
    ended timestamp with time zone,
    CONSTRAINT run_state_check CHECK ((state = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text, 'interrupted'::text, 'abandoned'::text])))
);
ALTER TABLE public.run ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.schema_version (
    number integer NOT NULL,
    name text NOT NULL,
    raydex text NOT NULL,
    applied timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.service_secret (
    only_one boolean DEFAULT true NOT NULL,
    value bytea DEFAULT decode(replace(((gen_random_uuid())::text || (gen_random_uuid())::text), '-'::text, ''::text), 'hex'::text) NOT NULL,
    CONSTRAINT service_secret_only_one_check CHECK (only_one)
);
CREATE TABLE public.staged_chunk (
    run bigint NOT NULL,
    id text NOT NULL,
    url text NOT NULL,
    anchor text NOT NULL,
    anchors text[] NOT NULL,
    title text NOT NULL,
    headings text[] NOT NULL,
    ordinal integer NOT NULL,
    text text NOT NULL,
    plain text NOT NULL,
    text_hash text NOT NULL,
    embed_hash text NOT NULL,
    tokens integer NOT NULL,
    tags text[] NOT NULL,
    version text,
    language text NOT NULL
);
CREATE TABLE public.staged_page (
    run bigint NOT NULL,
    url text NOT NULL,
    input_hash text NOT NULL,
    title text NOT NULL,
    language text NOT NULL,
    tags text[] NOT NULL,
    version text,
    sections integer NOT NULL,
    chunks integer NOT NULL
);
CREATE TABLE public.staged_vector (
    embed_hash text NOT NULL,
    run bigint NOT NULL,
    embedding public.vector NOT NULL
);
CREATE TABLE public.verified_answer (
    id bigint NOT NULL,
    collection text NOT NULL,
    questions text[] NOT NULL,
    answer text NOT NULL,
    sections jsonb NOT NULL,
    retired boolean DEFAULT false NOT NULL,
    written timestamp with time zone DEFAULT now() NOT NULL,
    changed timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE public.verified_answer ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.verified_answer_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO public.announcement OVERRIDING SYSTEM VALUE VALUES (1, 'docs', 'first', '{https://docs.test/p02}', '{}', '2026-11-29 21:48:33.04402+00', '2026-11-29 21:48:33.04402+00', 0, NULL, NULL, NULL);
INSERT INTO public.api_key OVERRIDING SYSTEM VALUE VALUES (1, 'ci', '\x352855399551325cb79f5d20fdc5aaceb3c993d76b9f55a2c5250bd0e758affd', '{query}', '{}', '{}', 60, '2026-11-29 21:48:32.160751+00', NULL, NULL, NULL);
INSERT INTO public.change VALUES (1, 2, 'ea0c618c06ba3bed39f9dbbf37dc3132', 'delete');
INSERT INTO public.change VALUES (1, 2, 'c85e2abb643dd7af778afbea3cfcdf39', 'delete');
INSERT INTO public.change VALUES (1, 2, 'f77b6610874f179912336c336597530e', 'delete');
INSERT INTO public.change VALUES (1, 2, '9010d4541aa0347f5dd1abe08a973db4', 'delete');
INSERT INTO public.change VALUES (1, 2, '9df394c55abed50b6fbb40f9b1af1b9f', 'upsert');
INSERT INTO public.chunk_1 VALUES ('2925ec81015a5e1bc550169dc1991542', 'https://docs.test/p00', 's1', '{s1}', 'Title', '{Title,s1}', 1, 'The bababa of part 1 on page 0 is hekiba.', 'b70d5fd1a0584aa50424360f941deacb', '974e5fd452264263be371fafcfff4de9', 14, '{}', NULL, 'en', 'The bababa of part 1 on page 0 is hekiba.', '[0.5,0.16666667,0.33333334,0.33333334,0,0,0.5,0.5]');
INSERT INTO public.chunk_1 VALUES ('2e410d3bbdfa9ae6349f3e046ec83231', 'https://docs.test/p03', 's1', '{s1}', 'Title', '{Title,s1}', 1, 'The fobaba of part 1 on page 3 is rokiba.', '0b1cb51d3aabee5fc00f0c7ef209cd7b', 'cf26ba621d9c2d8c7d5e994cfc6df794', 14, '{}', NULL, 'en', 'The fobaba of part 1 on page 3 is rokiba.', '[0.5,0,0.33333334,0.5,0.16666667,0,0.5,0.33333334]');
INSERT INTO public.chunk_1 VALUES ('5c32546b1cffe7e8da8f02079218a379', 'https://docs.test/p03', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'The fobaba of part 0 on page 3 is pikiba.', '0cff3f8168963d52880d1bc2be797379', '375a65e1bf692340b1a9480503ec802c', 14, '{}', NULL, 'en', 'The fobaba of part 0 on page 3 is pikiba.', '[0.5,0.16666667,0.33333334,0.33333334,0.16666667,0,0.6666667,0.16666667]');
INSERT INTO public.chunk_1 VALUES ('d6a4a3a7ed13714f65bcca210040887d', 'https://docs.test/p00', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'The bababa of part 0 on page 0 is gakiba.', '29f9db05b681300b0da62cd241ca0ea8', '22ba07e0bb6563574243436512336997', 14, '{}', NULL, 'en', 'The bababa of part 0 on page 0 is gakiba.', '[0.32444283,0.32444283,0.48666427,0.32444283,0,0,0.64888567,0.16222142]');
INSERT INTO public.chunk_1 VALUES ('9df394c55abed50b6fbb40f9b1af1b9f', 'https://docs.test/p02', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'Another text on page 2.', 'f69abff31f762a39a6fa62cd9480e582', 'cd90830356ef7e3083b5738fc93e3d8a', 9, '{}', NULL, 'en', 'Another text on page 2.', '[0.7276069,0,0.24253564,0.24253564,0,0.24253564,0.48507127,0.24253564]');
INSERT INTO public.click VALUES ('q1', 'https://docs.test/p02#s0', 'q1', 'docs', '', '2026-11-29 21:48:32.074379+00');
INSERT INTO public.collection VALUES ('docs', '{}', '2026-11-29 21:48:27.960092+00', false, NULL);
INSERT INTO public.embedding_claim VALUES (3, '347c4c91a88d48b1921cd565c82ab4c0', 'https://docs.test/p05');
INSERT INTO public.evaluated_question VALUES (1, 'one', 'How?', '{a#x}', '[{"score": 0.5, "sources": ["a#x"]}]', '{}', '{}', NULL, '{"similarity": 0.5}', NULL, '2026-11-29 21:48:32.440439+00', 1);
INSERT INTO public.evaluation OVERRIDING SYSTEM VALUE VALUES (1, 'f', 'docs', 1, 2, '{"name": "set"}', '{"k": 5}', '{"mrr": 0.5}', '2026-11-29 21:48:32.406207+00', '2026-11-29 21:48:32.611996+00');
INSERT INTO public.feedback OVERRIDING SYSTEM VALUE VALUES (1, 'q1', 1, '{}', 'good', '2026-11-29 21:48:32.028733+00', 'ci');
INSERT INTO public.index OVERRIDING SYSTEM VALUE VALUES (1, 'docs', '2b36b20aea09ac475f153a42ea3148bb', '{"html": {}, "model": "hash:8", "pooling": null, "identity": "hash:8", "dimension": 8, "chunk_size": 0, "chunk_unit": "tokens", "sectioning": 16, "vector_type": "vector", "chunk_prefix": null, "query_prefix": null, "chunk_overlap": 0}', 'live', 2, '{"pages": 3, "chunks": 5, "listings": 0, "sections": 5}', '2026-11-29 21:48:31.072433+00', '2026-11-29 21:48:29.148157+00');
INSERT INTO public.indexed_page VALUES (1, 'https://docs.test/p00', 'ddd378d89650335e66384a9e1858f39caf5570f5', 2);
INSERT INTO public.indexed_page VALUES (1, 'https://docs.test/p03', '1bfbe3e83467b16ddc66513d20edce1baf5570f5', 2);
INSERT INTO public.indexed_page VALUES (1, 'https://docs.test/p02', '181fba693d6ce5d14fb46973e09a971daf5570f5', 1);
INSERT INTO public.judgement VALUES ('h1', 'quality', 'judge', 4, 'because', NULL, '2026-11-29 21:48:32.666754+00');
INSERT INTO public.model_trial VALUES ('docs', 'http://127.0.0.1:11434/v1', 'small', 'written', '{"support": 0.9}', '2026-11-29 21:48:32.749347+00');
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p00', 'ok', 200, NULL, 'ddd378d89650335e66384a9e1858f39c', '\x789cab562a3650b252500ac94855484a044185fc348582c4a212050385fc3c202b3d15c8ca2c56484fccce4c4ad453d251502a36c4a1c510554b462a444b2d0028721f08', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, NULL, '2026-11-29 21:48:33.588737+00', 3, 1, 1, NULL, '2026-11-29 21:48:33.588737+00', '2026-11-29 21:48:28.450984+00', NULL, NULL);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p01', 'gone', NULL, NULL, '3b0a288ede2d594f38b9cb6cbf59f543', '\x789cab562a3650b252500ac94855484e4d4a4c4a54c84f5328482c2a513050c8cf03b2d253150c15328b15b233b3339312f5947414948a0d71683144d592930fd1520b002e7a1f2e', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, 'is gone', '2026-11-29 21:48:33.588737+00', 3, 1, 1, NULL, '2026-11-29 21:48:28.450984+00', '2026-11-29 21:48:28.450984+00', NULL, NULL);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p02', 'ok', 200, NULL, '181fba693d6ce5d14fb46973e09a971d', '\x789cab562a3650b2525072cccb2fc9482d522849ad2851c8cf5328484c4f5530d253aa0500af970a6e', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, NULL, '2026-11-29 21:48:33.588737+00', 3, 1, 2, NULL, '2026-11-29 21:48:33.588737+00', '2026-11-29 21:48:30.339216+00', NULL, NULL);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p03', 'ok', 200, NULL, '1bfbe3e83467b16ddc66513d20edce1b', '\x789cab562a3650b252500ac9485548cb4f4a4c4a54c84f5328482c2a513050c8cf03b2d253158c15328b150a32b3339312f5947414948a0d71683144d552940fd1520b0036f31f57', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, NULL, '2026-11-29 21:48:33.588737+00', 3, 1, 1, NULL, '2026-11-29 21:48:33.588737+00', '2026-11-29 21:48:28.450984+00', NULL, NULL);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p05', 'ok', 200, NULL, 'a473897548e7fa2790c48685e28055ee', '\x789cab562a3650b252500a2e494c4f4d5148cc4b51c84b2d4b2d5228284dcac92cce484dd153aa0500dfec0c77', 'text/html', NULL, '{}', NULL, NULL, NULL, '{}', NULL, 0, NULL, NULL, '2026-11-29 21:48:33.588737+00', 3, 3, 3, NULL, '2026-11-29 21:48:33.588737+00', '2026-11-29 21:48:33.588737+00', NULL, NULL);
INSERT INTO public.publication VALUES (1, 1, '2026-11-29 21:48:29.726029+00', 1, NULL, 0, 0, 0, 0, 0, 0);
INSERT INTO public.publication VALUES (1, 2, '2026-11-29 21:48:31.072433+00', 2, NULL, 0, 1, 1, 1, 0, 4);
INSERT INTO public.question VALUES ('q1', 'docs', 'talk', '2026-11-29 21:48:31.956799+00', 'How?', '', '', true, '{"id": "q1", "form": "answer", "hits": [{"url": "https://docs.test/p02", "tags": [], "text": "Another text on page 2.", "below": "", "plain": "Another text on page 2.", "ranks": {}, "score": 0.9411764776005477, "title": "Title", "scores": {}, "anchors": ["s0"], "context": "", "ordinal": 0, "sources": [], "version": null, "chunk_id": "9df394c55abed50b6fbb40f9b1af1b9f", "headings": ["Title", "s0"], "language": "en", "text_hash": "f69abff31f762a39a6fa62cd9480e582", "score_kind": "cosine"}], "text": "So [1].", "agent": "docs", "index": 1, "known": true, "notes": [], "route": {"why": "", "agent": "docs"}, "usage": {"cost": 0.0, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0}, "claims": {"cited": 0, "total": 0, "supported": 0, "unsupported": []}, "queries": [], "timings": {}, "degraded": [], "question": "How?", "revision": 2, "citations": [{"n": 1, "by": "model", "title": "Title", "scores": {}, "source": "https://docs.test/p02#s0", "changed": "", "checked": "", "snippet": "Another text", "support": 1.0, "headings": [], "supported": true}], "exchanges": [], "collection": "docs", "confidence": "low", "finish_reason": "stop"}', '{9df394c55abed50b6fbb40f9b1af1b9f}', 1, 'ci', NULL, 'api', '', '', NULL);
INSERT INTO public.question VALUES ('q2', 'docs', 'talk', '2026-11-29 21:48:31.956841+00', 'And then?', '', '', false, NULL, '{}', NULL, 'ci', 'away', 'api', '', '', NULL);
INSERT INTO public.replaced_chunk VALUES (1, 2, 'ea0c618c06ba3bed39f9dbbf37dc3132', 'removed', '{"id": "ea0c618c06ba3bed39f9dbbf37dc3132", "url": "https://docs.test/p01", "tags": [], "text": "The cebaba of part 1 on page 1 is lokiba.", "plain": "The cebaba of part 1 on page 1 is lokiba.", "title": "Title", "anchor": "s1", "tokens": 14, "anchors": ["s1"], "ordinal": 1, "version": null, "headings": ["Title", "s1"], "language": "en", "text_hash": "1a849a4254e9787400364e8b8bfd097c", "embed_hash": "e4cb9700e17f46792503832e02281644"}', '[0.5897678,0,0.2948839,0.14744195,0,0,0.5897678,0.44232586]');
INSERT INTO public.replaced_chunk VALUES (1, 2, 'c85e2abb643dd7af778afbea3cfcdf39', 'removed', '{"id": "c85e2abb643dd7af778afbea3cfcdf39", "url": "https://docs.test/p01", "tags": [], "text": "The cebaba of part 0 on page 1 is kikiba.", "plain": "The cebaba of part 0 on page 1 is kikiba.", "title": "Title", "anchor": "s0", "tokens": 14, "anchors": ["s0"], "ordinal": 0, "version": null, "headings": ["Title", "s0"], "language": "en", "text_hash": "a6b4fbbc9db0f275a5d14bb154662b3c", "embed_hash": "c9b8dc12321e03f2716d187419ace00f"}', '[0.452267,0.15075567,0.30151135,0.15075567,0,0,0.75377834,0.30151135]');
INSERT INTO public.replaced_chunk VALUES (1, 2, 'f77b6610874f179912336c336597530e', 'removed', '{"id": "f77b6610874f179912336c336597530e", "url": "https://docs.test/p02", "tags": [], "text": "The dibaba of part 0 on page 2 is makiba.", "plain": "The dibaba of part 0 on page 2 is makiba.", "title": "Title", "anchor": "s0", "tokens": 14, "anchors": ["s0"], "ordinal": 0, "version": null, "headings": ["Title", "s0"], "language": "en", "text_hash": "11cd36844252932c8401c4cdefef2327", "embed_hash": "f42f1b3646e7ce65fc9b24840b3b7fa9"}', '[0.35355338,0.17677669,0.35355338,0.17677669,0.17677669,0.17677669,0.70710677,0.35355338]');
INSERT INTO public.replaced_chunk VALUES (1, 2, '9010d4541aa0347f5dd1abe08a973db4', 'removed', '{"id": "9010d4541aa0347f5dd1abe08a973db4", "url": "https://docs.test/p02", "tags": [], "text": "The dibaba of part 1 on page 2 is nekiba.", "plain": "The dibaba of part 1 on page 2 is nekiba.", "title": "Title", "anchor": "s1", "tokens": 14, "anchors": ["s1"], "ordinal": 1, "version": null, "headings": ["Title", "s1"], "language": "en", "text_hash": "796fa41cc24fed482bc0dcb3abbcbd24", "embed_hash": "df2ab38b9b85dd16f72e3668cbabcfcf"}', '[0.48666427,0,0.48666427,0.16222142,0,0.16222142,0.48666427,0.48666427]');
INSERT INTO public.replaced_chunk VALUES (1, 2, '9df394c55abed50b6fbb40f9b1af1b9f', 'added', NULL, NULL);
INSERT INTO public.replaced_page VALUES (1, 2, 'https://docs.test/p01', 'removed', '3b0a288ede2d594f38b9cb6cbf59f543af5570f5', 2, 'Title', 'en', '{}', NULL);
INSERT INTO public.replaced_page VALUES (1, 2, 'https://docs.test/p02', 'changed', 'd4052171895c1e267c8fab36fbea04dbaf5570f5', 2, 'Title', 'en', '{}', NULL);
INSERT INTO public.run OVERRIDING SYSTEM VALUE VALUES (1, 'docs', 'reindex', 'done', '{}', '{"drop": [], "build": {"index": 1, "changed": true, "deleted": 0, "written": 8, "in_place": false, "revision": 0, "published": false, "pages_deleted": 0}, "promote 1": 1}', NULL, '2026-11-29 21:48:27.960092+00', '2026-11-29 21:48:29.851124+00');
INSERT INTO public.run OVERRIDING SYSTEM VALUE VALUES (2, 'docs', 'reindex', 'done', '{}', '{"change": {"index": 1, "changed": true, "deleted": 4, "written": 1, "in_place": true, "revision": 2, "published": true, "pages_deleted": 1}}', NULL, '2026-11-29 21:48:30.258896+00', '2026-11-29 21:48:31.718788+00');
INSERT INTO public.run OVERRIDING SYSTEM VALUE VALUES (3, 'docs', 'reindex', 'running', '{}', '{}', NULL, '2026-11-29 21:48:33.455995+00', NULL);
INSERT INTO public.schema_version VALUES (1, 'schema', '0.1.0', '2026-11-29 21:48:25.030092+00');
INSERT INTO public.service_secret VALUES (true, '\x7451e4eb3a794ef1a3d4b4c6fa68d441bceac8e4d2df4cca848ea6befe9d8195');
INSERT INTO public.staged_chunk VALUES (3, '4542bb77ba990f3c2e8ae11322d3d481', 'https://docs.test/p05', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'Staged and never published.', 'Staged and never published.', '1ec7dfa8ca535a0c46624ac5a7197c02', '347c4c91a88d48b1921cd565c82ab4c0', 8, '{}', NULL, 'en');
INSERT INTO public.staged_page VALUES (3, 'https://docs.test/p05', 'a473897548e7fa2790c48685e28055eeaf5570f5', 'Title', 'en', '{}', NULL, 1, 1);
INSERT INTO public.staged_vector VALUES ('347c4c91a88d48b1921cd565c82ab4c0', 3, '[0.28867513,0,0.28867513,0.57735026,0,0.28867513,0.57735026,0.28867513]');
INSERT INTO public.verified_answer OVERRIDING SYSTEM VALUE VALUES (1, 'docs', '{How?}', 'So [1].', '[{"text": "Another text on page 2.", "source": "https://docs.test/p02#s0", "text_hash": "f69abff31f762a39a6fa62cd9480e582"}]', false, '2026-11-29 21:48:32.800836+00', '2026-11-29 21:48:32.801491+00');
SELECT pg_catalog.setval('public.announcement_id_seq', 1, true);
SELECT pg_catalog.setval('public.api_key_id_seq', 1, true);
SELECT pg_catalog.setval('public.evaluation_id_seq', 1, true);
SELECT pg_catalog.setval('public.feedback_id_seq', 1, true);
SELECT pg_catalog.setval('public.index_id_seq', 1, true);
SELECT pg_catalog.setval('public.run_id_seq', 3, true);
SELECT pg_catalog.setval('public.verified_answer_id_seq', 1, true);
ALTER TABLE ONLY public.announcement
    ADD CONSTRAINT announcement_collection_delivery_key UNIQUE (collection, delivery);
ALTER TABLE ONLY public.announcement
    ADD CONSTRAINT announcement_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_name_key UNIQUE (name);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.change
    ADD CONSTRAINT change_pkey PRIMARY KEY (index, revision, chunk_id);
ALTER TABLE ONLY public.chunk_1
    ADD CONSTRAINT chunk_1_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.click
    ADD CONSTRAINT click_pkey PRIMARY KEY (shown, source);
ALTER TABLE ONLY public.collection
    ADD CONSTRAINT collection_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.crawl
    ADD CONSTRAINT crawl_pkey PRIMARY KEY (run, host);
ALTER TABLE ONLY public.embedding_claim
    ADD CONSTRAINT embedding_claim_pkey PRIMARY KEY (run, embed_hash);
ALTER TABLE ONLY public.evaluated_question
    ADD CONSTRAINT evaluated_question_pkey PRIMARY KEY (evaluation, id);
ALTER TABLE ONLY public.evaluation
    ADD CONSTRAINT evaluation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_question_id_key_name_key UNIQUE (question_id, key_name);
ALTER TABLE ONLY public.index
    ADD CONSTRAINT index_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.indexed_page
    ADD CONSTRAINT indexed_page_pkey PRIMARY KEY (index, url);
ALTER TABLE ONLY public.judgement
    ADD CONSTRAINT judgement_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.layout
    ADD CONSTRAINT layout_pkey PRIMARY KEY (collection);
ALTER TABLE ONLY public.listing
    ADD CONSTRAINT listing_pkey PRIMARY KEY (collection, base_url);
ALTER TABLE ONLY public.model_trial
    ADD CONSTRAINT model_trial_pkey PRIMARY KEY (collection, endpoint, model);
ALTER TABLE ONLY public.page
    ADD CONSTRAINT page_pkey PRIMARY KEY (collection, url);
ALTER TABLE ONLY public.publication
    ADD CONSTRAINT publication_pkey PRIMARY KEY (index, revision);
ALTER TABLE ONLY public.question
    ADD CONSTRAINT question_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rate_bucket
    ADD CONSTRAINT rate_bucket_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.replaced_chunk
    ADD CONSTRAINT replaced_chunk_pkey PRIMARY KEY (index, revision, chunk_id);
ALTER TABLE ONLY public.replaced_page
    ADD CONSTRAINT replaced_page_pkey PRIMARY KEY (index, revision, url);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.service_secret
    ADD CONSTRAINT service_secret_pkey PRIMARY KEY (only_one);
ALTER TABLE ONLY public.staged_chunk
    ADD CONSTRAINT staged_chunk_pkey PRIMARY KEY (run, id);
ALTER TABLE ONLY public.staged_page
    ADD CONSTRAINT staged_page_pkey PRIMARY KEY (run, url);
ALTER TABLE ONLY public.staged_vector
    ADD CONSTRAINT staged_vector_pkey PRIMARY KEY (embed_hash);
ALTER TABLE ONLY public.verified_answer
    ADD CONSTRAINT verified_answer_pkey PRIMARY KEY (id);
CREATE INDEX announcement_to_come ON public.announcement USING btree (collection, id) WHERE (ended IS NULL);
CREATE INDEX chunk_1_embed_hash_idx ON public.chunk_1 USING btree (embed_hash);
CREATE INDEX chunk_1_embedding_idx ON public.chunk_1 USING hnsw (embedding public.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX chunk_1_language_idx ON public.chunk_1 USING btree (language);
CREATE INDEX chunk_1_tags_idx ON public.chunk_1 USING gin (tags);
CREATE INDEX chunk_1_url_idx ON public.chunk_1 USING btree (url);
CREATE INDEX chunk_1_url_idx1 ON public.chunk_1 USING btree (url COLLATE "C");
CREATE INDEX chunk_1_version_idx ON public.chunk_1 USING btree (version);
CREATE INDEX click_of_question ON public.click USING btree (question_id) WHERE (question_id IS NOT NULL);
CREATE INDEX click_opened_at ON public.click USING btree (opened_at);
CREATE UNIQUE INDEX collection_one_default ON public.collection USING btree (is_default) WHERE is_default;
CREATE INDEX evaluation_of_fingerprint ON public.evaluation USING btree (fingerprint, id);
CREATE UNIQUE INDEX index_one_live ON public.index USING btree (collection) WHERE (state = 'live'::text);
CREATE INDEX question_asked_at ON public.question USING btree (asked_at);
CREATE INDEX question_of_conversation ON public.question USING btree (conversation, asked_at) WHERE (conversation <> ''::text);
CREATE INDEX run_of_collection ON public.run USING btree (collection, id);
CREATE INDEX verified_answer_of_collection ON public.verified_answer USING btree (collection);
ALTER TABLE ONLY public.announcement
    ADD CONSTRAINT announcement_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.announcement
    ADD CONSTRAINT announcement_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.change
    ADD CONSTRAINT change_index_fkey FOREIGN KEY (index) REFERENCES public.index(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.click
    ADD CONSTRAINT click_question_id_fkey FOREIGN KEY (question_id) REFERENCES public.question(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl
    ADD CONSTRAINT crawl_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.embedding_claim
    ADD CONSTRAINT embedding_claim_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.evaluated_question
    ADD CONSTRAINT evaluated_question_evaluation_fkey FOREIGN KEY (evaluation) REFERENCES public.evaluation(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.index
    ADD CONSTRAINT index_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.indexed_page
    ADD CONSTRAINT indexed_page_index_fkey FOREIGN KEY (index) REFERENCES public.index(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.layout
    ADD CONSTRAINT layout_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.listing
    ADD CONSTRAINT listing_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.model_trial
    ADD CONSTRAINT model_trial_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.page
    ADD CONSTRAINT page_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.publication
    ADD CONSTRAINT publication_index_fkey FOREIGN KEY (index) REFERENCES public.index(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.replaced_chunk
    ADD CONSTRAINT replaced_chunk_index_revision_fkey FOREIGN KEY (index, revision) REFERENCES public.publication(index, revision) ON DELETE CASCADE;
ALTER TABLE ONLY public.replaced_page
    ADD CONSTRAINT replaced_page_index_revision_fkey FOREIGN KEY (index, revision) REFERENCES public.publication(index, revision) ON DELETE CASCADE;
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.staged_chunk
    ADD CONSTRAINT staged_chunk_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.staged_page
    ADD CONSTRAINT staged_page_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.verified_answer
    ADD CONSTRAINT verified_answer_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
