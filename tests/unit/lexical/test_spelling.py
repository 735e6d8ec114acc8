"""Typos are corrected to the index's own words; names and correct questions stay unchanged."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.lexical import LexicalIndex, terms
from pipelines.lexical.english import is_english
from pipelines.lexical.spelling import correct

TEXTS = [
    "How do I create an index on a table? Create it with CREATE INDEX on the table.",
    "An index on a table is created by a statement. Each table may have an index.",
    "Extract the module of urllib, the type, the environment, and the scalar result.",
    "The environment of a module has a type. Notifications reach the module that sets the scalar.",
    "Wie man einen Index anlegt. Reads and searches the JSON notifications, extract by extract.",
]
HITS = [make_hit(f"https://d.test/p{n}", text) for n, text in enumerate(TEXTS)]


class Words:
    """The vocabulary of TEXTS, with each word in enough chunks to count."""

    texts = 100

    def knows(self, word: str) -> bool:
        return terms(word)[0] in {term for text in TEXTS for term in terms(text)}

    def words(self, prefix: str) -> Sequence[tuple[str, int]]:
        words = {word.lower() for text in TEXTS for word in text.split() if word.isalpha()}
        return [(word, 5) for word in sorted(words) if word.startswith(prefix)]


def spelled(question: str) -> str:
    return correct(question, Words(), is_english)


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("craete an indx on a tabel", "create an index on a table"),
        ("Craete an indx on a tabel?", "Create an index on a table?"),
        ("indx", "index"),
        ("which enviorment has a type", "which environment has a type"),
        ("how do I bake an indx", "how do I bake an index"),  # an English word is not a typo, even next to one
        ("invent a tabel of the enviorment", "invent a table of the environment"),
        ("notifcations of the moduel", "notifications of the module"),
    ],
)
def test_typo_is_corrected_to_a_word_of_the_index(question: str, meant: str) -> None:
    assert spelled(question) == meant


@pytest.mark.parametrize(
    "question",
    [
        "How do I create an index on a table?",  # no typo
        "the crate of an index", "tamper with a tube",  # English words
        "create an indx_name on a table", "create an `indx` on a table", "an index on a TABEL", "the Indx of a table",
        "the urlllib.modul of a table",  # code, quotations, capitals, names
        "the extractor of an index", "the searcher of an index", "the type of rllib", "the dtype of a table",
        "jsonb index",  # a different ending or first letter makes another word
        "Wie erstelle ich eine Tabelle auf dem Server", "как создать индекс", "xqzt vbnm klop",
        "an index " + "indx " * 70,  # a pasted file
    ],
)  # fmt: skip
def test_plausible_words_stay_unchanged(question: str) -> None:
    assert spelled(question) == question


def test_lookups_stop_after_too_many_unknown_words() -> None:
    class Counted(Words):
        asked = 0

        def words(self, prefix: str) -> Sequence[tuple[str, int]]:
            self.asked += 1
            return super().words(prefix)

    words = Counted()
    assert correct("xqzt vbnm klop " * 4, words, is_english).startswith("xqzt")
    assert words.asked == 5


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(*HITS)


@pytest.fixture
def retriever(tmp_path: Path, store: MemoryStore) -> Iterator[Retriever]:
    with closing(Retriever(store, lambda _: WordEmbedder(), lambda _: LexicalIndex(tmp_path / "lexical"))) as made:
        made.prepare()
        yield made


def test_corrected_question_is_searched_and_shown(retriever: Retriever) -> None:
    answer = QueryEngine(retriever).query("craete an indx on a tabel")
    assert answer.queries == ("create an index on a table",) and answer.question == "craete an indx on a tabel"
    assert answer.notes == ("Searched for: create an index on a table",)
    assert answer.text.startswith("Searched for: create an index on a table\n\n") and answer.known
    plain = QueryEngine(retriever).query("create an index on a table")
    assert plain.notes == () and [hit.source for hit in plain.hits] == [hit.source for hit in answer.hits]


@pytest.mark.parametrize(("spelling", "asked"), [(True, "an index on a table"), (False, "an indx on a tabel")])
def test_first_question_to_a_collection_is_corrected_unless_disabled(tmp_path, store, spelling, asked):
    lexical, settings = LexicalIndex(tmp_path / "lexical"), RetrievalSettings(spelling=spelling)
    with closing(Retriever(store, lambda _: WordEmbedder(), lambda _: lexical, settings=settings)) as retriever:
        assert retriever.retrieve(Search(("an indx on a tabel",))).queries == (asked,)


def test_question_in_another_language_is_not_looked_up(tmp_path: Path, store: MemoryStore) -> None:
    lexical = LexicalIndex(tmp_path / "lexical")
    lexical.correct = None  # type: ignore[assignment]
    with closing(Retriever(store, lambda _: WordEmbedder(), lambda _: lexical)) as retriever:
        assert retriever.retrieve(Search(("Wie erstelle ich einen Index?",))).hits


def test_newly_published_word_is_no_typo(retriever: Retriever, store: MemoryStore) -> None:
    assert retriever.retrieve(Search(("index on a tabel",))).question == "index on a table"
    store.publish(1, *HITS, make_hit("https://d.test/new", "A tabel is a new thing."))
    retriever.prepare()
    assert retriever.retrieve(Search(("index on a tabel",))).question == "index on a tabel"
