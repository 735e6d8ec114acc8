"""Citations: the numbers outside code, each judged by the words and vectors of its passage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.answering import WordEmbedder, make_hit

from pipelines.answering.grounding.answerable import is_answerable
from pipelines.answering.grounding.citations import cite, split_claims

CSV = make_hit(
    "https://d.test/data#csv", "To load comma separated files, call read_csv with a path. It streams blocks.", ("Data",)
)
TUNE = make_hit(
    "https://d.test/tune#stop", "The ASHA scheduler stops bad trials early. It saves compute.", ("Tune", "Stopping")
)
HITS = (CSV, TUNE)


def claims_of(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.numbers) for claim in split_claims(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Load files [1]. Then stop [2].", [("Load files", (1,)), ("Then stop", (2,))]),
        ("Load files. [1] Then stop. [2]", [("Load files.", (1,)), ("Then stop.", (2,))]),
        ("Both do [1][2].", [("Both do", (1, 2))]),
        ("- Load files [1]\n- Stop trials [2]", [("- Load files", (1,)), ("- Stop trials", (2,))]),
        ("Call `x[1]` now [2].", [("Call `x` now", (2,))]),
        ("```python\nread_csv(x[1])\n```\n[2]", [("```python read_csv(x) ```", (2,))]),
        ("[1] says so. Not this.", [("says so.", (1,))]),
    ],
)
def test_a_number_belongs_to_the_sentence_item_or_code_before_it(text: str, expected: list[object]) -> None:
    assert claims_of(text) == expected


def test_citations_come_in_order_of_appearance_with_their_source() -> None:
    second, first = cite("Trials stop early by the ASHA scheduler [2]. Load files with read_csv [1]. Again [7].", HITS)
    assert (second.n, second.source, second.title) == (2, "https://d.test/tune#stop", "Tune › Stopping")
    assert first.n == 1 and second.supported and first.supported and "read_csv" in first.snippet


@pytest.mark.parametrize("embed", [None, lambda texts: np.stack([WordEmbedder().embed_query(t) for t in texts])])
def test_a_claim_that_its_passage_does_not_hold_is_not_supported(embed) -> None:  # type: ignore[no-untyped-def]
    (right,) = cite("To load comma separated files, call read_csv [1].", HITS, embed)
    (wrong,) = cite("Kubernetes operators restart crashed head pods [1].", HITS, embed)
    assert right.supported and not wrong.supported and right.support > wrong.support


def test_the_weakest_claim_decides() -> None:
    (citation,) = cite("Call read_csv with a path [1]. Kubernetes operators restart pods [1].", HITS)
    assert not citation.supported


def test_a_claim_may_rest_on_two_passages_together() -> None:
    both = cite("Load comma separated files with read_csv, the ASHA scheduler stops bad trials early [1][2].", HITS)
    assert [c.supported for c in both] == [True, True]


def test_a_model_that_fails_leaves_words_to_judge() -> None:
    def broken(texts: object) -> np.ndarray:
        raise RuntimeError("the model broke")

    assert cite("Call read_csv with a path [1].", HITS, broken) == cite("Call read_csv with a path [1].", HITS)


@given(st.text(alphabet="a[]12`~\n .:-é🙂", max_size=80))
def test_any_text_is_cited(text: str) -> None:
    assert {c.n for c in cite(text, HITS)} <= {1, 2}


def test_the_gate_passes_what_hits_may_answer() -> None:
    assert is_answerable("How do I load comma separated files?", HITS)
    assert not is_answerable("What is the capital of Mongolia?", HITS)
    near = make_hit("https://d.test/x", "text")
    near.scores["vector"] = 0.9
    assert is_answerable("数据怎么加载？", (near,)) and not is_answerable("What is the capital of Mongolia?", (near,))


@given(st.text(max_size=40))
def test_the_gate_never_fails(question: str) -> None:
    assert not is_answerable(question, ())
    assert is_answerable(question, HITS) in (True, False)
