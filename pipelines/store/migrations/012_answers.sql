-- An answer is one document, in the form of `Answer.to_dict`; beside it stands what questions are sought by. The columns
-- take null: a replica of the version before writes rows without them, and the text alone, until it is replaced.
alter table question add column cited text[] default array[]::text[], add column document jsonb;  -- null: failed

update question set
    cited = array(
        select c.value ->> 'chunk_id' from jsonb_array_elements(citations) with ordinality c (value, n)
        where c.value ->> 'chunk_id' is not null order by c.n
    ),
    document = jsonb_strip_nulls(jsonb_build_object(
        'id', id, 'question', question, 'text', answer, 'known', known, 'collection', collection, 'agent', agent,
        'route', jsonb_build_object('agent', agent, 'why', why), 'queries', queries, 'degraded', degraded, 'notes', notes,
        'usage', jsonb_build_object(
            'prompt_tokens', prompt_tokens, 'completion_tokens', completion_tokens, 'calls', calls, 'cost', cost
        ),
        'timings', timings, 'index', index, 'revision', revision, 'confidence', confidence, 'claims', claims,
        'finish_reason', finish_reason,
        'citations', array(
            select '{"n": 0, "source": ""}' || c.value - 'chunk_id' - 'text_hash'
            from jsonb_array_elements(citations) with ordinality c (value, n) order by c.n
        ),
        'hits', array(
            select h.value - 'source' - 'snippet' || jsonb_build_object(
                'chunk_id', coalesce(h.value ->> 'chunk_id', ''),
                'url', split_part(s.source, '#', 1),
                'anchors', array_remove(array[substr(s.source, nullif(strpos(s.source, '#'), 0) + 1)], null),
                'sources', array[s.source],
                'text', h.value ->> 'snippet'
            )
            from jsonb_array_elements(hits) with ordinality h (value, n),
                lateral (select coalesce(h.value ->> 'source', '') as source) s
            order by h.n
        )
    ))
where error is null;

alter table question
    drop column answer, drop column agent, drop column why, drop column citations, drop column hits, drop column queries,
    drop column degraded, drop column prompt_tokens, drop column completion_tokens, drop column calls, drop column cost,
    drop column timings, drop column revision, drop column confidence, drop column claims, drop column notes,
    drop column finish_reason;
alter table question rename column document to answer;
