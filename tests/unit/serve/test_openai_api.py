"""The real `openai` client with the service: chat, streams, models, embeddings and its error classes."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.api import CSV, TEXT, FakeEngine, FakeStore, run_server

from pipelines.records import Citation, Message, Usage
from pipelines.store import StoreUnavailable
from serve.api.openai.sources import Footnotes, SourceList
from serve.routes import create_app

USER: Any = {"role": "user", "content": "How do I load csv files?"}
ASKED: Any = {"model": "docs", "messages": [USER]}
TOOLS: Any = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


class Service:
    """One server for all tests of this file, whose engine is controlled by the tests and reset between them."""

    def __init__(self) -> None:
        self.store = FakeStore()
        self.engine = FakeEngine(self.store)
        self.url = ""


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    service = Service()
    app = create_app(service.engine, service.store)  # type: ignore[arg-type]
    with run_server(app) as base:
        service.url = f"{base}/v1"
        yield service


@pytest.fixture
def service(running: Service) -> Service:
    running.store.__init__()  # type: ignore[misc]
    running.engine.__init__(running.store)  # type: ignore[misc]
    return running


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=service.url, api_key="any", max_retries=0) as client:
        yield client


def chat(client: openai.OpenAI, *messages: Any, model: str = "docs", **more: Any) -> Any:
    return client.chat.completions.create(model=model, messages=list(messages) or [USER], **more)


# ---------------------------------------------------------------------------------------------- chat


def test_completion_is_a_cited_answer(client: openai.OpenAI) -> None:
    reply = chat(client, temperature=0.7, max_tokens=10, user="someone")
    (choice,) = reply.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", TEXT, "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (10, 5, 15)
    assert reply.model == "docs" and reply.id.startswith("chatcmpl-")
    sources = reply.raydex
    assert sources["citations"][0]["source"] == CSV.source and sources["degraded"] == ["bm25"]
    assert sources["id"] == reply.id.removeprefix("chatcmpl-") and "hits" not in sources


def test_stream_is_the_same_answer_in_deltas(client: openai.OpenAI) -> None:
    chunks = list(chat(client, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert chunks[-1].raydex["citations"][0]["n"] == 1
    assert {chunk.id for chunk in chunks} == {"chatcmpl-" + chunks[-1].raydex["id"]}
    assert all(chunk.usage is None for chunk in chunks)


def test_stream_reports_progress_in_the_raydex_key(client: openai.OpenAI) -> None:
    told = [chunk for chunk in chat(client, stream=True) if "status" in (getattr(chunk, "raydex", None) or {})]
    assert [chunk.raydex["status"]["stage"] for chunk in told] == ["reading"]
    assert told[0].choices[0].delta.content is None and told[0].choices[0].finish_reason is None


def test_tokens_are_counted_even_if_no_language_model_wrote(client: openai.OpenAI, service: Service) -> None:
    service.engine.uses = Usage()
    short, long = chat(client).usage, chat(client, {"role": "user", "content": "How do I load csv files? " * 20}).usage
    assert short.prompt_tokens > 5 and short.completion_tokens > 5
    assert long.prompt_tokens > 15 * short.prompt_tokens and long.completion_tokens == short.completion_tokens
    assert short.total_tokens == short.prompt_tokens + short.completion_tokens
    *_, last = chat(client, stream=True, stream_options={"include_usage": True})
    assert last.usage == short and last.choices == []
    few, many = (client.embeddings.create(model="docs", input=text).usage for text in ("one", ["one", "two three"]))
    assert 0 < few.prompt_tokens < many.prompt_tokens == many.total_tokens


async def test_async_client_and_stream_helper_work_too(client: openai.OpenAI, service: Service) -> None:
    asked: Any = {"model": "docs", "messages": [USER]}
    async with openai.AsyncOpenAI(base_url=service.url, api_key="any") as asking:
        whole = await asking.chat.completions.create(**asked)
        stream = await asking.chat.completions.create(**asked, stream=True)
        assert whole.choices[0].message.content == TEXT
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == TEXT
    with client.chat.completions.stream(**asked) as streamed:
        assert streamed.get_final_completion().choices[0].message.content == TEXT


def test_last_user_message_is_the_question_and_earlier_ones_the_history(client, service):
    chat(
        client,
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "user", "content": [{"type": "text", "text": "And"}, {"type": "text", "text": "csv?"}]},
        {"role": "assistant", "content": "Well,"},
    )
    (ask,) = service.engine.asks
    assert ask.question == "And\ncsv?" and ask.collection == "docs"
    assert ask.history == (Message("user", "Hello"), Message("assistant", "Hi"))


def test_completion_can_be_rated_by_its_id(client: openai.OpenAI, service: Service) -> None:
    reply = chat(client)
    url = service.url.replace("/v1", "/feedback")
    service.store.hold_answer(reply.raydex["id"])
    assert httpx.post(url, json={"id": reply.id, "rating": "down"}).json() == {"id": reply.raydex["id"], "rating": -1}
    assert service.store.given[0][:2] == (reply.raydex["id"], -1)


def test_options_are_in_the_raydex_key(client: openai.OpenAI, service: Service) -> None:
    options = {"k": 9, "filters": {"tags": ["api"]}, "mode": "refine", "variables": {"tone": "dry"}}
    reply = chat(client, extra_body={"raydex": {**options, "conversation": "c"}})
    (ask,) = service.engine.asks
    assert (ask.k, ask.filters.tags, ask.mode, ask.variables) == (9, ("api",), "refine", {"tone": "dry"})
    assert reply.raydex["conversation"] == "c"


def test_default_model_is_the_collection_of_the_service(client: openai.OpenAI, service: Service) -> None:
    assert chat(client, model="raydex").model == "raydex"
    assert service.engine.asks[0].collection is None


def test_voided_text_stays_separated_by_a_blank_line(client, service):
    service.engine.resets = True
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chat(client, stream=True))
    assert text == f"never mind\n\n{TEXT}"


# ---------------------------------------------------------------------------------------------- errors


def test_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    for stream in (False, True):
        with pytest.raises(openai.NotFoundError) as caught:
            chat(client, model="gpt-x", stream=stream)
        assert caught.value.code == "model_not_found" and caught.value.param == "model"
        assert "the models are docs (" in caught.value.message
    with pytest.raises(openai.NotFoundError, match="the models are docs"):
        client.models.retrieve("gpt-x")
    with pytest.raises(openai.NotFoundError, match="the models are docs"):
        client.embeddings.create(model="gpt-x", input="x")


def test_unserved_route_says_what_to_use(client: openai.OpenAI) -> None:
    for call in (
        lambda: client.responses.create(model="docs", input="How?"),
        lambda: client.completions.create(model="docs", prompt="How?"),
        lambda: client.moderations.create(input="How?"),
    ):
        with pytest.raises(openai.NotFoundError, match="use POST /v1/chat/completions") as caught:
            call()
        assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.APIStatusError, match="is not served: use POST /v1/chat/completions") as refused:
        client.get("/chat/completions", cast_to=object)
    assert refused.value.status_code == 405


@pytest.mark.parametrize(("more", "param"), [
    ({"n": 2}, "n"), ({"response_format": {"type": "json_object"}}, "response_format.type"),
    ({"extra_body": {"raydex": {"k": 0}}}, "raydex.k"),
    ({"extra_body": {"raydex": {"footnote": True}}}, "raydex.footnote"),
    ({"extra_body": {"raydex": {"mode": "haiku"}}}, "mode"),
    ({"tool_choice": "required", "tools": TOOLS}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}, "tools": TOOLS}, "tool_choice"),
    ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}}, "tool_choice"),
    ({"function_call": {"name": "f"}}, "function_call"), ({"logprobs": True}, "logprobs"),
    ({"top_logprobs": 3}, "top_logprobs"), ({"modalities": ["text", "audio"]}, "modalities"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format.type"),
    ({"extra_body": {"messages": [{"role": "user", "content": 5}]}}, "messages.0.content"),
])  # fmt: skip
def test_impossible_option_is_a_bad_request_that_names_it(client: openai.OpenAI, more: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, **more)
    assert caught.value.param == param and caught.value.type == "invalid_request_error"
    named = caught.value.message.count(f"{param}:") + caught.value.message.count(f"{param} is ")
    assert named == 1 or param == "mode"
    assert "[" not in caught.value.message  # no tag of pydantic's


def test_options_that_request_nothing_are_accepted(client: openai.OpenAI) -> None:
    reply = chat(client, tools=[], tool_choice="auto", logprobs=False, modalities=["text"], n=1)
    assert reply.choices[0].message.content == TEXT and "ignored" not in reply.raydex
    assert "x-raydex-ignored" not in client.chat.completions.with_raw_response.create(**ASKED).headers


def test_options_without_effect_are_listed_in_the_reply(client: openai.OpenAI) -> None:
    given = {"temperature": 0.5, "seed": 1, "max_tokens": 9, "stop": None, "extra_body": {"top_k": 4}}
    for reply in (chat(client, **given), list(chat(client, stream=True, **given))[-1]):
        assert reply.raydex["ignored"] == ["max_tokens", "seed", "temperature", "top_k"]


@pytest.mark.parametrize(("more", "ignored"), [
    ({"tools": TOOLS, "tool_choice": "none", "temperature": 1}, "temperature, tools"),
    ({"tools": TOOLS, "tool_choice": "auto", "parallel_tool_calls": True}, "parallel_tool_calls, tools"),
    ({"functions": [{"name": "f"}], "function_call": "auto"}, "functions"),
    ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}}, "tools"),
    ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"), ({"web_search_options": {}}, "web_search_options"),
    ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
    ({"extra_body": {"x\r\nSet-Cookie: a=b": 1, "fine": 1}}, "fine"),
])  # fmt: skip
def test_irrelevant_options_are_ignored_and_listed_in_a_header(client, more, ignored):
    for stream in (False, True):
        reply = client.chat.completions.with_raw_response.create(**ASKED, **more, stream=stream)
        assert reply.status_code == 200 and reply.headers["x-raydex-ignored"] == ignored


IMAGE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
AUDIO: Any = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
HELLO: Any = {"role": "assistant", "content": "A picture of a table."}
EMPTY: Any = {"role": "user", "content": ""}


@pytest.mark.parametrize(("messages", "ignored"), [
    ([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}, HELLO, USER], "image_url"),
    ([{"role": "user", "content": [IMAGE]}, HELLO, USER], "image_url"),  # a picture without text in an earlier turn
    ([{"role": "user", "content": [AUDIO]}, HELLO, USER], "input_audio"),
    ([{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}, HELLO, USER], "file"),
    ([{"role": "user", "content": [IMAGE, {"type": "text", "text": USER["content"]}]}], "image_url"),
    ([USER, EMPTY], ""), ([USER, {"role": "user", "content": None}], ""), ([USER, {"role": "user"}], ""),
    ([USER, {"role": "user", "content": []}], ""), ([USER, {"role": "user", "content": [{"type": "text"}]}], ""),
    ([USER, {"role": "assistant", "content": ""}], ""), ([{"role": "user", "content": [USER["content"]]}], ""),
    ([USER, {"role": "user", "content": [{"type": "text", "text": None}]}], ""),
])  # fmt: skip
def test_chat_continues_after_unreadable_content(client, service, messages, ignored):
    reply = client.chat.completions.with_raw_response.create(model="docs", messages=messages)
    assert reply.headers.get("x-raydex-ignored", "") == ignored
    assert [ask.question for ask in service.engine.asks] == [USER["content"]]
    assert all(turn.content for turn in service.engine.asks[0].history)


@pytest.mark.parametrize("message", [
    {"role": "user", "content": [IMAGE]}, {"role": "user", "content": [AUDIO, {"type": "text", "text": " "}]},
    {"role": "user", "content": "  "}, {"role": "system", "content": "Only a system message."},
    {"role": "wizard", "content": "x"}, {"role": "user", "content": "\0"}
])  # fmt: skip
def test_messages_without_a_question_are_bad_requests(client: openai.OpenAI, message: Any) -> None:
    with pytest.raises(openai.BadRequestError, match=r"^Error code: 400 - messages") as caught:
        chat(client, message)
    assert str(caught.value.param).startswith("messages")


LONG = "long " * 30_000


@pytest.mark.parametrize("earlier", [
    {"role": "system", "content": LONG}, {"role": "tool", "tool_call_id": "1", "content": LONG},
    {"role": "user", "content": LONG}, {"role": "assistant", "content": [{"type": "text", "text": LONG}]},
    {"role": "user", "content": "pasted \0 text"}, {"role": "tool", "tool_call_id": "1", "content": "\0"},
])  # fmt: skip
def test_earlier_messages_are_cut_and_cleaned_without_losing_the_chat(client, service, earlier):
    chat(client, earlier, {"role": "user", "content": "How do I load\0 csv files?"})
    (ask,) = service.engine.asks
    assert ask.question == USER["content"]
    assert all(len(turn.content) <= 100_000 and "\0" not in turn.content for turn in ask.history)
    assert len(ask.history) == (earlier["role"] in ("user", "assistant"))


def test_picture_without_words_is_no_question_even_after_one(client: openai.OpenAI, service: Service) -> None:
    with pytest.raises(openai.BadRequestError, match="image_url"):
        chat(client, USER, HELLO, {"role": "user", "content": [IMAGE]})
    assert not service.engine.asks


def test_unreachable_service_is_an_internal_server_error_with_retry_after(client, service):
    service.engine.fails = StoreUnavailable("the database can't be reached")
    with pytest.raises(openai.InternalServerError) as caught:
        chat(client)
    assert caught.value.status_code == 503 and int(caught.value.response.headers["retry-after"]) > 0


def test_stream_that_fails_midway_raises(client: openai.OpenAI, service: Service) -> None:
    service.engine.fails_midway = StoreUnavailable("the database can't be reached")
    with pytest.raises(openai.APIError, match="can't be reached"):
        list(chat(client, stream=True))


# ---------------------------------------------------------------------------------------------- models, embeddings


def test_collections_are_models(client: openai.OpenAI, service: Service) -> None:
    service.store.publish("team/other")
    assert [model.id for model in client.models.list()] == ["docs", "team/other"]
    for name in ("docs", "team/other", "raydex"):
        assert client.models.retrieve(name).id == name


def test_embeddings_are_the_same_in_both_encodings(client: openai.OpenAI) -> None:
    texts = ["one", "three"]
    by_default = client.embeddings.create(model="docs", input=texts).data
    as_floats = client.embeddings.create(model="docs", input=texts, encoding_format="float", dimensions=4).data
    assert [row.index for row in by_default] == [0, 1]
    for a, b in zip(by_default, as_floats, strict=True):
        np.testing.assert_allclose(a.embedding, b.embedding, rtol=1e-6)
        assert np.linalg.norm(a.embedding) == pytest.approx(1, abs=1e-6)
    raw: Any = client.embeddings.create(model="raydex", input="one", encoding_format="base64").data[0].embedding
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(raw), "<f4"), as_floats[0].embedding, rtol=1e-6)


@pytest.mark.parametrize(("more", "match"), [
    ({"input": [[1, 2], [3]]}, "400 - input: token"), ({"input": [1, 2]}, "400 - input: token"),
    ({"input": []}, "400 - input is a list: it must have at least 1"), ({"input": ""}, "input"),
    ({"input": "x", "dimensions": 3}, "4 dimensions"), ({"input": ["a", " "]}, r"^Error code: 400 - input\.1 is "),
])  # fmt: skip
def test_input_that_cannot_be_embedded_is_a_bad_request(client: openai.OpenAI, more: Any, match: str) -> None:
    with pytest.raises(openai.BadRequestError, match=match):
        client.embeddings.create(model="docs", **more)


# ---------------------------------------------------------------------------------------------- footnotes


def test_footnotes_are_marks_in_the_text_with_sources_below(client: openai.OpenAI) -> None:
    wanted: Any = {"raydex": {"footnotes": True}}
    whole = chat(client, extra_body=wanted).choices[0].message.content
    assert "load it [^1]." in whole and "`read_csv(x[1])`" in whole
    assert whole.endswith(f"\n\n[^1]: [Data › CSV](<{CSV.source}>)")
    chunks = chat(client, stream=True, extra_body=wanted)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole


@pytest.mark.parametrize(("habit", "end"), [
    ("footnotes", f"\n\n[^1]: [Data › CSV](<{CSV.source}>)"),
    ("append", f"{TEXT}\n\nSources:\n\n- [1] [Data › CSV](<{CSV.source}>)"),
])  # fmt: skip
def test_service_can_default_to_footnotes_or_a_source_list(habit: str, end: str) -> None:
    store = FakeStore()
    with run_server(create_app(FakeEngine(store), store, v1_sources=habit)) as base:  # type: ignore[arg-type]
        asking = openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
        whole = chat(asking).choices[0].message.content
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chat(asking, stream=True))
        without = chat(asking, extra_body={"raydex": {"footnotes": False}}).choices[0].message.content
    assert whole == streamed and whole.endswith(end) and without == TEXT


@given(st.lists(st.sampled_from(["[", "1", "23", "]", "`", "```", "\n", " ", "word", "[4]", "[^5]"]), max_size=30))
def test_marks_do_not_depend_on_how_the_text_was_split(pieces: list[str]) -> None:
    def marked(*parts: str) -> str:
        footnotes = Footnotes()
        return "".join(map(footnotes.feed, parts)) + footnotes.close()

    text = "".join(pieces)
    assert marked(*pieces) == marked(text) == marked(*text)
    shown, asked = (one.replace("[^", "[") for one in (marked(text), text))
    assert shown.startswith(asked) and not shown.removeprefix(asked).strip("\n `")  # open code is closed


@pytest.mark.parametrize(("text", "expected"), [
    ("a [1][2] b [12].", "a [^1][^2] b [^12]."), ("`a[1]` [1]", "`a[1]` [^1]"),
    ("```\na[1]\n\nb[2]\n```\n[1]", "```\na[1]\n\nb[2]\n```\n[^1]"), ("a ` b\n\n[1]", "a ` b\n\n[^1]"),
    ("[a] [] [1", "[a] [] [1")
])  # fmt: skip
def test_code_stays_unchanged(text: str, expected: str) -> None:
    footnotes = Footnotes()
    assert footnotes.feed(text) + footnotes.close() == expected


def test_titles_and_sources_cannot_break_out_of_their_footnote() -> None:
    citation = Citation(1, "https://d.test/a>(b)\n<c", "A](http://evil.test)\n[^2]: x", "")
    assert Footnotes().list_sources([citation]) == (
        "\n\n[^1]: [A\\](http://evil.test) \\[^2\\]: x](<https://d.test/a%3E(b)%0A%3Cc>)"
    )
    assert SourceList().list_sources([citation]) == (
        "\n\nSources:\n\n- [1] [A\\](http://evil.test) \\[^2\\]: x](<https://d.test/a%3E(b)%0A%3Cc>)"
    )
    assert Footnotes().list_sources([]) == SourceList().list_sources([]) == ""
