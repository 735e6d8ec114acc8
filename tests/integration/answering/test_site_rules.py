"""Answer rules in a collection file apply in a running service after indexing, and embed nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.reindexing import Jobs

from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Search
from pipelines.answering.settings import AnswerSettings
from pipelines.records import Filters, Hit
from pipelines.store import Store

BASE = "https://docs.test/"
PAGES = {
    "reference/rows": "<h1>Rows</h1><p>Drop rows of a table.</p>",
    "tutorial/first": "<h1>A first table</h1><p>Make a table, fill it, sort it, then drop rows that are empty.</p>",
    "guide/cluster": "<h1>Clusters</h1><p>Deploy the service on kubernetes with a chart.</p>",
}


def name_of(hit: Hit) -> str:
    return hit.source.removeprefix(BASE).removesuffix(".html")


class Example:
    """A folder of pages, its collection file, and a service that answers from its index."""

    def __init__(self, jobs: Jobs, folder: Path, retriever: Retriever, engine: QueryEngine) -> None:
        self.jobs, self.folder, self.retriever, self.engine = jobs, folder, retriever, engine
        for name, text in PAGES.items():
            page = folder / "docs" / f"{name}.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f"<html><body><main>{text}</main></body></html>")
        jobs.common = [folder / "docs.yaml", "--no-ray", "--parallel-workers", 0, "--maintenance-work-mem", "64MB"]

    def index(self, rules: str = "") -> dict[str, object]:
        """Index the folder with these lines in its file, and return the summary."""
        sources = f"folders: [{{path: {self.folder / 'docs'}, base_url: '{BASE}'}}]\nindex: {{model: 'hash:64'}}\n"
        (self.folder / "docs.yaml").write_text(sources + rules)
        return self.jobs.reindex().summary

    def sources(self, question: str, by: str = "") -> list[str]:
        """Return the found pages, from one leg if it is named."""
        hits = self.retriever.retrieve(Search((question,))).hits
        return [name_of(hit) for hit in hits if not by or by in hit.ranks]

    def by_words(self, question: str) -> list[str]:
        return self.sources(question, "bm25")

    def first(self, question: str, **options: object) -> str:
        return name_of(self.engine.search(question, **options).hits[0])


@pytest.fixture
def example(jobs: Jobs, tmp_path: Path) -> Iterator[Example]:
    with Store(jobs.url) as store:
        store.migrate()
        settings = AnswerSettings(home=tmp_path / "home", verified={"similarity": 0.7})  # of word vectors
        retriever = make_retriever(settings, store)
        yield Example(jobs, tmp_path, retriever, make_engine(settings, retriever, store=store))
        retriever.close()


def test_synonym_finds_pages_that_use_only_one_of_the_words(example):
    example.index()
    assert example.by_words("What about k8s?") == []
    example.index("synonyms: [[k8s, kubernetes, container orchestration]]")
    assert example.by_words("What about k8s?") == ["guide/cluster"]
    assert example.by_words("container orchestration") == ["guide/cluster"]
    assert "guide/cluster" not in example.by_words("container of rows")


def test_pinned_section_is_the_first_hit_for_its_question_and_paraphrases(example):
    url = f"{BASE}guide/cluster.html"
    pinned = f"pinned: [{{question: 'How do I drop rows?', url: '{url}'}}, {{question: 'Why?', url: '{url}#no'}}]"
    assert example.index()["warnings"] == []
    assert example.first("How do I drop rows?") == "reference/rows"
    (warning,) = example.index(pinned)["warnings"]
    assert f"{url}#no" in warning
    assert example.first("How do I drop rows?") == example.first("how can I drop rows") == "guide/cluster"
    assert "guide/cluster" not in (example.first("How do I drop tables?"), example.first("Why?"))
    assert example.first("How do I drop rows?", filters=Filters(url_prefix=f"{BASE}tutorial/")) == "tutorial/first"
    (status,) = example.jobs.run("status").summary["collections"].values()
    assert warning in status["runs"][0]["error"]


def test_boosts_reorder_pages_without_a_new_index(example):
    first = example.index()
    assert example.sources("drop rows")[:2] == ["reference/rows", "tutorial/first"]
    boosted = example.index("boosts: {/reference/: 0.05, /tutorial/: 1.5}")
    assert example.sources("drop rows")[0] == "tutorial/first"
    assert (boosted["chunks"]["embedded"], boosted["index"], boosted["changed"]) == (0, first["index"], False)
    example.index()
    assert example.sources("drop rows")[0] == "reference/rows"
