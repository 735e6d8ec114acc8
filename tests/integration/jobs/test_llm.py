"""The LLM client over real HTTP: answers, deltas, retries, cancellation, and errors that say what to do."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from kit.scripted_llm import Reply, Request, ScriptedLLM, in_turn
from kit.web import closed_port

from pipelines.llm.client import LLM, Completion, LLMSettings
from pipelines.llm.errors import (
    ContextTooLong,
    KeyUnusable,
    LLMBusy,
    LLMEmpty,
    LLMFailed,
    LLMKeyRefused,
    LLMTimeout,
    LLMUnreachable,
)  # fmt: skip
from pipelines.llm.session import LLMSession
from pipelines.records import FINISHED, Message, Usage

KEY = "sk-very-secret"
HELLO = (Message("system", "Be brief."), Message("user", "Say hello."))


def ask(server: ScriptedLLM, *messages: Message, **settings: Any) -> Any:
    """Return one completion by a new client."""
    return together(server, lambda llm: llm.complete(messages or HELLO), **settings)


def read(server: ScriptedLLM, *messages: Message, **settings: Any) -> list[str | Completion]:
    """Return everything from a stream."""

    async def collect(llm: LLM) -> list[str | Completion]:
        return [item async for item in llm.stream(messages or HELLO)]

    return together(server, collect, **settings)


Work = Callable[[LLM], Coroutine[Any, Any, Any]]


def together(server: ScriptedLLM, work: Work, base_url: str = "", api_key: str = KEY, **settings: Any) -> Any:
    async def run() -> Any:
        llm = LLM("scripted", base_url=base_url or server.url, api_key=api_key, settings=LLMSettings(**settings))
        try:
            return await work(llm)
        finally:
            await llm.close()

    return asyncio.run(run())


def serve_replies(*replies: Any) -> ScriptedLLM:
    return ScriptedLLM(default=in_turn(*replies))


# ---------------------------------------------------------------------------------------------- answers


def test_completion_is_requested_as_configured() -> None:
    with serve_replies("Hello.") as server:
        assert ask(server, temperature=0.3, max_tokens=77).text == "Hello."
    sent = server.asked[0]
    assert sent.messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
    assert (sent.body["model"], sent.body["temperature"], sent.body["max_tokens"]) == ("scripted", 0.3, 77)
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert "response_format" not in sent.body


def test_tokens_are_counted_by_the_server_and_priced_per_million() -> None:
    with serve_replies("Hello you.") as server:
        usage = ask(server, prompt_price=1_000_000, completion_price=10_000_000).usage
        assert usage == Usage(4, 2, 1, 4 + 20)
        *deltas, streamed = read(server, prompt_price=1_000_000, completion_price=10_000_000)
    assert (deltas, streamed) == (["Hello", " you."], Completion("Hello you.", usage))


@pytest.mark.parametrize("reply", [
    Reply("Hello you.", usage=False), Reply("Hello you.", reported={"usage": {"prompt_tokens": "4.5"}}),
])  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_estimate_replaces_missing_or_non_numeric_token_counts(stream: bool, reply: Reply) -> None:
    with serve_replies(reply) as server:
        usage = (read(server)[-1] if stream else ask(server)).usage
    assert usage == LLM("m", base_url="").estimate(HELLO, "Hello you.")
    assert usage.calls == 1 and usage.prompt_tokens > 4 and usage.completion_tokens >= 2


def test_thoughts_inside_the_text_are_removed_from_an_answer() -> None:
    with serve_replies(Reply(deltas=["<thi", "nk>Or", "4?</think>\n", "\n4", " it is."])) as server:
        assert ask(server).text == "4 it is."
        assert read(server)[:-1] == ["", "", "", "4", " it is."]


def test_thoughts_without_an_opening_tag_are_not_shown() -> None:
    async def three(llm: LLM) -> tuple[str, str]:
        with pytest.raises(LLMFailed, match=r"thinks aloud before it answers.*--reasoning-parser"):
            [item async for item in llm.stream(HELLO)]
        whole = (await llm.complete(HELLO)).text
        return whole, "".join([item async for item in llm.stream(HELLO) if isinstance(item, str)])

    with serve_replies("Or 4?\n</think>\n4 it is.") as server:
        assert together(server, three) == ("4 it is.", "4 it is.")


@pytest.mark.parametrize(("deltas", "text", "why"), [
    (["4 it", " is.<|im_", "end|>", "\n<|im_start|>user"] + ["\n5?"] * 9_000, "4 it is.", "stop"),
    (["4 it is. "] * 9_000, "4 it is. " * 134, "length"),
])  # fmt: skip
def test_endless_model_output_is_stopped(deltas: list[str], text: str, why: str) -> None:
    with serve_replies(Reply(deltas=deltas, delay_s=0.001)) as server:
        done = ask(server)
        assert (done.text, done.finish_reason) == (text, why)
        assert server.wait_for(lambda s: s.disconnects == 1)


def test_content_in_parts_is_joined_from_its_text_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Or 4?"}]}  # the format of Mistral's streams
    contents = ("", [thinking], [{"type": "text", "text": "4"}, {"type": "reference", "reference_ids": [1]}], " it is.")
    events = [{"choices": [{"index": 0, "delta": {"content": content}}]} for content in contents]
    with serve_replies(Reply(raw="".join(f"data: {json.dumps(event)}\n\n" for event in events))) as server:
        assert read(server)[:-1] == ["", "4", " it is."]


def test_answer_cut_off_by_max_tokens_keeps_all_its_white_space() -> None:
    deltas = ["def f():", "\n", "    ", "return 1", "\n\n", "🦄"]
    with serve_replies(Reply(deltas=deltas, finish_reason="length")) as server:
        assert ask(server).text == "".join(deltas)
        assert read(server)[:-1] == deltas


@pytest.mark.parametrize("reason", ['{"type": "stop"}', '["stop"]', "5"])
def test_reason_of_the_end_may_be_any_value(reason: str) -> None:
    raw = 'data: {"choices": [{"delta": {"content": "Ray Serve."}, "finish_reason": %s}]}\n\ndata: [DONE]\n\n'
    with serve_replies(Reply(raw=raw % reason)) as server:
        completion = read(server)[-1]
    assert (completion.text, completion.finish_reason) == ("Ray Serve.", FINISHED)


def test_one_client_serves_one_event_loop_after_another() -> None:
    with serve_replies("Hello.") as server:
        llm = LLM("scripted", base_url=server.url)
        for _ in range(3):
            assert asyncio.run(llm.complete(HELLO)).text == "Hello."
        assert len(llm._clients) == 1  # clients of ended loops are forgotten


def test_one_client_serves_two_event_loops_at_once() -> None:
    with ScriptedLLM(default=Reply("Hello.", delay_s=0.1)) as server:
        llm = LLM("scripted", base_url=server.url)

        async def both() -> list[Any]:
            elsewhere = asyncio.to_thread(asyncio.run, llm.complete(HELLO))
            return await asyncio.gather(llm.complete(HELLO), elsewhere, llm.complete(HELLO))

        assert [done.text for done in asyncio.run(both())] == ["Hello."] * 3


# ---------------------------------------------------------------------------------------------- JSON

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
          "additionalProperties": False}  # fmt: skip


def test_schema_is_passed_to_the_server() -> None:
    with serve_replies('{"answer": "yes"}') as server:
        assert together(server, lambda llm: llm.complete(HELLO, schema=SCHEMA)).text == '{"answer": "yes"}'
    form = server.asked[0].body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == SCHEMA and form["json_schema"]["strict"] is True


@pytest.mark.parametrize("error", [
    {"message": "unsupported"},
    {"object": "error", "message": "The provided JSON schema contains features not supported by xgrammar."},  # vLLM
])  # fmt: skip
def test_server_without_schemas_is_called_without_one_from_then_on(error: dict[str, str]) -> None:
    async def twice(llm: LLM) -> list[str]:
        return [(await llm.complete(HELLO, schema=SCHEMA)).text for _ in range(2)]

    def refuses(request: Request) -> bool:
        return "response_format" in request.body

    with ScriptedLLM([(refuses, Reply(status=400, error=error))]) as server:
        assert together(server, twice) == ["Scripted answer."] * 2
    assert ["response_format" in request.body for request in server.asked] == [True, False, False]


def test_unrelated_400_keeps_schemas_enabled() -> None:
    async def twice(llm: LLM) -> None:
        with pytest.raises(LLMFailed, match="no such tool"):
            await llm.complete(HELLO, schema=SCHEMA)
        await llm.complete(HELLO, schema=SCHEMA)

    bad = Reply(status=400, error={"message": "no such tool"})
    with serve_replies(bad, bad, "fine") as server:
        together(server, twice)
    assert "response_format" in server.asked[-1].body


# ---------------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize(("status", "retry_after"), [(408, 0), (429, 0.4), (500, 0), (503, 0)])
def test_temporary_failure_is_retried_after_the_stated_time(status: int, retry_after: float) -> None:
    failing = Reply(status=status, retry_after=retry_after)
    with serve_replies(failing, failing, "Hello.") as server:
        began = time.monotonic()
        assert ask(server).text == "Hello."
        assert time.monotonic() - began >= 2 * retry_after
    assert len(server.asked) == 3


@pytest.mark.parametrize("kind", ["seconds", "date"])
def test_call_fails_at_once_if_retry_after_exceeds_the_time_limit(kind: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    with serve_replies(Reply(status=429, retry_after=90 if kind == "seconds" else date)) as server:
        began = time.monotonic()
        with pytest.raises(LLMBusy, match="429"):
            ask(server, first_token_s=30)
        assert time.monotonic() - began < 80  # the server says to wait for 90 s
    assert len(server.asked) == 1


QUOTA = {"message": "You exceeded your current quota", "code": "insufficient_quota", "type": "insufficient_quota"}


@pytest.mark.parametrize(("reply", "error", "words", "tries"), [
    *((Reply(status=status), LLMFailed, str(status), 1) for status in (400, 401, 404)),
    *((Reply(status=status), LLMBusy, str(status), 1) for status in (504, 524)),  # a gateway that gave up
    (Reply(status=429, error=QUOTA), LLMBusy, "quota", 1),
    (Reply(status=503, retry_after=0), LLMBusy, "503", 3),
    # Text outside the `message` of an `error` object, as in LM Studio and FastAPI.
    (Reply(status=400, error="no such adapter"), LLMFailed, "no such adapter", 1),
    (Reply(status=422, error={"object": "", "detail": "no such adapter"}), LLMFailed, "no such adapter", 1),
])  # fmt: skip
def test_permanent_failure_is_not_retried_and_temporary_one_not_forever(
    reply: Reply, error: type[Exception], words: str, tries: int
) -> None:
    with serve_replies(reply) as server, pytest.raises(error, match=words):
        ask(server, retries=2)
    assert len(server.asked) == tries


def test_lost_connection_is_retried_only_before_the_first_delta() -> None:
    with serve_replies(Reply(deltas=["a", "b"], drop_after=0), Reply(deltas=["a", "b"])) as server:
        assert read(server)[:-1] == ["a", "b"]
    got: list[str | Completion] = []

    async def collect(llm: LLM) -> None:
        async for item in llm.stream(HELLO):
            got.append(item)

    with serve_replies(Reply(deltas=["a", "b"], drop_after=1), "again") as server:
        with pytest.raises(LLMUnreachable, match=r"broke off|cannot be reached") as failed:
            together(server, collect)
        assert len(server.asked) == 1
    assert got == ["a"]
    assert failed.value.usage.completion_tokens == 1 and failed.value.usage.prompt_tokens > 0


# ---------------------------------------------------------------------------------------------- cancellation


def test_deltas_arrive_at_once_and_closing_the_stream_closes_the_request() -> None:
    async def first(llm: LLM) -> LLMSession:
        calls = LLMSession(llm)
        stream = calls.stream("go on")
        assert await anext(stream) == "a"
        await stream.aclose()
        assert await asyncio.to_thread(server.wait_for, lambda s: s.disconnects == 1)
        return calls

    with serve_replies(Reply(deltas=["a", "b"], drop_after=1, hang=True)) as server:  # the second one never comes
        calls = together(server, first, prompt_price=1_000_000)
    assert calls.exchanges[0].completion == "a"
    assert calls.usage.calls == 1 and calls.usage.cost == calls.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    "reply", [Reply(hang=True), Reply(deltas=["a", "b"], drop_after=1, hang=True), Reply(status=429, retry_after=20)]
)
@pytest.mark.parametrize("streaming", [True, False])
def test_cancelling_the_task_closes_the_request(reply: Reply, streaming: bool) -> None:
    async def start(llm: LLM) -> None:
        async def work() -> None:
            if streaming:
                async for _ in llm.stream(HELLO):
                    pass
            else:
                await llm.complete(HELLO)

        task = asyncio.create_task(work())
        assert await asyncio.to_thread(server.wait_for, lambda s: len(s.asked) == 1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_for, lambda s: s.running == 0)

    with serve_replies(reply) as server:
        together(server, start)
    assert server.disconnects == (reply.status == 200)
    assert len(server.asked) == 1


# ---------------------------------------------------------------------------------------------- errors


def test_unreachable_url_is_reported_with_the_model() -> None:
    with closed_port() as port:
        url = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(LLMUnreachable, match=f"scripted at {url} cannot be reached"):
            asyncio.run(LLM("scripted", base_url=url, settings=LLMSettings(retries=0)).complete(HELLO))


@pytest.mark.parametrize("status", [401, 403])
def test_refused_key_is_never_repeated(status: int) -> None:
    echo = {"message": f"Incorrect API key provided: {KEY}."}
    with serve_replies(Reply(status=status, error=echo)) as server, pytest.raises(LLMKeyRefused) as failed:
        ask(server)
    said = str(failed.value)
    assert "scripted" in said and server.url in said and str(status) in said
    assert KEY not in said and failed.value.__cause__ is None


def test_key_that_is_invalid_in_a_header_is_reported_but_not_repeated() -> None:
    with pytest.raises(KeyUnusable, match="scripted") as failed:
        LLM("scripted", base_url="http://127.0.0.1:1/v1", api_key="sk-secret…")
    assert "secret" not in str(failed.value)
    with serve_replies("Hello.") as server:
        ask(server, api_key=f" {KEY}\n")
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_key_in_any_error_and_password_in_the_url_are_hidden() -> None:
    echo = {"message": f"cannot route {KEY}"}
    with serve_replies(Reply(status=404, error=echo)) as server, pytest.raises(LLMFailed, match="route …") as failed:
        ask(server, base_url=server.url.replace("//", "//me:hidden@"))
    assert KEY not in str(failed.value) and "hidden" not in str(failed.value)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("reply", "why"), [
    (Reply(text=""), "stop"), (Reply(text=None), "stop"), (Reply(text=" \n"), "stop"),
    (Reply(text="", finish_reason="length"), "raise max_tokens"),
    (Reply(text="<think>Or", finish_reason="length"), "raise max_tokens"),
    (Reply(text=None, refusal="I cannot help with that."), "I cannot help with that"),
])  # fmt: skip
def test_empty_answer_is_an_error_with_the_reason(stream: bool, reply: Reply, why: str) -> None:
    with serve_replies(reply) as server, pytest.raises(LLMEmpty, match=why) as failed:
        read(server) if stream else ask(server)
    assert failed.value.usage.prompt_tokens == 4  # it was paid for


@pytest.mark.parametrize(("raw", "words"), [
    *((raw, "scripted at") for raw in (
        "{not json", "[]", '{"choices": []}', '{"detail": "not here"}', '"text"', "null", "data: {broken\n\n",
        'data: {"choices": 5}\n\n', 'data: {"choices": [{"delta": 5}]}\n\n',
    )),
    ('data: {"error": {"message": "CUDA out of memory"}}\n\n', "CUDA out of memory"),
    ("data: [DONE]\n\n", "answers with text/event-stream"),
])  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_reply_that_is_no_chat_completion_is_an_error(raw: str, words: str, stream: bool) -> None:
    with serve_replies(Reply(raw=raw)) as server, pytest.raises(LLMFailed, match=words) as failed:
        read(server) if stream else ask(server)
    assert type(failed.value) is LLMFailed and len(server.asked) == 1


@pytest.mark.parametrize("reply", [
    Reply(status=400, error="the model is loaded with context length of only 4096 tokens"),  # LM Studio
    Reply(status=400, error={"message": "Please reduce the length.", "code": "context_length_exceeded"}),  # Groq
    Reply(status=422, error="`inputs` tokens + `max_new_tokens` must be <= 4096"),  # text-generation-inference
    Reply(raw='data: {"error": {"message": "maximum context length is 4096 tokens"}}\n\n'),
])  # fmt: skip
def test_context_length_error_is_recognized_in_any_form(reply: Reply) -> None:
    with serve_replies(reply) as server, pytest.raises(ContextTooLong):
        ask(server)


def test_context_length_error_is_reported_with_both_numbers() -> None:
    said = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
    error = {"message": said, "code": "context_length_exceeded", "param": "messages"}
    with serve_replies(Reply(status=400, error=error)) as server, pytest.raises(ContextTooLong) as failed:
        ask(server, context_window=8192)
    assert all(number in str(failed.value) for number in ("4096", "5000", "8,192"))
    assert len(server.asked) == 1


# ---------------------------------------------------------------------------------------------- slow models


@pytest.mark.parametrize("streaming", [True, False])
def test_first_token_limit_covers_all_retries_and_is_not_retried(streaming: bool) -> None:
    for limit_s in (0.5, 5.0, 50.0):  # on a busy machine, the first reply alone may take longer than a short limit
        with serve_replies(Reply(status=503, retry_after=0, delay_s=0.2), Reply(hang=True)) as server:
            began = time.monotonic()
            with pytest.raises(LLMTimeout, match=rf"did not begin to answer within {limit_s:g} s \(`first_token_s`\)"):
                (read if streaming else ask)(server, first_token_s=limit_s)
            assert time.monotonic() - began > 0.8 * limit_s
            if len(server.asked) > 1:
                assert server.wait_for(lambda s: s.disconnects == 1)
                break
    assert len(server.asked) == 2


@pytest.mark.parametrize("streaming", [True, False])
def test_model_that_stops_generating_fails(streaming: bool) -> None:
    with serve_replies(Reply(deltas=["a", "b"], drop_after=1, hang=True)) as server:
        with pytest.raises(LLMTimeout, match=r"no token came within 0\.5 s \(`between_tokens_s`\)"):
            read(server, between_tokens_s=0.5) if streaming else ask(server, between_tokens_s=0.5)
        assert server.wait_for(lambda s: s.disconnects == 1)
    assert len(server.asked) == 1


def test_model_that_writes_or_thinks_is_never_cut_off() -> None:
    async def all_at_once(llm: LLM) -> list[Any]:
        whole = [llm.complete([Message("user", words)], schema=schema)
                 for words, schema in (("Write.", None), ("Write.", SCHEMA), ("Think.", None))]  # fmt: skip
        return await asyncio.gather(*whole, streamed(llm))

    async def streamed(llm: LLM) -> list[str | Completion]:
        return [item async for item in llm.stream([Message("user", "Write.")])]

    thinking = Reply("Hello.", thoughts=list("abcd"), delay_s=0.7)
    with ScriptedLLM([("Think", thinking)], default=Reply(deltas=list('"abc"'), delay_s=0.7)) as server:  # 3.5 s in all
        *whole, stream = together(server, all_at_once, first_token_s=3.0, between_tokens_s=3.0)
    assert [done.text for done in whole] == ['"abc"', '"abc"', "Hello."] and stream[:-1] == list('"abc"')


def test_role_delta_is_not_counted_as_a_token() -> None:
    with serve_replies(Reply("Hello.", reading_s=1.5)) as server:  # the role arrives immediately
        assert ask(server, first_token_s=60, between_tokens_s=0.5).text == "Hello."


WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Whole."}, "finish_reason": "stop"}]}


def test_server_that_ignores_streaming_answers_in_one_piece() -> None:
    with serve_replies(Reply(raw=json.dumps(WHOLE))) as server:
        assert ask(server).text == "Whole."
        assert read(server)[:-1] == ["Whole."]


def test_server_refusing_streams_with_a_schema_is_asked_for_a_whole_reply() -> None:
    said = {"message": "streaming is not supported with response_format json_schema"}
    with ScriptedLLM([(lambda request: request.stream, Reply(status=400, error=said))], default="{}") as server:
        assert together(server, lambda llm: llm.complete(HELLO, schema=SCHEMA)).text == "{}"
    assert "response_format" in server.asked[-1].body and "stream_options" not in server.asked[-1].body
