"""Text that is not from the pages is in the question's language, else in the reader's, and a refusal stays one."""

import pytest
from kit.answering import make_hit
from kit.queued_model import Says

from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import Question
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.writing.stages.refusals import gives_up
from pipelines.text.languages import LANGUAGES, say

HITS = [make_hit("https://d.test/data#csv", "Call read_csv to read a CSV file.")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_unanswered_question_is_refused_in_the_language_of_the_reader(engine: QueryEngine, language: str) -> None:
    answer = engine.query("sourdough", language=language)
    assert answer.text.startswith(say("unknown", language)) and not answer.known
    assert answer.citations == () and answer.confidence == "low"  # no hit is close to the question


@pytest.mark.parametrize("language", LANGUAGES)
def test_refusal_of_a_model_is_recognized_in_any_language(retriever: Retriever, language: str) -> None:
    sentence = say("unknown", language)
    model = Says(*sentence)
    answer = QueryEngine(retriever, None, model).query("csv", mode="context_only", context=("One.",), language=language)
    assert not answer.known and answer.text.startswith(sentence)
    assert answer.text.count(sentence) == 1
    assert gives_up(sentence)


def test_language_of_a_question_wins_over_the_language_of_the_reader(engine: QueryEngine) -> None:
    asked = Question("Warum ist der Himmel nicht blau?", language="fr")
    assert engine.query(asked).text.startswith(say("unknown", "de"))
    assert engine.query("How do I bake bread?", language="fr").text.startswith("I do not know")


def test_small_talk_is_answered_in_its_language(engine: QueryEngine) -> None:
    assert engine.query("vielen Dank!", language="fr").text == say("thanks", "de")
    assert engine.query("👋", language="ja").text.startswith("こんにちは！ドキュメント（docs）")


def test_model_gets_the_refusal_in_the_language_of_the_reader(retriever: Retriever) -> None:
    model = Says("Ruf read_csv auf.")
    QueryEngine(retriever, None, model).query("Wie lese ich eine Datei mit csv?")
    assert say("unknown", "de") in model.run[0]
