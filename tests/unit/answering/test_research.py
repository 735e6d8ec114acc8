"""A model that looks again before it answers: what its tools reach, and what happens if it or a server fails."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.queued_model import Says
from kit.scripted_llm import Reply, Request, ScriptedLLM, in_turn

from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import EngineSettings, Question
from pipelines.answering.research.researcher import MOST_MISTAKES, numbers_in
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.synthesis.base import ModeNeedsModel
from pipelines.answering.writing.agents import LLMAgent
from pipelines.lexical import LexicalIndex
from pipelines.llm.client import LLM, LLMSettings
from pipelines.llm.session import OPENING, READING, SEARCHING, Status
from pipelines.records import Answer, Filters

SITE = "https://d.test"
SIDES = [
    make_hit(f"{SITE}/wool#wool", "Wool keeps warm in the rain.", ("Fabrics", "Wool")),
    make_hit(f"{SITE}/linen#linen", "Linen dries fast and stays cool.", ("Fabrics", "Linen"), ordinal=0),
    make_hit(f"{SITE}/linen#care", "Wash it at forty degrees.", ("Fabrics", "Care"), ordinal=1),
    make_hit(f"{SITE}/old#linen", "Flax was retted in ponds.", ("History",), version="1"),
]
OTHERS = [make_hit(f"{SITE}/page{n}", f"Wool product number {n} is sold by the metre.") for n in range(20)]
ASKED = "Which keeps warm, wool or its rival?"
WRITES = "Wool keeps warm [1]."


def call(query: str, name: str = "search", key: str = "query") -> tuple[str, str]:
    return name, json.dumps({key: query})


def looks(*calls: tuple[str, str]) -> Reply:
    return Reply(text="", calls=calls, finish_reason="tool_calls")


def results_of(request: Request) -> list[str]:
    """What the tools said so far."""
    return [str(message["content"]) for message in request.messages if message["role"] == "tool"]


def chooses(*texts: str) -> Callable[[Request], str]:
    """Names the sections with these texts."""

    def reply(request: Request) -> str:
        before = [request.text.split(text)[0].rpartition("\n[")[2].partition("]")[0] for text in texts]
        return " ".join(f"[{number}]" for number in before)

    return reply


Ask = Callable[..., tuple[Answer, ScriptedLLM, list[Any]]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Ask a model that gives `replies` in turn; returns the answer, the model and all events."""
    store = MemoryStore(*SIDES, *OTHERS)
    store.publish_index(2, make_hit("https://other.test/secret#x", "Silk is secret."), collection="other")
    lexical = LexicalIndex(tmp_path / "docs")

    with closing(Retriever(store, lambda _: WordEmbedder(), lambda _: lexical, collection="docs")) as retriever:
        retriever.prepare()

        def run(*replies: Any, settings: Any = EngineSettings(), **options: Any) -> tuple[Answer, ScriptedLLM, list]:
            with ScriptedLLM(default=in_turn(*replies)) as model:
                llm = LLM("m", base_url=model.url, settings=LLMSettings(retries=0, context_window=16_000))
                engine = QueryEngine(retriever, None, llm, settings=settings)
                asked = Question(options.pop("question", ASKED), mode="research", **options)

                async def collect() -> list[Any]:
                    return [event async for event in engine.stream(asked)]

                *events, answer = asyncio.run(collect())
                return answer, model, events

        yield run


def test_what_a_model_looks_for_is_found_numbered_and_cited(ask: Ask) -> None:
    answer, model, events = ask(
        looks(call("linen dries"), call("retted flax")),
        chooses("Linen dries fast", "Wool keeps warm"),
        "Linen dries fast [1]. Wool keeps warm [2].",
    )
    first, second, last = model.asked
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["search", "read_page"]
    assert "tool_choice" not in first.body and "tools" not in last.body
    said = second.messages[-3:]
    assert [message["role"] for message in said] == ["assistant", "tool", "tool"]
    assert [one["id"] for one in said[0]["tool_calls"]] == [one["tool_call_id"] for one in said[1:]]
    assert "Linen dries fast" in said[1]["content"] and "Flax was retted" in said[2]["content"]
    assert answer.queries == (ASKED, "linen dries", "retted flax") and answer.degraded == ()
    assert [citation.n for citation in answer.citations] == [1, 2] and answer.usage.calls == 3
    assert "[1] " in last.prompt and len(answer.exchanges) == 3
    assert answer.exchanges[0].completion.startswith('search({"query": "linen dries"})')
    looked = [(event.stage, event.about) for event in events if isinstance(event, Status) and event.about]
    assert looked == [(SEARCHING, "linen dries"), (SEARCHING, "retted flax")]
    read = [event.passages for event in events if isinstance(event, Status) and event.stage == READING]
    assert read[0] < read[1], "the model has read more since"
    found = [event for event in events if isinstance(event, Retrieval)]
    assert len(found) == 2 and found[1].hits == answer.hits  # the first ones come before the model looks


def test_research_packs_prompts_outside_the_event_loop(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, count = dict[str, str](), LLM.count

    def noted(model: LLM, text: str) -> int:
        counted.setdefault(text, threading.current_thread().name)  # the model keeps the count of a text
        return count(model, text)

    monkeypatch.setattr(LLM, "count", noted)
    ask(looks(call("linen dries")), looks(call(f"{SITE}/linen", "read_page", "page")), "[1]", WRITES)
    of_sections = {name for text, name in counted.items() if text.startswith("[1] ")}  # rather than whole prompts
    assert of_sections and threading.main_thread().name not in of_sections, counted


def test_a_chosen_section_comes_first_and_all_that_was_read_may_be_cited(ask: Ask) -> None:
    answer, _, _ = ask(looks(call("linen dries fast")), chooses("Linen dries fast"), "Linen dries fast [1].")
    assert answer.hits[0].source == f"{SITE}/linen#linen" and answer.citations[0].source == f"{SITE}/linen#linen"
    assert f"{SITE}/wool#wool" in [hit.source for hit in answer.hits]
    assert len({hit.chunk_id for hit in answer.hits}) == len(answer.hits)


def test_a_page_is_read_by_the_number_of_a_section_or_by_its_url(ask: Ask) -> None:
    for page in ("1", f"{SITE}/linen#care", f"{SITE}/linen.html"):
        answer, model, events = ask(looks(call("linen cool")), looks(call(page, "read_page", "page")), "[1]", WRITES)
        assert OPENING in [event.stage for event in events if isinstance(event, Status)]
        if page != "1":
            assert "Wash it at forty degrees" in results_of(model.asked[2])[1]
            assert "Wash it at forty degrees." in [hit.text for hit in answer.hits]


def test_a_model_that_calls_nothing_answers_from_what_was_found(ask: Ask) -> None:
    answer, model, _ = ask("Wool keeps warm [1].", WRITES)
    assert answer.text == WRITES and answer.degraded == () and len(model.asked) == 2


def test_whole_messages_have_calls_too(ask: Ask) -> None:
    """A server that refuses to stream is asked for whole replies."""
    refuse = Reply(status=400, error={"message": "stream is not supported with tools"})
    answer, model, _ = ask(refuse, looks(call("linen dries")), "[1]", WRITES)
    assert answer.queries[1:] == ("linen dries",) and not model.asked[1].stream


def test_what_a_model_calls_wrongly_is_told_to_it_a_few_times(ask: Ask) -> None:
    wrong = [
        ("fetch", '{"url": "http://evil.test"}'),
        ("search", '{"query": "lin'),
        ("search", '["linen"]'),
        ("search", '{"query": "linen", "collection": "other"}'),
        ("search", "{}"),
    ]
    answer, model, _ = ask(looks(*wrong), "[1]", WRITES)
    said = results_of(model.asked[1])
    for text, part in zip(said, ("no tool 'fetch'", "not JSON", "one object", "'collection'", "'query'"), strict=True):
        assert text.startswith("Error: ") and part in text
    assert model.asked[1].body["tool_choice"] == "none" and len(wrong) > MOST_MISTAKES
    assert answer.text == WRITES and answer.degraded == ()


def test_a_model_that_never_stops_is_stopped(ask: Ask) -> None:
    def again(request: Request) -> str | Reply:
        if "tools" not in request.body:
            return WRITES
        return looks(call(f"linen {len(request.messages)}"))

    answer, model, _ = ask(again, settings=EngineSettings(rounds=2))
    assert [request.body.get("tool_choice") for request in model.asked] == [None, None, "none", None]
    assert answer.text == WRITES and answer.degraded == () and len(answer.queries) == 3


def test_the_same_search_is_not_made_twice(ask: Ask) -> None:
    _, model, _ = ask(looks(call("linen")), looks(call(" linen ")), "[1]", WRITES)
    assert "searched for before" in results_of(model.asked[2])[1]


def test_tools_that_a_server_refuses_leave_the_usual_answer(ask: Ask) -> None:
    refuse = Reply(status=400, error={"message": "this model does not support tools"})
    answer, model, _ = ask(refuse, WRITES)
    assert answer.text == WRITES and answer.degraded == ("research",)
    assert "from the passages, which begin" in model.asked[-1].prompt  # the usual prompt, of the usual hits
    assert len(answer.hits) == EngineSettings().k


def test_what_was_found_before_a_failure_is_used(ask: Ask) -> None:
    answer, _, _ = ask(looks(call("linen dries")), Reply(status=400), WRITES)
    assert answer.degraded == ("research",) and f"{SITE}/linen#linen" in [hit.source for hit in answer.hits]


def test_rounds_that_take_too_long_leave_the_usual_answer(ask: Ask) -> None:
    def hang(request: Request) -> str | Reply:
        return Reply(hang=True) if "tools" in request.body else WRITES

    answer, _, _ = ask(hang, settings=EngineSettings(rounds_s=0.2))
    assert answer.text == WRITES and answer.degraded == ("research",)


def test_a_model_without_tool_calls_gives_the_usual_answer(tmp_path: Path) -> None:
    lexical = LexicalIndex(tmp_path)
    with closing(Retriever(MemoryStore(*SIDES), lambda _: WordEmbedder(), lambda _: lexical)) as retriever:
        retriever.prepare()
        answer = QueryEngine(retriever, None, Says(WRITES)).query(ASKED, mode="research")
        assert answer.text == WRITES and answer.degraded == ("research",)
        with pytest.raises(ModeNeedsModel):
            QueryEngine(retriever).query(ASKED, mode="research")


class Elsewhere:
    """An agent that answers in another process, and `like` which there is one in this process."""

    def __init__(self, like: LLMAgent) -> None:
        self.name, self.check, self.answer, self.like = like.name, like.check, like.answer, like


def test_the_model_of_an_agent_elsewhere_looks_again_from_here(tmp_path: Path) -> None:
    lexical = LexicalIndex(tmp_path)
    with (
        closing(Retriever(MemoryStore(*SIDES), lambda _: WordEmbedder(), lambda _: lexical)) as retriever,
        ScriptedLLM(default=in_turn(looks(call("linen dries")), "[1]", WRITES)) as model,
    ):
        retriever.prepare()
        agent = Elsewhere(LLMAgent("far", LLM("m", base_url=model.url)))
        answer = QueryEngine(retriever, agents=[agent]).query(ASKED, mode="research")
    assert answer.agent == "far" and answer.queries[1:] == ("linen dries",) and answer.degraded == ()


def test_tools_reach_only_what_the_question_may_be_answered_from(ask: Ask) -> None:
    pages = [call(page, "read_page", "page") for page in ("https://other.test/secret#x", f"{SITE}/old", "99999")]
    old = (looks(call("silk secret"), call("retted flax"), *pages), "[1]", WRITES)
    answer, model, _ = ask(*old, filters=Filters(url_prefix=f"{SITE}/w"))
    assert all(hit.url.startswith(f"{SITE}/w") for hit in answer.hits)
    said = results_of(model.asked[1])
    assert "secret." not in str(said) and "retted in" not in str(said)
    assert ["is not a page of this documentation" in text for text in said[2:4]] == [True, True]


def test_leaving_ends_the_rounds(tmp_path: Path) -> None:
    with ScriptedLLM(default=in_turn(looks(call("linen")), Reply(hang=True))) as model:
        lexical = LexicalIndex(tmp_path)
        with closing(Retriever(MemoryStore(*SIDES), lambda _: WordEmbedder(), lambda _: lexical)) as retriever:
            engine = QueryEngine(retriever, None, LLM("m", base_url=model.url))

            async def leave() -> None:
                async with aclosing(engine.stream(Question(ASKED, mode="research"))) as stream:
                    async for event in stream:
                        if isinstance(event, Status) and event.stage == SEARCHING:
                            await asyncio.to_thread(model.wait_for, lambda m: len(m.asked) == 2)
                            break

            asyncio.run(leave())
        assert model.wait_for(lambda m: m.disconnects == 1 and not m.running)


def test_a_reply_names_sections_in_brackets_or_by_bare_numbers_if_short() -> None:
    assert numbers_in("[3] [1] [3]") == (3, 1) and numbers_in("3, 1 and 7.") == (3, 1, 7)
    assert numbers_in("word " * 60 + "3") == () and numbers_in("version 3.10") == () and numbers_in("") == ()
