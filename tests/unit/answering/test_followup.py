"""A follow-up without a language model keeps the previous turn's subject, or says that it could not."""

import asyncio

import pytest
from kit.answering import MemoryStore, make_hit
from kit.queued_model import Says

from pipelines.answering.conversation.followup import complete
from pipelines.answering.conversation.open_page import OpenPage
from pipelines.answering.conversation.reader import Reading, asked_before
from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.conversation.smalltalk import strip_smalltalk
from pipelines.answering.conversation.two_questions import questions_in
from pipelines.answering.engine import QueryEngine
from pipelines.answering.hit_finder import HitFinder
from pipelines.answering.question import EngineSettings, Question
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.synthesis.extractive import choose
from pipelines.answering.trace import Trace
from pipelines.llm.errors import LLMFailed
from pipelines.records import Index, IndexSettings, Message

HITS = [
    make_hit("https://d.test/create", "Create an index on a table of PostgreSQL with create index."),
    make_hit("https://d.test/drop", "Drop an index of PostgreSQL with drop index."),
    make_hit("https://d.test/stop", "Stop a Ray cluster on AWS with ray down."),
]


def turns(*questions: str) -> tuple[Message, ...]:
    return tuple(Message(*said) for one in questions for said in (("user", one), ("assistant", "An answer.")))


@pytest.mark.parametrize(("before", "question", "alone", "about"), [
    ("how do I create an index in PostgreSQL?", "and how do I drop it?",
     "how do I drop an index in PostgreSQL?", "an index"),
    ("how do I start Ray on AWS?", "thanks, and how do I stop it?", "how do I stop Ray on AWS?", "Ray"),
    ("how do I start a Ray cluster on AWS?", "and on GCP?", "how do I start a Ray cluster on GCP?", "a Ray cluster"),
    ("What is a context manager?", "how do I write one?", "how do I write a context manager?", "a context manager"),
    ("How do I read a CSV file?", "what about JSON?", "How do I read JSON?", ""),
    ("what does VACUUM FULL do?", "does it lock the table?", "does VACUUM FULL lock the table?", "VACUUM FULL"),
    ("how does autovacuum work?", "how can I turn it off?", "how can I turn autovacuum off?", "autovacuum"),
    ("how do I tune parameters", "how do I do this on a GPU?", "how do I tune parameters on a GPU?", "parameters"),
    ("what is MVCC?", "show me an example", "show me an example? (what is MVCC)", "MVCC"),
    ("json or jsonb", "which one is faster?", "which one is faster? (json or jsonb)", "json or jsonb"),
    ("lru_cache", "How do I clear it?", "How do I clear lru_cache?", "lru_cache"),
    ("What is the lru_cache decorator for?", "How do I clear it?", "How do I clear lru_cache?", "lru_cache"),
    ("my code uses lru_cache and leaks", "How do I clear it?", "How do I clear lru_cache?", "lru_cache"),
    ("What is pathlib?", "How do I delete a file with it?", "How do I delete a file with pathlib?", "pathlib"),
    ("sourdough bread", "how long does it take?", "how long does it take? (sourdough bread)", "sourdough bread"),
    ("What is VACUUM?", "How do I install Ray on Windows?", "How do I install Ray on Windows?", ""),
])  # fmt: skip
def test_follow_up_keeps_its_subject_and_it_is_known(before: str, question: str, alone: str, about: str) -> None:
    completed = complete(strip_smalltalk(question), [before])
    assert (completed.question, completed.about) == (alone, about)


@pytest.mark.parametrize("question", [
    "What is VACUUM?", "How do I make sure an index is used when it is rebuilt?", "is it possible to use conda?",
    "How do I open a file and write to it?", "What does a query return when nothing is in it?",
    "How do I read a CSV file in parallel?", "Which one of the isolation levels is the default level?",
    "What is the maximum size of a table?", "Which isolation levels are there in PostgreSQL?", "window functions",
    "How does the garbage collector work when it finds a cycle?", "How do I install Ray on Windows?", "The GIL?",
])  # fmt: skip
def test_standalone_question_stays_unchanged_after_any_conversation(question: str) -> None:
    chain = ["How do I scale a Serve deployment?", "its minimum number of replicas?", "the maximum?"]
    for before in (["how do I create an index in PostgreSQL?"], chain):
        assert complete(question, before).question == question


def test_subject_is_kept_over_several_turns_and_thanks() -> None:
    before = ["how do I create an index in PostgreSQL?", "thanks!", "and how do I drop it?", "ok, thank you"]
    alone = complete("how do I rename it?", asked_before(turns(*before))).question
    assert alone == "how do I rename an index in PostgreSQL?"


@pytest.mark.parametrize(("before", "question", "alone"), [
    (["How do I scale a Serve deployment?", "its minimum number of replicas?"], "the maximum?",
         "its maximum number of replicas? (How do I scale a Serve deployment)"),
    (["How do I scale a Serve deployment?", "its minimum number of replicas?", "the maximum?"], "can I change it?",
         "can I change it? (How do I scale a Serve deployment: its maximum number of replicas)"),
    (["How do I log slow queries?", "the minimum duration?", "and its default?"], "can I sample them?",
         "can I sample them? (How do I log slow queries: the minimum duration)"),
    (["How do I run a subprocess?", "how do I get its output?"], "what about a timeout?",
         "a timeout? (How do I run a subprocess)"),
    (["How do I retry a failed task?", "what is the default number of its retries?"], "and for actors?",
         "for actors? (How do I retry a failed task: the default number of its retries)"),
    (["What is a placement group?", "which strategies are there for it?"], "and how do I remove one?",
         "how do I remove a placement group?"),
    (["How do I read files with Ray Data?", "what about compressed ones?"], "and from S3?",
         "How do I read compressed files from S3?"),
    (["How do I scale a Serve deployment?", "its minimum number of replicas?", "What is VACUUM?"], "why?",
         "why? (What is VACUUM)"),
])  # fmt: skip
def test_chained_follow_up_is_completed_by_its_topic_and_the_last_turn(
    before: list[str], question: str, alone: str
) -> None:
    assert complete(question, before).question == alone


def test_answer_shows_the_searched_question(engine: QueryEngine) -> None:
    history = turns("how do I create an index in PostgreSQL?")
    answer = engine.query("and how do I drop it?", history=history)
    assert answer.queries == ("how do I drop an index in PostgreSQL?",)
    assert answer.text.startswith("Searched for: how do I drop an index in PostgreSQL?\n\n")
    assert answer.hits[0].url.endswith("/drop")


def test_answer_says_if_the_reference_is_unclear(engine: QueryEngine) -> None:
    answer = engine.query("and how do I drop it?", history=turns("hello"))
    assert answer.notes == ('I can\'t tell what "it" refers to. Ask the whole question in one message.',)
    assert answer.text.startswith(answer.notes[0])


def test_rules_replace_a_failing_model(retriever: Retriever) -> None:
    engine = QueryEngine(retriever, rewriter=Rewriter(Says(error=LLMFailed("gone"))))
    answer = engine.query("and why?", history=turns("how do I create an index in PostgreSQL?"))
    assert answer.queries == ("why? (how do I create an index in PostgreSQL)",) and answer.degraded == ("rewrite",)


CLEAR = "Removes all elements from the set in place. A frozen one has no such method, since it does not change."
CACHE = "A decorator that keeps the results of earlier calls. Its method cache_clear forgets all of them at once."


def test_follow_up_is_answered_from_its_own_subject() -> None:
    sets = make_hit("https://d.test/sets#clear", f"clear()\n\n{CLEAR}", ("Sets", "How to clear a set"))
    cached = make_hit("https://d.test/functools#lru", f"@lru_cache(maxsize=128)\n\n{CACHE}", ("functools", "lru_cache"))
    chosen = choose("How do I clear lru_cache?", (sets, cached), about="lru_cache")
    assert asyncio.run(chosen)[0].hit == 1


def test_answer_about_another_subject_says_so(engine: QueryEngine, store: MemoryStore) -> None:
    store.publish(1, make_hit("https://d.test/sets#clear", CLEAR, ("Sets", "How do I clear it?")))
    answer = engine.query("How do I clear it?", history=turns("lru_cache"))
    assert 'None of the results is about "lru_cache".' in answer.notes and answer.confidence == "low"


# ---------------------------------------------------------------------------------------------- two questions at once


@pytest.mark.parametrize(("question", "parts"), [
    ("Do I need Postgres, and how do I back it up?", ("Do I need Postgres", "how do I back Postgres up?")),
    ("What is a mule and when should I use one?", ("What is a mule", "when should I use a mule?")),
    ("why is it full of links? where are the files stored", ("why is it full of links", "where are the files stored")),
    ("How do I stop Ray; what happens to its tasks?",
     ("How do I stop Ray", "what happens to its tasks? (How do I stop Ray)")),
    ("How do I read CSV and Parquet files?", ()),
    ("What is the name of the page, which has a table?", ()),
    ("I come from npm, how do I keep my lockfile?", ()),
    ("When I restart Ray, how do I keep its logs?", ()),
    ("Tell me how it starts and what it prints", ()),
])  # fmt: skip
def test_double_question_is_split_and_a_single_one_is_not(question: str, parts: tuple[str, ...]) -> None:
    assert questions_in(question) == parts


def test_each_of_two_questions_is_searched_and_answered(retriever: Retriever) -> None:
    asked = "How do I create an index on a table of PostgreSQL, and how do I stop a cluster?"
    answer = QueryEngine(retriever, settings=EngineSettings(k=2)).query(asked)
    assert "with create index" in answer.text and "with ray down" in answer.text
    assert answer.queries == (asked, "How do I create an index on a table of PostgreSQL", "how do I stop a cluster?")


def test_leg_that_failed_for_one_of_two_questions_is_named() -> None:
    class Searches:
        async def aretrieve(self, search: Search) -> Retrieval:
            index = Index(1, "docs", IndexSettings(), "live", 1)
            degraded = ("bm25",) if search.queries[0].startswith("how do I stop") else ()
            return Retrieval(search.queries[0], (), index, 1, degraded, {})

    asked = "How do I create an index, and how do I stop a cluster?"
    reading, trace = Reading(Question(asked), "compact", asked, (asked,), OpenPage(asked)), Trace()
    finder = HitFinder(Searches(), None, None, EngineSettings())  # type: ignore[arg-type]
    assert asyncio.run(finder.find(reading, trace, quoted=False)).degraded == ("bm25",)
    assert list(trace.degraded) == ["bm25"]
