"""Tool calls of a reply: whole or in pieces, in each form in which servers send them."""

import asyncio
import json
from typing import Any

import pytest
from kit.scripted_llm import Reply, ScriptedLLM, in_turn

from pipelines.llm.client import LLM, Completion, LLMSettings
from pipelines.llm.errors import LLMEmpty, LLMFailed
from pipelines.llm.tool_calls import CallReader, as_sent, length_of
from pipelines.records import FINISHED, Message, ToolCall, Usage

ASKED = (Message("user", "Look it up."),)
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
FIRST, SECOND = ToolCall("a", "search", '{"query": "x"}'), ToolCall("b", "read_page", '{"page": "1"}')


def piece(arguments: Any = "", **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {**more, "function": {"arguments": arguments, **({"name": name} if name else {})}}


FORMS = {
    "whole, without an index": [
        [piece(FIRST.arguments, id="a", name="search"), piece(SECOND.arguments, id="b", name="read_page")]
    ],
    "in pieces": [
        [piece(index=0, id="a", name="search")],
        [piece('{"query": ', index=0)],
        [piece('"x"}', index=0)],
        [piece(index=1, id="b", name="read_page")],
        [piece(SECOND.arguments, index=1)],
    ],
    "in pieces that alternate": [
        [piece('{"query"', index=0, id="a", name="search"), piece('{"page": ', index=1, id="b", name="read_page")],
        [piece(': "x"}', index=0, id="a"), piece('"1"}', index=1, id="b")],
    ],
    "each with the index 0": [
        [piece(FIRST.arguments, index=0, id="a", name="search")],
        [piece(SECOND.arguments, index=0, id="b", name="read_page")],
    ],
    "with arguments as objects": [
        [piece({"query": "x"}, index=0, id="a", name="search"), piece({"page": "1"}, index=1, id="b", name="read_page")]
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_calls_are_put_together(form: str) -> None:
    reader = CallReader()
    for pieces in FORMS[form]:
        reader.feed(pieces)
    assert reader.close() == (FIRST, SECOND)


def test_a_call_without_id_name_or_arguments_is_none_the_less_one() -> None:
    reader = CallReader()
    reader.feed([{}, {"function": None}, {"index": None, "id": None, "function": {"name": "search"}}])
    assert [call.id for call in reader.close()] == ["call_1", "call_2", "call_3"]
    assert reader.close()[2].name == "search" and CallReader().close() == ()
    assert length_of("no list") == 0 and length_of([piece("1234", name="ab")]) >= 6


def test_calls_and_results_are_sent_as_the_api_wants_them() -> None:
    sent = as_sent(Message("assistant", "", (FIRST,)))
    assert sent["content"] is None and sent["tool_calls"][0]["function"]["arguments"] == FIRST.arguments
    result = as_sent(Message("tool", "found", call_id="a"))
    assert result == {"role": "tool", "content": "found", "tool_call_id": "a"}
    assert as_sent(Message("user", "hello")) == {"role": "user", "content": "hello"}


def call(model: ScriptedLLM, *, may_call: bool = True, **settings: Any) -> Completion:
    async def run() -> Completion:
        llm = LLM("m", base_url=model.url, settings=LLMSettings(retries=0, **settings))
        try:
            return await llm.call(ASKED, TOOLS, may_call=may_call)
        finally:
            await llm.close()

    return asyncio.run(run())


@pytest.mark.parametrize("whole", [False, True])
def test_a_model_calls_several_tools_at_once(whole: bool) -> None:
    calls = (("search", '{"query": "x"}'), ("read_page", '{"page": "1"}'))
    refuse = [Reply(status=400, error={"message": "stream must be false"})] if whole else []
    with ScriptedLLM(default=in_turn(*refuse, Reply("", calls=calls, finish_reason="tool_calls"))) as model:
        completion = call(model)
    assert [(one.name, one.arguments) for one in completion.calls] == list(calls)
    assert completion.text == "" and completion.finish_reason == FINISHED and completion.usage != Usage()
    assert model.asked[-1].body["tools"] == TOOLS and "tool_choice" not in model.asked[-1].body


def test_a_model_is_asked_for_words_where_it_may_call_nothing() -> None:
    refuse = Reply(status=400, error={"message": "tool_choice is not supported"})
    with ScriptedLLM(default=in_turn(refuse, "Words.")) as model:
        assert call(model, may_call=False).text == "Words."
    assert [request.body.get("tool_choice") for request in model.asked] == ["none", None]


def test_a_server_without_tools_and_an_empty_reply_are_errors() -> None:
    refuse = Reply(status=400, error={"message": "tools are not supported"})
    with ScriptedLLM(default=refuse) as model, pytest.raises(LLMFailed, match="tools are not supported"):
        call(model)
    with ScriptedLLM(default=Reply("")) as model, pytest.raises(LLMEmpty):
        call(model)


def test_calls_that_never_end_are_cut_off() -> None:
    long = json.dumps({"query": "x" * 5_000})
    with ScriptedLLM(default=Reply("", calls=[("search", long)], finish_reason="tool_calls")) as model:
        completion = call(model, longest_reply=1_000)
    assert completion.finish_reason == "length" and len(completion.calls[0].arguments) < len(long)
