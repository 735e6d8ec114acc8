-- A database as Raydex made it before its schema had numbered migrations, written by pg_dump --inserts: a collection
-- with pages and a live index of revision 2, a run that staged a page and died, and one row of everything else.
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.api_key (
    id bigint NOT NULL,
    name text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
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
    embedding public.vector(8) NOT NULL
);
CREATE TABLE public.collection (
    name text NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    created timestamp with time zone DEFAULT now() NOT NULL
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
    asked_at timestamp with time zone NOT NULL
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
    CONSTRAINT page_state_check CHECK ((state = ANY (ARRAY['ok'::text, 'failed'::text, 'gone'::text, 'skipped'::text, 'redirect'::text, 'duplicate'::text])))
);
ALTER TABLE ONLY public.page ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE public.question (
    id text NOT NULL,
    collection text NOT NULL,
    conversation text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    question text NOT NULL,
    standalone text NOT NULL,
    mode text NOT NULL,
    agent text NOT NULL,
    why text NOT NULL,
    answer text NOT NULL,
    known boolean NOT NULL,
    citations jsonb NOT NULL,
    hits jsonb NOT NULL,
    queries text[] NOT NULL,
    degraded text[] NOT NULL,
    prompt_tokens integer NOT NULL,
    completion_tokens integer NOT NULL,
    calls integer NOT NULL,
    cost double precision NOT NULL,
    timings jsonb NOT NULL,
    index bigint,
    revision bigint,
    key_name text NOT NULL,
    error text
);
CREATE UNLOGGED TABLE public.rate_bucket (
    key text NOT NULL,
    tokens double precision NOT NULL,
    allowed boolean NOT NULL,
    updated timestamp with time zone NOT NULL
);
CREATE TABLE public.run (
    id bigint NOT NULL,
    collection text NOT NULL,
    kind text NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    error text,
    started timestamp with time zone DEFAULT now() NOT NULL,
    ended timestamp with time zone,
    CONSTRAINT run_state_check CHECK ((state = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text, 'abandoned'::text])))
);
ALTER TABLE public.run ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
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
INSERT INTO public.api_key OVERRIDING SYSTEM VALUE VALUES (1, 'ci', '\x352855399551325cb79f5d20fdc5aaceb3c993d76b9f55a2c5250bd0e758affd', '{query}', 60, '2026-11-22 02:22:31.906894+00', NULL, NULL, NULL);
INSERT INTO public.change VALUES (1, 2, 'ea0c618c06ba3bed39f9dbbf37dc3132', 'delete');
INSERT INTO public.change VALUES (1, 2, 'c85e2abb643dd7af778afbea3cfcdf39', 'delete');
INSERT INTO public.change VALUES (1, 2, 'f77b6610874f179912336c336597530e', 'delete');
INSERT INTO public.change VALUES (1, 2, '9010d4541aa0347f5dd1abe08a973db4', 'delete');
INSERT INTO public.change VALUES (1, 2, '9df394c55abed50b6fbb40f9b1af1b9f', 'upsert');
INSERT INTO public.chunk_1 VALUES ('2925ec81015a5e1bc550169dc1991542', 'https://docs.test/p00', 's1', '{s1}', 'Title', '{Title,s1}', 1, 'The bababa of part 1 on page 0 is hekiba.', 'b70d5fd1a0584aa50424360f941deacb', '974e5fd452264263be371fafcfff4de9', 14, '{}', NULL, 'en', '[0.5,0.16666667,0.33333334,0.33333334,0,0,0.5,0.5]');
INSERT INTO public.chunk_1 VALUES ('2e410d3bbdfa9ae6349f3e046ec83231', 'https://docs.test/p03', 's1', '{s1}', 'Title', '{Title,s1}', 1, 'The fobaba of part 1 on page 3 is rokiba.', '0b1cb51d3aabee5fc00f0c7ef209cd7b', 'cf26ba621d9c2d8c7d5e994cfc6df794', 14, '{}', NULL, 'en', '[0.5,0,0.33333334,0.5,0.16666667,0,0.5,0.33333334]');
INSERT INTO public.chunk_1 VALUES ('5c32546b1cffe7e8da8f02079218a379', 'https://docs.test/p03', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'The fobaba of part 0 on page 3 is pikiba.', '0cff3f8168963d52880d1bc2be797379', '375a65e1bf692340b1a9480503ec802c', 14, '{}', NULL, 'en', '[0.5,0.16666667,0.33333334,0.33333334,0.16666667,0,0.6666667,0.16666667]');
INSERT INTO public.chunk_1 VALUES ('d6a4a3a7ed13714f65bcca210040887d', 'https://docs.test/p00', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'The bababa of part 0 on page 0 is gakiba.', '29f9db05b681300b0da62cd241ca0ea8', '22ba07e0bb6563574243436512336997', 14, '{}', NULL, 'en', '[0.32444283,0.32444283,0.48666427,0.32444283,0,0,0.64888567,0.16222142]');
INSERT INTO public.chunk_1 VALUES ('9df394c55abed50b6fbb40f9b1af1b9f', 'https://docs.test/p02', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'Another text on page 2.', 'f69abff31f762a39a6fa62cd9480e582', 'cd90830356ef7e3083b5738fc93e3d8a', 9, '{}', NULL, 'en', '[0.7276069,0,0.24253564,0.24253564,0,0.24253564,0.48507127,0.24253564]');
INSERT INTO public.collection VALUES ('docs', '{}', '2026-11-22 02:22:30.734399+00');
INSERT INTO public.crawl VALUES (3, 'docs.test', true, '', '{"pages": 5}');
INSERT INTO public.embedding_claim VALUES (3, '347c4c91a88d48b1921cd565c82ab4c0', 'https://docs.test/p05');
INSERT INTO public.evaluated_question VALUES (1, 'one', 'How?', '{a#x}', '[{"score": 0.5, "sources": ["a#x"]}]', '{}', '{}', NULL, '{"similarity": 0.5}', NULL, '2026-11-22 02:22:31.972635+00');
INSERT INTO public.evaluation OVERRIDING SYSTEM VALUE VALUES (1, 'f', 'docs', 1, 2, '{"name": "set"}', '{"k": 5}', '{"mrr": 0.5}', '2026-11-22 02:22:31.967308+00', '2026-11-22 02:22:31.976869+00');
INSERT INTO public.feedback OVERRIDING SYSTEM VALUE VALUES (1, 'q1', 1, 'good', '2026-11-22 02:22:31.903028+00', 'ci');
INSERT INTO public.index OVERRIDING SYSTEM VALUE VALUES (1, 'docs', 'f6f202a3007ecd24f8d87bf65300acbc', '{"model": "hash:8", "identity": "hash:8", "dimension": 8, "chunk_size": 0, "chunk_unit": "tokens", "sectioning": 2, "vector_type": "vector", "chunk_overlap": 0}', 'live', 2, '{"pages": 3, "chunks": 5, "sections": 5}', '2026-11-22 02:22:31.608036+00', '2026-11-22 02:22:31.040466+00');
INSERT INTO public.indexed_page VALUES (1, 'https://docs.test/p00', 'ddd378d89650335e66384a9e1858f39caf5570f5', 2);
INSERT INTO public.indexed_page VALUES (1, 'https://docs.test/p03', '1bfbe3e83467b16ddc66513d20edce1baf5570f5', 2);
INSERT INTO public.indexed_page VALUES (1, 'https://docs.test/p02', '181fba693d6ce5d14fb46973e09a971daf5570f5', 1);
INSERT INTO public.judgement VALUES ('h1', 'quality', 'judge', 4, 'because', NULL, '2026-11-22 02:22:31.982196+00');
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p00', 'ok', 200, NULL, 'ddd378d89650335e66384a9e1858f39c', '\x789cab562a3650b252500ac94855484a044185fc348582c4a212050385fc3c202b3d15c8ca2c56484fccce4c4ad453d251502a36c4a1c510554b462a444b2d0028721f08', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, NULL, '2026-11-22 02:22:31.522407+00', 2, 1, 1);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p01', 'gone', NULL, NULL, '3b0a288ede2d594f38b9cb6cbf59f543', '\x789cab562a3650b252500ac94855484e4d4a4c4a54c84f5328482c2a513050c8cf03b2d253150c15328b15b233b3339312f5947414948a0d71683144d592930fd1520b002e7a1f2e', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, 'is gone', '2026-11-22 02:22:31.522407+00', 2, 1, 1);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p02', 'ok', 200, NULL, '181fba693d6ce5d14fb46973e09a971d', '\x789cab562a3650b2525072cccb2fc9482d522849ad2851c8cf5328484c4f5530d253aa0500af970a6e', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, NULL, '2026-11-22 02:22:31.522407+00', 2, 1, 2);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p03', 'ok', 200, NULL, '1bfbe3e83467b16ddc66513d20edce1b', '\x789cab562a3650b252500ac9485548cb4f4a4c4a54c84f5328482c2a513050c8cf03b2d253158c15328b150a32b3339312f5947414948a0d71683144d552940fd1520b0036f31f57', 'text/html', NULL, '{}', NULL, 'Title', 'en', '{}', NULL, 0, NULL, NULL, '2026-11-22 02:22:31.522407+00', 2, 1, 1);
INSERT INTO public.page VALUES ('docs', 'https://docs.test/p05', 'ok', 200, NULL, 'a473897548e7fa2790c48685e28055ee', '\x789cab562a3650b252500a2e494c4f4d5148cc4b51c84b2d4b2d5228284dcac92cce484dd153aa0500dfec0c77', 'text/html', NULL, '{}', NULL, NULL, NULL, '{}', NULL, 0, NULL, NULL, '2026-11-22 02:22:31.811969+00', 3, 3, 3);
INSERT INTO public.question VALUES ('q1', 'docs', 'talk', '2026-11-22 02:22:31.895358+00', 'How?', '', '', '', '', 'So [1].', true, '[{"n": 1, "source": "u#a", "chunk_id": "c1"}]', '[{"score": 0.5, "chunk_id": "c1"}]', '{How?}', '{}', 0, 0, 0, 0, '{}', 1, 2, 'ci', NULL);
INSERT INTO public.rate_bucket VALUES ('ci', 4, true, '2026-11-22 02:22:31.96306+00');
INSERT INTO public.run OVERRIDING SYSTEM VALUE VALUES (1, 'docs', 'reindex', 'done', '{}', NULL, '2026-11-22 02:22:30.734399+00', '2026-11-22 02:22:31.446063+00');
INSERT INTO public.run OVERRIDING SYSTEM VALUE VALUES (2, 'docs', 'reindex', 'done', '{}', NULL, '2026-11-22 02:22:31.512192+00', '2026-11-22 02:22:31.688977+00');
INSERT INTO public.run OVERRIDING SYSTEM VALUE VALUES (3, 'docs', 'reindex', 'running', '{}', NULL, '2026-11-22 02:22:31.807672+00', NULL);
INSERT INTO public.staged_chunk VALUES (3, '4542bb77ba990f3c2e8ae11322d3d481', 'https://docs.test/p05', 's0', '{s0}', 'Title', '{Title,s0}', 0, 'Staged and never published.', '1ec7dfa8ca535a0c46624ac5a7197c02', '347c4c91a88d48b1921cd565c82ab4c0', 8, '{}', NULL, 'en');
INSERT INTO public.staged_page VALUES (3, 'https://docs.test/p05', 'a473897548e7fa2790c48685e28055eeaf5570f5', 'Title', 'en', '{}', NULL, 1, 1);
INSERT INTO public.staged_vector VALUES ('347c4c91a88d48b1921cd565c82ab4c0', 3, '[0.28867513,0,0.28867513,0.57735026,0,0.28867513,0.57735026,0.28867513]');
SELECT pg_catalog.setval('public.api_key_id_seq', 1, true);
SELECT pg_catalog.setval('public.evaluation_id_seq', 1, true);
SELECT pg_catalog.setval('public.feedback_id_seq', 1, true);
SELECT pg_catalog.setval('public.index_id_seq', 1, true);
SELECT pg_catalog.setval('public.run_id_seq', 3, true);
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
ALTER TABLE ONLY public.page
    ADD CONSTRAINT page_pkey PRIMARY KEY (collection, url);
ALTER TABLE ONLY public.question
    ADD CONSTRAINT question_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rate_bucket
    ADD CONSTRAINT rate_bucket_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.staged_chunk
    ADD CONSTRAINT staged_chunk_pkey PRIMARY KEY (run, id);
ALTER TABLE ONLY public.staged_page
    ADD CONSTRAINT staged_page_pkey PRIMARY KEY (run, url);
ALTER TABLE ONLY public.staged_vector
    ADD CONSTRAINT staged_vector_pkey PRIMARY KEY (embed_hash);
CREATE INDEX chunk_1_embed_hash_idx ON public.chunk_1 USING btree (embed_hash);
CREATE INDEX chunk_1_embedding_idx ON public.chunk_1 USING hnsw (embedding public.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX chunk_1_language_idx ON public.chunk_1 USING btree (language);
CREATE INDEX chunk_1_tags_idx ON public.chunk_1 USING gin (tags);
CREATE INDEX chunk_1_url_idx ON public.chunk_1 USING btree (url);
CREATE INDEX chunk_1_url_idx1 ON public.chunk_1 USING btree (url COLLATE "C");
CREATE INDEX chunk_1_version_idx ON public.chunk_1 USING btree (version);
CREATE INDEX evaluation_of_fingerprint ON public.evaluation USING btree (fingerprint, id);
CREATE UNIQUE INDEX index_one_live ON public.index USING btree (collection) WHERE (state = 'live'::text);
CREATE INDEX question_asked_at ON public.question USING btree (asked_at);
CREATE INDEX question_of_conversation ON public.question USING btree (conversation, asked_at) WHERE (conversation <> ''::text);
CREATE INDEX run_of_collection ON public.run USING btree (collection, id);
ALTER TABLE ONLY public.change
    ADD CONSTRAINT change_index_fkey FOREIGN KEY (index) REFERENCES public.index(id) ON DELETE CASCADE;
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
ALTER TABLE ONLY public.page
    ADD CONSTRAINT page_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_collection_fkey FOREIGN KEY (collection) REFERENCES public.collection(name) ON DELETE CASCADE;
ALTER TABLE ONLY public.staged_chunk
    ADD CONSTRAINT staged_chunk_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.staged_page
    ADD CONSTRAINT staged_page_run_fkey FOREIGN KEY (run) REFERENCES public.run(id) ON DELETE CASCADE;
