"""The tag reranker: hits of the predicted part come first, and a model of another collection is refused at startup."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kit.answering import make_hit
from pydantic import ValidationError

from pipelines.answering.factory import make_reranker
from pipelines.answering.reranking.tag import OtherCollection, TagReranker, part_of
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.answering.routing.classifier_folder import NotAClassifier
from pipelines.answering.settings import AnswerSettings
from pipelines.records import Hit

SITE = "https://docs/en/"
URLS = ("serve/a.html", "tune/b.html", "index.html", "serve/c.html")
TEXTS = ["scale a replica", "deploy a model", "search space", "best trial", "the weather", "a joke"]
ODD = ["", "😀" * 300, "C++ (", "long " * 10_000, "\x00\ud800", "{question}"]


def hits() -> list[Hit]:
    """Return four hits as fusion returns them."""
    made = (make_hit(SITE + url, url) for url in URLS)
    return [replace(hit, score=0.9 - n / 10, score_kind="rrf") for n, hit in enumerate(made)]


@pytest.fixture(scope="module")
def tags() -> TextClassifier:
    labels = ["serve", "serve", "tune", "tune", "other", "other"]
    learned = TextClassifier.fit(TEXTS * 3, labels * 3)
    learned.metadata = {"prefix": SITE, "collection": "docs", "settings": {"threshold": 0.3}}
    return learned


def rerank(reranker: TagReranker, question: str) -> Sequence[Hit]:
    return asyncio.run(reranker.rerank(question, hits()))


def order(reranked: Sequence[Hit]) -> list[int]:
    """Return the hits' previous positions."""
    return [URLS.index(hit.text) for hit in reranked]


def test_hits_of_the_predicted_part_come_first_and_keep_their_old_scores(tags):
    tag, probability = tags.predict("deploy a replica")
    reranked = rerank(TagReranker(tags, probability), "deploy a replica")
    assert tag == "serve" and order(reranked) == [0, 3, 1, 2]
    assert [hit.score for hit in reranked] == [probability, probability, 0, 0]
    assert {hit.score_kind for hit in reranked} == {"tag"}
    assert [hit.scores["rrf"] for hit in reranked] == [0.9, pytest.approx(0.6), 0.8, pytest.approx(0.7)]


def test_nothing_changes_below_the_threshold_or_without_a_matching_part(tags):
    _, probability = tags.predict("deploy a replica")
    assert rerank(TagReranker(tags, probability + 1e-9), "deploy a replica") == tuple(hits())
    assert tags.predict("a joke")[0] == "other"
    assert rerank(TagReranker(tags, 0), "a joke") == tuple(hits())
    nowhere = TagReranker(tags, 0, tag_of=lambda hit: "")
    assert rerank(nowhere, "deploy a replica") == tuple(hits())


def test_custom_function_can_define_the_part_of_a_hit(tags):
    reranker = TagReranker(tags, 0, tag_of=lambda hit: "serve" if "tune" in hit.url else "")
    assert order(rerank(reranker, "deploy a replica")) == [1, 0, 2, 3]


@pytest.mark.parametrize(
    ("url", "prefix", "part"),
    [
        ("https://docs/en/serve/a/b.html", "https://docs/en/", "serve"),
        ("https://docs/en/serve/a.html", "https://docs/en", "serve"),
        ("https://docs/en/index.html", "https://docs/en/", ""),
        ("https://docs/en/", "https://docs/en/", ""),
        ("https://elsewhere/serve/a.html", "https://docs/en/", ""),
        ("https://docs/serve/a.html", "", "serve"),
        ("https://docs", "", ""),
    ],
)
def test_part_is_the_first_folder_after_the_prefix(url, prefix, part):
    assert part_of(url, prefix) == part


@pytest.mark.parametrize("question", ODD, ids=range(len(ODD)))
def test_no_question_breaks_the_tag_reranker(tags, question):
    assert len(rerank(TagReranker(tags, 0.1), question)) == len(URLS)


# ---------------------------------------------------------------------------------------------- at startup


class Shelf:
    """A store with these collections."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def collections(self) -> list[dict[str, str]]:
        return [{"name": name} for name in self.names]


@pytest.fixture
def folder(tags: TextClassifier, tmp_path: Path) -> Path:
    tags.save(tmp_path / "tags", {"kind": "tag", "accepted": True, **tags.metadata})
    return tmp_path / "tags"


def settings_of(folder: Path, collection: str = "", **more: object) -> AnswerSettings:
    return AnswerSettings(collection=collection, reranker={"kind": "tag", "model": str(folder), **more})


def test_settings_build_it_with_their_threshold_or_the_one_of_the_card(folder):
    assert make_reranker(settings_of(folder)).threshold == 0.3  # type: ignore[union-attr]
    assert make_reranker(settings_of(folder, threshold=0.0)).threshold == 0  # type: ignore[union-attr]
    with pytest.raises(ValidationError, match="threshold"):
        settings_of(folder, threshold=1.5)
    with pytest.raises(ValidationError, match=r"reranker\.kind 'tag' needs reranker\.model"):
        AnswerSettings(reranker={"kind": "tag"})


@pytest.mark.parametrize(("default", "stored"), [("docs", []), ("docs", ["docs", "x"]), ("", ["x", "docs"]), ("", [])])
def test_model_of_the_queried_collection_is_used(folder, default, stored):
    assert make_reranker(settings_of(folder, default), Shelf(*stored))  # type: ignore[arg-type]


@pytest.mark.parametrize(("default", "stored"), [("other", []), ("other", ["docs", "other"]), ("", ["other"])])
def test_model_of_another_collection_is_refused_with_both_names(folder, default, stored):
    with pytest.raises(OtherCollection, match=r"tags was trained for the collection 'docs' \(https://.*of 'other'"):
        make_reranker(settings_of(folder, default), Shelf(*stored))  # type: ignore[arg-type]


def test_folder_of_another_kind_or_empty_folder_is_refused(tags, tmp_path):
    tags.save(tmp_path / "router", {"accepted": True})
    for place, said in (("router", "of kind 'router', and 'tag' is needed"), ("nothing", r"no card\.json")):
        with pytest.raises(NotAClassifier, match=said):
            make_reranker(settings_of(tmp_path / place))
