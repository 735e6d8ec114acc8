"""A person's answer is given, labeled and cited, until a section that it relies on changes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from kit.answering import MemoryStore, make_hit

from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import Question
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.verified.answer_finder import VerifiedFinder
from pipelines.answering.verified.pinned import PinnedFinder
from pipelines.answering.verified.sections import changed_sections, pin, read_sections
from pipelines.llm.session import LOADING, Status
from pipelines.records import Filters, Hit, Message, written_by
from pipelines.store import StoreUnavailable, VerifiedAnswer, VerifiedMark

READING = "https://d.test/2.9/io.html#reading"
ASKED = "How do I read a CSV file?"
HITS = [
    make_hit(READING, "Call read_csv with a path.", ("IO", "Reading"), version="2.9"),
    make_hit(READING, "Folders are read whole.", ("IO", "Reading"), version="2.9", ordinal=1),
    make_hit("https://d.test/2.9/io.html#writing", "Call write_csv with a path.", ("IO", "Writing"), version="2.9"),
]


class AnswerStore(MemoryStore):
    """A store in memory that also has verified answers. `reads` counts how often they were read."""

    def __init__(self, *hits: Hit) -> None:
        super().__init__(*hits)
        self.answers: list[VerifiedAnswer] = []
        self.reads = self.marks = 0

    def verified_mark(self, collection: str) -> VerifiedMark:
        self._reach()
        self.marks += 1
        changed = max((answer.changed for answer in self.answers), default=None)
        return VerifiedMark(len(self.answers), changed)

    def verified_answers(self, collection: str) -> list[VerifiedAnswer]:
        self.reads += 1
        return list(self.answers)

    def write(self, text: str, *questions: str, source: str = READING) -> None:
        section = read_sections(self.chunks[1], [source])[source]
        answer = VerifiedAnswer("docs", questions or (ASKED,), text, (pin(source, section),), len(self.answers) + 1)
        self.answers.append(replace(answer, changed=datetime.now(UTC)))


@pytest.fixture
def store() -> AnswerStore:
    return AnswerStore(*HITS)


@pytest.fixture
def engine(store: AnswerStore, retriever: Retriever) -> QueryEngine:
    return QueryEngine(retriever, verified=VerifiedFinder(store, retriever.aembed, similarity=0.6))


def test_verified_answer_is_given_labeled_and_cited(engine: QueryEngine, store: AnswerStore) -> None:
    store.write("Use `read_csv` [1].")
    answer = engine.query("how can I read csv files")
    assert (answer.text, answer.agent, answer.written_by) == ("Use `read_csv` [1].", "verified", "person")
    assert (answer.confidence, answer.known, answer.collection) == ("high", True, "docs")
    [citation] = answer.citations
    assert (citation.n, citation.source, citation.supported, citation.by) == (1, READING, True, "person")
    assert [hit.source for hit in answer.hits] == [READING]
    assert answer.route and "How do I read a CSV file?" in answer.route.why
    assert answer.usage.calls == 0 and (answer.index, answer.revision) == (1, 1)


def test_sections_are_cited_even_if_the_text_has_no_number(engine: QueryEngine, store: AnswerStore) -> None:
    store.write("Use `read_csv`.")
    assert [citation.source for citation in engine.query(ASKED).citations] == [READING]


@pytest.mark.parametrize(("question", "more", "given"), [
    (ASKED, {}, True),
    ("How do I write a CSV file?", {}, False),
    (ASKED, {"filters": Filters(version="2.9")}, True),
    (ASKED, {"filters": Filters(version="2.10")}, False),
    (ASKED, {"filters": Filters(url_prefix="https://d.test/3.0/")}, False),
    (ASKED, {"mode": "no_text"}, False),
    (ASKED, {"mode": "context_only", "context": ("Call read_csv.",)}, False),
])  # fmt: skip
def test_verified_answer_is_given_in_search_modes_and_matching_filters(
    engine: QueryEngine, store: AnswerStore, question: str, more: dict[str, Any], given: bool
) -> None:
    store.write("Use `read_csv` [1].")
    assert (engine.query(question, **more).agent == "verified") is given


def test_events_equal_those_of_any_answer(engine: QueryEngine, store: AnswerStore) -> None:
    store.write("Use `read_csv` [1].")

    async def events() -> list[str]:
        return [type(event).__name__ async for event in engine.stream(Question(ASKED)) if event != Status(LOADING)]

    assert asyncio.run(events()) == [Retrieval.__name__, "Delta", "Answer"]


def test_answer_is_withdrawn_once_its_section_changes(engine, retriever, store):
    store.write("Use `read_csv` [1].")
    assert engine.query(ASKED).agent == "verified"
    store.publish(1, make_hit(READING, "Call load_csv with a path.", ("IO", "Reading"), version="2.9"), *HITS[1:])
    assert engine.query(ASKED).agent != "verified"
    engine = QueryEngine(retriever, verified=VerifiedFinder(store, retriever.aembed, check_s=0.0))
    store.publish(1, *HITS)
    assert engine.query(ASKED).agent == "verified", "the section is as it was"
    store.publish(1, *HITS[2:])
    assert engine.query(ASKED).agent != "verified", "the section is gone"


def test_other_chunk_boundaries_in_the_same_section_are_no_change() -> None:
    [section] = read_sections(HITS, [READING]).values()
    whole = make_hit(READING, "Call read_csv with  a path. Folders\nare read whole.", ("IO", "Reading"))
    assert changed_sections([pin(READING, section)], read_sections([whole], [READING])) == []
    other_heading = replace(whole, headings=("IO", "Reading (deprecated)"))
    assert changed_sections([pin(READING, section)], read_sections([other_heading], [READING])) == [READING]


def test_section_does_not_include_its_neighbors() -> None:
    below = make_hit("https://d.test/io.html#deep", "Deep.", ("IO", "Deep"))
    below = replace(below, anchors=("io", "deep"))
    page = make_hit("https://d.test/io.html", "Intro.")
    found = read_sections([page, below], ["https://d.test/io.html", "https://d.test/io.html#io"])
    assert found["https://d.test/io.html"].passage == "Intro."
    assert found["https://d.test/io.html#io"].passage == "Deep.", "it has no text of its own"


def test_anchor_can_be_escaped_as_in_browsers() -> None:
    page, escaped = "https://d.test/io.html", "https://d.test/io.html#gr%C3%B6%C3%9Fe"
    assert read_sections([make_hit(f"{page}#größe", "Big.")], [escaped])[escaped].passage == "Big."


def test_retired_answer_is_not_given(engine: QueryEngine, store: AnswerStore) -> None:
    store.write("Use `read_csv` [1].")
    store.answers[0] = replace(store.answers[0], retired=True)
    assert engine.query(ASKED).agent != "verified"


def test_version_of_the_open_page_is_preferred(store: AnswerStore, engine: QueryEngine) -> None:
    newer = make_hit("https://d.test/3.0/io.html#reading", "Call load_csv.", ("IO", "Reading"), version="3.0")
    store.publish(1, *HITS, newer)
    store.write("Use `read_csv` [1].")
    store.write("Use `load_csv` [1].", source="https://d.test/3.0/io.html#reading")

    def text(version: str | None) -> str | None:
        finder = VerifiedFinder(store, engine.aembed, check_s=0.0)
        match = asyncio.run(finder.find(ASKED, version=version))
        return match and match.text

    assert [text("2.9"), text("3.0"), text("2.0"), text(None)] == [
        "Use `read_csv` [1].", "Use `load_csv` [1].", None, "Use `load_csv` [1].",
    ]  # fmt: skip


def test_follow_up_gets_it_with_the_searched_question(engine: QueryEngine, store: AnswerStore) -> None:
    store.write("Use `write_csv` [1].", "How do I write a CSV file?", source="https://d.test/2.9/io.html#writing")
    history = (Message("user", "How do I read a CSV file?"), Message("assistant", "Use read_csv."))
    answer = engine.query("and how do I write it?", history=history)
    assert answer.agent == "verified" and answer.notes == ("Searched for: how do I write a CSV file?",)
    assert answer.text.startswith("Searched for: ")


def test_human_answers_are_sanitized_like_model_answers(engine: QueryEngine, store: AnswerStore) -> None:
    remote = "![a](https://evil.test/a.png) [b](https://evil.test/)"
    store.write(f"<img src=https://evil.test onerror=alert(1)> {remote} [2] ok [1]")
    text = engine.query(ASKED).text
    assert "evil.test" not in text and "onerror" not in text and "[2]" not in text and text.endswith("ok [1]")


def test_collection_without_verified_answers_costs_one_lookup_per_second(
    engine: QueryEngine, store: AnswerStore
) -> None:
    for _ in range(20):
        engine.query(ASKED)
    assert store.marks <= 3 and store.reads == 0


def test_failing_step_is_named_and_the_question_still_answered(engine: QueryEngine, store: AnswerStore) -> None:
    def broken(collection: str) -> VerifiedMark:
        raise StoreUnavailable("away")

    store.verified_mark = broken  # type: ignore[method-assign]
    answer = engine.query(ASKED)
    assert answer.agent == "extractive" and "verified" in answer.degraded


def test_hanging_model_is_not_waited_for(store: AnswerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(texts: Sequence[str], collection: str | None = None) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr("pipelines.answering.grounding.support.WAIT_S", 0.05)
    store.write("Use `read_csv` [1].")
    with pytest.raises(TimeoutError):
        asyncio.run(VerifiedFinder(store, hang).find("how can I read csv files", "docs"))


def test_question_can_be_pinned_to_a_section_of_each_version(retriever: Retriever) -> None:
    sections = [make_hit(f"https://d.test/{version}/io", "Call read_csv.", version=version) for version in ("1", "2")]
    store = MemoryStore(*sections)
    said = [{"question": ASKED, "url": section.url} for section in sections]
    index, finder = replace(store.indexes[1], rules={"pinned": said}), PinnedFinder(store, retriever.aembed)
    for version, found in ("1", sections[0]), ("2", sections[1]), (None, sections[1]):
        hit = asyncio.run(finder.find(ASKED, index, version=version))
        assert hit and hit.source == found.source


def test_agent_field_tells_who_wrote_the_answer() -> None:
    assert [written_by(agent) for agent in ("verified", "extractive", "qwen")] == ["person", "quotes", "model"]
