"""A question prefers pages in its own language, and also finds pages that exist only in another one."""

from dataclasses import replace

import pytest
from kit.answering import MemoryStore, make_hit

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.ranking.prior import OTHER_LANGUAGE, language_prior, no_prior
from pipelines.records import Filters, Hit
from pipelines.text.detection import may_be_asked_in

# Translations contain the names and the code of the page, and few other words here, so they are its nearest by words.
ENGLISH, SPANISH = "How do I open the dialog with plugin-dialog?", "¿Cómo abro el dialog con plugin-dialog?"
HITS = [
    make_hit(f"https://d.test/{path}", text, language=language, version="2")
    for path, language, text in (
        ("dialog", "en", "Open the native dialog for files and messages: plugin-dialog open."),
        ("fr/dialog", "fr", "Le dialog : plugin-dialog open, plugin-dialog open."),
        ("es/dialog", "es-MX", "El dialog nativo para archivos: plugin-dialog open."),
        ("sql", "en", "Query a database with the plugin for SQL."),
    )
]


def with_unrelated(pages: int) -> list[Hit]:
    """Return the right page in English, and `pages` in Spanish that share only small words with the question."""
    text = "La tabla {}: cómo usar la tabla, y qué puedo usar en ella."
    right = make_hit("https://d.test/sidecar", "Embed a sidecar: the sidecar is an external binary.", language="en")
    return [right, *(make_hit(f"https://d.test/es/{n}", text.format(n), language="es") for n in range(pages))]


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(*HITS, *getattr(request, "param", ()))


def first_of(engine: QueryEngine, question: str, **asked: object) -> str:
    return engine.search(question, **asked).hits[0].url.removeprefix("https://d.test/")  # type: ignore[arg-type]


def test_page_in_the_language_of_the_question_comes_first(engine: QueryEngine) -> None:
    assert first_of(engine, ENGLISH) == "dialog"
    assert first_of(engine, SPANISH) == "es/dialog"
    assert first_of(engine, "Comment ouvrir le dialog avec plugin-dialog ?") == "fr/dialog"


def test_question_of_uncertain_language_prefers_none(engine: QueryEngine) -> None:
    assert first_of(engine, "plugin-dialog open") == "fr/dialog"


def test_filter_or_open_page_determines_the_language(engine: QueryEngine) -> None:
    french = engine.search(ENGLISH, filters=Filters(language="fr")).hits
    assert {hit.language for hit in french} == {"fr"}
    assert first_of(engine, "plugin-dialog open", page="https://d.test/es/dialog") == "es/dialog"
    # A question in a language other than the page's is not answered in the page's language, with or without a version
    # filter.
    assert first_of(engine, ENGLISH, page="https://d.test/fr/dialog") == "dialog"
    assert first_of(engine, SPANISH, page="https://d.test/dialog") == "es/dialog"


@pytest.mark.parametrize("page", [None, "https://d.test/fr/dialog", "https://d.test/dialog"])
def test_version_filter_keeps_the_language_preference(engine: QueryEngine, page: str | None) -> None:
    assert first_of(engine, ENGLISH, page=page, filters=Filters(version="2")) == "dialog"


@pytest.mark.parametrize("question", [
    "Wie öffne ich den dialog mit plugin-dialog?", "Как открыть dialog через plugin-dialog?", "ინდექსის dialog შექმნა"
])  # fmt: skip
def test_nothing_changes_without_a_page_in_the_question_language(engine: QueryEngine, question: str) -> None:
    hits = engine.search(question).hits
    assert hits and hits == engine.search(question, filters=Filters()).hits
    assert language_prior("de", HITS) is language_prior("und", HITS) is language_prior("", HITS) is no_prior


def test_pages_in_one_language_are_weighed_alike() -> None:
    unknown = replace(HITS[0], language="")
    assert language_prior("en", [HITS[0], HITS[3], unknown]) is no_prior


def test_pages_of_unknown_language_are_neither_preferred_nor_demoted() -> None:
    unknown = replace(HITS[0], language="")
    assert language_prior("es", [unknown, *HITS[:2]]) is no_prior
    prior = language_prior("es", [unknown, *HITS])
    assert [prior(chunk) for chunk in (unknown, *HITS)] == [1.0, OTHER_LANGUAGE, OTHER_LANGUAGE, 1.0, OTHER_LANGUAGE]


@pytest.mark.parametrize("store", [with_unrelated(1), with_unrelated(4), with_unrelated(40)], indirect=True)
def test_right_page_in_another_language_stays_among_the_hits(
    engine: QueryEngine,
) -> None:
    found = [hit.url for hit in engine.search("¿Cómo puedo embed el sidecar?", k=5).hits]
    assert "https://d.test/sidecar" in found and any("/es/" in url for url in found)


@pytest.mark.parametrize(("asked_in", "language", "may_be"), [
    ("ru", "uk", True), ("ru", "bg-BG", True), ("ru", "en", False), ("uk", "ru", False), ("no", "nb_NO", True),
    ("da", "nn", True), ("de", "de-AT", True), ("de", "nl", False), ("zh", "zh-TW", True), ("ar", "fa", True),
])  # fmt: skip
def test_commonly_confused_language_is_preferred_too(asked_in: str, language: str, may_be: bool) -> None:
    assert may_be_asked_in(asked_in, language) is may_be
