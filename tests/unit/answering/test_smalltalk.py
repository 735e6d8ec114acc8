"""Greetings and thanks are answered directly without sources, and questions are recognized as questions."""

import asyncio

import pytest
from kit.answering import MemoryStore, make_hit
from kit.queued_model import QueuedModel

from pipelines.answering.conversation.smalltalk import find_smalltalk, strip_smalltalk
from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta
from pipelines.answering.question import Question
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval
from pipelines.records import Answer
from pipelines.store import NoLiveIndex

HITS = [make_hit("https://d.test/data#csv", "Call read_csv to read a CSV file.")]


@pytest.mark.parametrize(("message", "kind"), [
    ("hi", "greeting"), ("Hello there", "greeting"), ("good morning", "greeting"), ("Hey, who are you?", "greeting"),
    ("Guten Morgen!", "greeting"), ("¡Hola!", "greeting"), ("Bonjour", "greeting"), ("こんにちは", "greeting"),
    ("👋", "greeting"), ("hi, I have a question", "greeting"),
    ("thanks a lot!", "thanks"), ("thank you, that worked", "thanks"), ("ok, thanks", "thanks"),
    ("Vielen Dank", "thanks"), ("merci beaucoup", "thanks"), ("ありがとうございます", "thanks"), ("谢谢", "thanks"),
    ("Hello, thank you so much for your quick help 🙏", "thanks"), ("Thanks for explaining it!", "thanks"),
    ("bye", "goodbye"),
    # A message that may contain a question is a question.
    ("hello world", None), ("hello world in Ray Serve", None), ("thanks, and how do I stop it?", None),
    ("thanks but it does not work", None), ("ok", None), ("nice", None), ("great", None), ("What is hello?", None),
    ("hi, how do I start Ray?", None), ("thank you page", None), ("?", None), ("...", None), ("hi " * 100, None),
])  # fmt: skip
def test_small_talk_is_recognized(message: str, kind: str | None) -> None:
    smalltalk = find_smalltalk(message)
    assert (smalltalk and smalltalk.kind) == kind


def test_question_is_searched_without_its_polite_phrases() -> None:
    assert strip_smalltalk("Hi! Good morning. What is an actor? Thanks!") == "What is an actor?"
    assert strip_smalltalk("thanks, and how do I stop it?") == "and how do I stop it?"
    for question in ("hello world in Ray Serve", "select 1, 2, 3", "why 'Can only stop.'", "well, what is it?"):
        assert strip_smalltalk(question) == question


def test_greeting_describes_the_assistant(engine: QueryEngine, store: MemoryStore) -> None:
    answer = engine.query("hello there")
    assert answer.text.startswith("Hello! I answer questions") and "(docs)" in answer.text
    assert answer.known and answer.agent == "smalltalk" and answer.citations == answer.hits == answer.queries == ()
    assert store.searches == 0 and not answer.degraded


def test_no_language_model_is_asked_about_a_greeting(retriever: Retriever) -> None:
    engine = QueryEngine(retriever, None, QueuedModel())
    assert engine.query("thanks!").text.startswith("You are welcome!")


def test_greeting_is_streamed_like_an_answer(engine: QueryEngine) -> None:
    async def collect() -> list[object]:
        return [event async for event in engine.stream(Question("hi"))]

    first, delta, answer = asyncio.run(collect())
    assert isinstance(first, Retrieval) and isinstance(delta, Delta) and isinstance(answer, Answer)
    assert delta.text == answer.text and first.hits == ()


def test_greeting_needs_no_database_but_a_known_collection(engine, store):
    store.publish_index(2, *HITS, collection="other")
    assert "(docs, other)" in engine.query("hi").text
    with pytest.raises(NoLiveIndex):
        engine.query("hi", collection="nowhere")
    store.away = True
    assert "(docs)" in engine.query("hi", collection="docs").text


def test_retrieval_only_mode_and_search_skip_small_talk(engine: QueryEngine, store: MemoryStore) -> None:
    assert engine.query("hello there", mode="no_text").text == ""
    assert engine.search("hello there").hits and store.searches == 2


@pytest.mark.timeout(20)
@pytest.mark.parametrize("phrase", ["bye ", "very much ", "thank you ", "good morning ", "for helping "])
def test_hostile_message_takes_no_time(phrase: str) -> None:
    message = phrase * (190 // len(phrase)) + "x"
    assert find_smalltalk(message) is None
    assert strip_smalltalk(message) == message
