"""Extractive answers: whole sentences with their source, code unharmed, and "I do not know" where nothing fits."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.answering import make_hit

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.hits import snippet
from pipelines.answering.synthesis.extractive import ExtractiveSynthesizer, is_code, sentences
from pipelines.records import Hit

CSV = make_hit(
    "https://d.test/data#csv",
    "Datasets come from many places. To load comma separated files, use read_csv. It needs a path, e.g. a bucket:\n\n"
    "ds = ray.data.read_csv(\n    's3://bucket/iris.csv',\n)\n\nThe schema is inferred.",
    ("Loading data", "Loading CSV"),
)
TUNE = make_hit("https://d.test/tune#stop", "The ASHA scheduler stops bad trials early. It saves compute.", ("Tune",))


def answer(question: str, *hits: Hit) -> str:
    return ExtractiveSynthesizer().synthesize(question, hits)


def test_the_sentence_that_fits_is_cited() -> None:
    made = answer("How do I load comma separated files?", CSV, TUNE)
    assert "To load comma separated files, use read_csv. [1]" in made


def test_the_hit_that_fits_is_cited_whatever_its_rank() -> None:
    made = answer("What does the ASHA scheduler do with bad trials?", CSV, TUNE)
    assert made.startswith("The ASHA scheduler stops bad trials early. [2]")


def test_code_that_a_sentence_announces_follows_it_unharmed() -> None:
    made = answer("Which path does read_csv need, e.g. a bucket?", CSV)
    assert "e.g. a bucket: [1]" in made
    assert "```\nds = ray.data.read_csv(\n    's3://bucket/iris.csv',\n)\n```" in made


def test_what_nothing_fits_is_not_known_with_the_closest_sources() -> None:
    made = answer("How do I bake sourdough bread?", CSV, TUNE)
    assert made == f"{UNKNOWN} The closest that it holds: [1] [2]"


def test_without_hits_it_is_not_known() -> None:
    assert answer("anything") == UNKNOWN


def test_a_question_of_stop_words_alone_is_not_known() -> None:
    assert answer("what is it?", CSV).startswith(UNKNOWN)


@pytest.mark.parametrize(
    ("asked", "cosine", "known"),
    [
        ("premature termination of bad trials", 0.6, True),
        ("premature termination of bad trials", 0.3, False),
        ("premature termination of hopeless runs", 0.6, False),
        ("Who stops bad trials early?", 0.3, True),
    ],
)
def test_a_close_vector_with_some_words_or_nearly_all_words_are_enough(asked: str, cosine: float, known: bool) -> None:
    close = replace(TUNE, scores={"vector": cosine})
    assert (not answer(asked, close).startswith(UNKNOWN)) is known


def test_a_fitting_hit_without_sentences_is_pointed_at() -> None:
    signature = make_hit("https://d.test/api#x", "max_restarts\nnumber of restarts", ("Options", "max_restarts"))
    assert answer("max_restarts number", signature) == "See: Options › max_restarts [1]"


def test_a_sentence_that_leans_on_another_is_not_preferred() -> None:
    leaning = make_hit(
        "https://d.test/a", "Workers are started first. This stops bad trials early. ASHA stops bad trials early."
    )
    assert answer("Who stops bad trials early?", leaning).startswith("ASHA stops bad trials early.")


def test_a_question_is_not_answered_with_itself() -> None:
    asking = make_hit("https://d.test/faq", "Who stops bad trials early? Ask in the forum about it.", ("Questions",))
    assert answer("Who stops bad trials early?", asking, TUNE).startswith(
        "The ASHA scheduler stops bad trials early. [2]"
    )


def test_the_same_sentence_is_not_said_twice() -> None:
    twin = make_hit("https://d.test/other", CSV.text, ("Other",))
    made = answer("How do I load comma separated files?", CSV, twin)
    assert made.count("To load comma separated files") == 1


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("One two three four. Five six seven eight!", ["One two three four.", "Five six seven eight!"]),
        ("and the rest of it goes here. A whole sentence is here.", ["A whole sentence is here."]),
        ("A whole sentence is here. This one was cut in the", ["A whole sentence is here."]),
        ("Use a file format, e.g. Parquet or CSV files.", ["Use a file format, e.g. Parquet or CSV files."]),
        ("ray.data.read_csv reads many files.", ["ray.data.read_csv reads many files."]),
        ("Short one.", []),
        ("", []),
    ],
)
def test_only_whole_sentences_are_said(block: str, expected: list[str]) -> None:
    assert list(sentences(block)) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("import ray\nray.init()", True),
        ("$ pip install ray", True),
        (">>> 1 + 1\n2", True),
        ("@serve.deployment\nclass A:\n    def f(self):\n        return 1", True),
        ("This is a sentence about ray.init and more.", False),
        ("For each node, the scheduler picks a worker.", False),
        ("With actors, state is kept between calls.", False),
        ("From the head node, workers are started.", False),
    ],
)
def test_code_is_told_from_prose(block: str, expected: bool) -> None:
    assert is_code(block) is expected


def test_a_snippet_is_one_line_cut_between_words() -> None:
    assert snippet("one  two\nthree", 11) == "one two…" and snippet("short") == "short"


texts = st.lists(st.sampled_from(["Ray reads files.", "A file is read by Ray Data.", "x = 1", "\n\n", "[7]", "read"]))


@given(st.text(max_size=50), st.lists(texts.map(" ".join), max_size=4))
def test_every_number_is_that_of_a_hit(question: str, contents: list[str]) -> None:
    hits = [make_hit(f"https://d.test/{n}", text.replace("[7]", "")) for n, text in enumerate(contents)]
    for asked in (question, "How does Ray read files?"):
        made = answer(asked, *hits)
        assert {int(n) for n in re.findall(r"\[(\d+)\]", made)} <= set(range(1, len(hits) + 1))
