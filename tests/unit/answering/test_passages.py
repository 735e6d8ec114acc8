"""Passages of a section: whole sentences with the code, list or table that they introduce; code told from prose."""

import pytest

from pipelines.answering.synthesis.passages import (
    MOST_SENTENCES,
    Kind,
    is_code,
    sentences,
    split_blocks,
    split_passages,
    widen,
)

VENV = """Creation of virtual environments is done by executing the command venv:

python3 -m venv /path/to/new/virtual/environment

Running this command creates the target directory.

See also

PEP 405"""


def kinds(text: str) -> list[str]:
    return [block.kind.value for block in split_blocks(text)]


def test_a_lead_in_stays_with_its_command() -> None:
    first = split_passages(VENV)[0]
    assert first.text.endswith("python3 -m venv /path/to/new/virtual/environment")
    assert first.blocks[1].kind is Kind.CODE


def test_a_lead_in_stays_with_code_below_the_name_of_a_tab() -> None:
    (first, other) = split_passages("Start Ray with this:\n\nPython\n\nimport ray\nray.init()\n\nJava\n\nRay.init();")
    assert "ray.init()" in first.text and "Java" not in first.text and other.text.startswith("Java")


def test_code_keeps_its_blank_lines_and_indentation() -> None:
    code = "def f():\n    return 1\n\nclass A:\n    pass"
    assert split_passages(f"For example, this is the code:\n\n{code}\n\nAfter it comes prose.")[0].text.endswith(code)


def test_a_list_and_a_table_follow_what_introduces_them() -> None:
    (made,) = split_passages("It takes two arguments:\n\n- path: where the file is\n- mode: how it is opened")
    assert [block.kind for block in made.blocks] == [Kind.PROSE, Kind.LIST]
    assert kinds("These are the modes.\n\nmode | meaning\nr | read\nw | write") == ["prose", "table"]


def test_a_signature_stays_with_its_description() -> None:
    (made,) = split_passages("lru_cache(maxsize=128, typed=False)\n\nDecorator to wrap a function with a cache.")
    assert [block.kind for block in made.blocks] == [Kind.LABEL, Kind.PROSE]


def test_a_definition_is_a_passage_of_its_own() -> None:
    made = split_passages("-h host:\nThe name of the server.\n\n-p port:\nThe port of the server.")
    assert [passage.place for passage in made] == [0, 1] and made[1].text.startswith("-p port:")


def test_long_prose_is_cut_between_sentences() -> None:
    made = split_passages(" ".join(f"Sentence number {n} is here." for n in range(12)))
    assert [len(list(sentences(passage.prose))) for passage in made] == [4, 4, 4] and MOST_SENTENCES >= 4


def test_no_text_is_lost() -> None:
    for text in (VENV, "Python", "x = 1", "- a\n- b", "a | b\nc | d", "Short.\n\nMore of it.\n\nsig(x)"):
        words = [word for passage in split_passages(text) for word in passage.text.split()]
        assert words == text.split()
    assert split_passages("") == [] and split_passages(" \n\n ") == []


def test_a_passage_takes_in_the_sentence_it_refers_to_and_no_aside() -> None:
    passages = split_passages(VENV)
    assert [passage.place for passage in widen(passages, 0)] == [0, 1]
    assert [
        passage.place for passage in widen(split_passages("One is here. Two is.\n\nx = 1\n\nThis sets it."), 1)
    ] == [0, 1]


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
def test_only_whole_sentences_count(block: str, expected: list[str]) -> None:
    assert list(sentences(block)) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("serve --port 9000 --host 0.0.0.0      # or the variables of the port and the host", True),
        ("import ray\nray.init()", True),
        ("$ pip install ray", True),
        (">>> 1 + 1\n2", True),
        ("@serve.deployment\nclass A:\n    def f(self):\n        return 1", True),
        ("SELECT datname FROM pg_database;", True),
        ("test=# \\dt", True),
        ("CREATE TABLE t (\n    id int\n);", True),
        ("This is a sentence about ray.init and more.", False),
        ("For each node, the scheduler picks a worker.", False),
        ("With actors, state is kept between calls.", False),
        ("From the head node, workers are started.", False),
        ("Set a = 1 in the file to switch it on.", False),
    ],
)
def test_code_is_told_from_prose(block: str, expected: bool) -> None:
    assert is_code(block) is expected
