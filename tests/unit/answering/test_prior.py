"""Reference pages that a question does not name are ranked lower, and other pages stay unchanged."""

from dataclasses import replace

import pytest

from pipelines.answering.retrieval.ranking.prior import boost_prior, both_priors, no_prior, object_name, reference_prior
from pipelines.records import Hit

GUIDE = Hit("guide", "https://d.test/guide", (), "Transforming data", ("Transforming data",), "map", "g", 1.0, "bm25")
API = replace(GUIDE, chunk_id="api", title="ray.data.Dataset.map", headings=("ray.data.Dataset.map",), text_hash="a")


@pytest.mark.parametrize(("title", "last"), [
    ("ray.data.Dataset.map", "map"), ("ray.init", "init"), ("os.path.join()", "join"), ("std::vec::Vec", "vec"),
    ("Transforming data", ""), ("os.path — Common pathname manipulations", ""), ("Version 2.7", ""), ("map", ""),
    ("Using ray.init", ""), ("2.7.0", ""), ("", ""),
])  # fmt: skip
def test_reference_page_is_recognized_by_its_title(title: str, last: str) -> None:
    assert object_name(title) == last


def test_only_a_page_named_by_no_query_counts_less() -> None:
    prior = reference_prior(["How do I transform rows?"], 0.3)
    assert (prior(API), prior(GUIDE)) == (0.3, 1.0)
    assert reference_prior(["transform rows", "What does Dataset.MAP take?"], 0.3)(API) == 1.0
    assert reference_prior(["rows"], 1.0) is no_prior


def test_first_heading_counts_before_the_title() -> None:
    prior = reference_prior(["rows"], 0.3)
    assert prior(replace(API, headings=("Data",))) == 1.0 and prior(replace(API, headings=())) == 0.3
    assert prior(replace(API, headings=(), title="ray.data.Dataset.map — Ray 2.7")) == 0.3
    other = replace(API, headings=(), title="os.path — Common pathname manipulations — Python 3.11")
    assert prior(other) == 1.0


def test_weights_of_all_matching_source_patterns_are_multiplied() -> None:
    prior = boost_prior({"/guide": 0.5, "#top$": 4.0, "/api/": 9.0})
    assert (prior(GUIDE), prior(replace(GUIDE, anchors=("top",)))) == (0.5, 2.0)
    assert prior(replace(GUIDE, url="https://d.test/")) == 1.0 and boost_prior({}) is no_prior
    assert both_priors(no_prior, prior) is prior and both_priors(prior, prior)(GUIDE) == 0.25
