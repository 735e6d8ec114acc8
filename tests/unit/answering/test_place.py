"""A question about "this page" is answered from it. An open page that is not meant changes nothing."""

import pytest
from kit.answering import MemoryStore, make_hit

from pipelines.answering.conversation.open_page import open_page
from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.one_page import fragment_of, page_first, page_spellings
from pipelines.answering.retrieval.ranking.prior import OTHER_VERSION, version_prior
from pipelines.records import Filters
from pipelines.store import Place, StoreUnavailable

PLACE = Place("https://d.test/load", "4.2. Loading Data", heading="read_csv")


@pytest.mark.parametrize(("question", "meant"), [
    ("Which formats does this page name?", "Which formats does Loading Data name?"),
    ("what does the page I'm reading say about S3", "what does Loading Data say about S3"),
    ("What does this function return?", "What does read_csv return?"),
    ("How do I use this?", "How do I use read_csv?"),
    ("How does it work?", "How does read_csv work?"),
    ("What is documented here about S3?", "What is documented here about S3 (read_csv)?"),
    ("Explain the default in the example above", "Explain the default in the example above (read_csv)?"),
    ("Was steht auf dieser Seite über S3?", "Was steht auf Loading Data über S3?"),
    ("このページの S3 は？", "Loading Dataの S3 は？"),
])  # fmt: skip
def test_reference_to_this_page_is_replaced_by_its_name(question: str, meant: str) -> None:
    page = open_page(question, PLACE)
    assert page.question == meant and page.focus


@pytest.mark.parametrize(
    "question", ["Summarize this page", "tl;dr", "What is this?", "what's this about?", "总结本页面"]
)
def test_question_about_the_whole_page_is_recognized(question: str) -> None:
    assert open_page(question, PLACE).focus == "whole"


@pytest.mark.parametrize("question", [
    "How do I read a CSV file?", "values above 5", "set the limit below 100", "How do I debug this?\n\nRay hangs.",
    "Here is my code: x = 1", "explain this code for me: import ray.rllib.utils", "How do I do this with pandas?",
    "How does PPO choose the rollout fragment length if this parameter is auto?", "is it possible to use S3",
    "what size of memory do I need for this if I set the model to GPT", "overview of autoscaling", "",
])  # fmt: skip
def test_other_meanings_stay_unchanged(question: str) -> None:
    page = open_page(question, PLACE)
    assert (page.question, page.focus) == (question, "")


def test_question_marked_as_about_the_page_works_in_any_words() -> None:
    assert open_page("Which formats?", PLACE).focus == ""
    page = open_page("Which formats?", PLACE, alone=False, meant=True)
    assert (page.question, page.focus) == ("Which formats (read_csv)?", "page")
    assert open_page("tl;dr", PLACE, meant=True).focus == "whole"


def test_bare_this_in_a_conversation_refers_to_the_last_subject() -> None:
    assert open_page("How do I use this?", PLACE, alone=False).focus == ""
    assert open_page("How do I use this function?", PLACE, alone=False).focus == "page"


@pytest.mark.parametrize("url", [
    "https://d.test/guide/", "https://d.test/guide", "https://d.test/guide/index.html", "https://d.test/guide.html",
    "http://d.test/guide/?utm=1#part", "https://D.test:443/guide/#:~:text=x", "https://ann:x@d.test/guide/",
])  # fmt: skip
def test_page_is_recognized_in_any_spelling_of_its_url(url: str) -> None:
    for stored in ("https://d.test/guide/", "https://d.test/guide.html", "https://d.test/guide/index.html"):
        assert stored in page_spellings(url)


def test_exact_url_wins_and_its_query_string_counts() -> None:
    assert page_spellings("https://d.test/p?id=3")[0] == "https://d.test/p?id=3"
    assert "https://d.test/" in page_spellings("https://d.test/index.html")
    assert "https://d.test/größe" in page_spellings("https://d.test/gr%C3%B6%C3%9Fe")
    for none in ("", "about:blank", "file:///tmp/a.html", "https://[d.test/", "not a url"):
        assert page_spellings(none) == ()
    assert fragment_of("https://d.test/a#b%20c:~:text=x") == "b c"


def test_hits_of_the_page_come_first_with_one_slot_for_others() -> None:
    own = [make_hit("https://d.test/a", f"own {n}", ordinal=9 - n) for n in range(6)]
    other = [make_hit("https://d.test/b", f"other {n}") for n in range(2)]
    hits = [other[0], own[0], own[1], own[2], other[1], own[3], own[4], own[5]]
    placed = page_first(hits, "https://d.test/a", 5)
    assert placed[:5] == [own[0], own[1], own[2], own[5], other[0]] and len(placed) == len(hits)
    assert page_first(hits, "https://d.test/a", 5, in_order=True)[:4] == own[:1:-1]
    assert page_first(other, "https://d.test/a", 5) == other


def test_version_and_language_of_the_page_are_preferred() -> None:
    prior = version_prior("2", "en")
    hit = make_hit("https://d.test/a", "x", version="2", language="en-US")
    assert prior(hit) == 1.0
    assert prior(make_hit("https://d.test/a", "x", version="1", language="en")) == OTHER_VERSION
    assert prior(make_hit("https://d.test/a", "x", version="2", language="de")) == OTHER_VERSION
    assert prior(make_hit("https://d.test/a", "x", version="2")) == 1.0
    assert version_prior(None, "")(make_hit("https://d.test/a", "x", language="de")) == 1.0


# ---------------------------------------------------------------------------------------------- in the engine

CSV = "Call read_csv to load files that hold comma separated values into a table."
PARQUET = "Call read_parquet to load files of the column format parquet into a table."


HITS = [
    make_hit(f"https://d.test/{version}/{name}", f"{text} Version {version}.", version=version)
    for version in "123"
    for name, text in (("csv", CSV), ("parquet", PARQUET))
]


def test_question_about_this_page_is_answered_from_it(engine: QueryEngine) -> None:
    answer = engine.query("What does this page say?", page="https://d.test/2/parquet/?x=1#top")
    assert answer.hits[0].url == "https://d.test/2/parquet"
    assert answer.notes and "Guide" in answer.notes[0]
    said = engine.search("parquet", page="https://d.test/2/csv", about_page=True)
    assert said.hits[0].url == "https://d.test/2/csv" and said.queries[0] == "parquet (Guide)?"
    retrieval = engine.search("Summarize this page", page="http://d.test/2/parquet/index.html")
    assert {hit.url for hit in retrieval.hits} == {"https://d.test/2/parquet"}


def test_page_above_many_pages_is_found_too(engine: QueryEngine, store: MemoryStore) -> None:
    below = [make_hit(f"https://d.test/{n}", f"Lamps {n} of the guide, lamps.") for n in range(200)]
    store.publish(1, *below, make_hit("https://d.test/", "Welcome."))
    found = engine.search("lamps", page="https://d.test/", about_page=True)
    assert found.hits[0].url == "https://d.test/"


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_version_of_the_open_page_is_used_unless_a_filter_sets_another(engine: QueryEngine, version: str) -> None:
    asked, page = "load comma separated values", f"https://d.test/{version}/parquet"
    assert engine.search(asked, page=page).hits[0].url == f"https://d.test/{version}/csv"
    assert {hit.version for hit in engine.search(asked, page=page, filters=Filters(version="3")).hits} == {"3"}


def test_version_of_the_open_page_wins_among_equal_texts(engine: QueryEngine, store: MemoryStore) -> None:
    same = [make_hit(f"https://d.test/{version}/same", "Tune the frobnicator.", version=version) for version in "123"]
    store.publish(1, *store.chunks[1], *same)
    for version in "123":
        (hit, *_) = engine.search("tune the frobnicator", page=f"https://d.test/{version}/csv").hits
        assert hit.version == version and len(hit.sources) == 3


def test_page_missing_from_the_index_changes_nothing(engine: QueryEngine) -> None:
    for question in ("load comma separated values", "What does this page say?"):
        plain, open = engine.query(question), engine.query(question, page="https://elsewhere.test/")
        assert (open.hits, open.text, open.queries) == (plain.hits, plain.text, plain.queries)


def test_question_is_answered_even_if_the_page_lookup_fails(engine: QueryEngine, store: MemoryStore) -> None:
    def away(*_: object) -> Place:
        raise StoreUnavailable("away")

    store.find_place = away  # type: ignore[method-assign]
    answer = engine.query("load comma separated values", page="https://d.test/1/csv")
    assert answer.hits and "page" in answer.degraded
