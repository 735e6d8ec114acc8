"""Passages of a section: whole sentences with the code, list, table or note that they introduce."""

import pytest
from kit.hostile import calls_of

from pipelines.answering.synthesis.passages import (
    MOST_SENTENCES,
    is_bare,
    sentences,
    split_passages,
    split_sentences,
    widen,
)

VENV = """Creation of virtual environments is done by executing the command `venv`:

```
python3 -m venv /path/to/new/virtual/environment
```

Running this command creates the target directory.

> See also
>
> [PEP 405](https://peps.test/405)"""
TABS = "Start Ray with this:\n\nPython:\n\n```python\nimport ray\n```\n\nJava:\n\n```java\nRay.init();\n```"
SIGNATURE = "```python\nlru_cache(maxsize=128)\n```\n\nDecorator to wrap a function. It has a cache. It has a size."
TERMS = "-h host:\\\nThe name of the server.\n\n-p port:\\\nThe port of the server."


@pytest.mark.parametrize(("text", "kinds"), [
    (VENV, [["prose", "code"], ["prose"], ["note"]]),
    (TABS, [["prose", "prose", "code"], ["prose", "code"]]),
    ("It takes two arguments:\n\n- path: where it is\n- mode: how it is opened", [["prose", "list"]]),
    ("These are the modes.\n\n| mode |\n| --- |\n| r |", [["prose", "table"]]),
    ("Beware of this:\n\n> Note\n>\n> It is slow.", [["prose", "note"]]),
    (SIGNATURE, [["code", "prose"]]),
    (f"{TERMS}\n\n- one\n- two", [["prose"], ["prose", "list"]]),
    ("\uf17c / \uf17a\n\n\u25b8", []),
    ("", []),
])  # fmt: skip
def test_prose_and_the_block_it_introduces_stay_together(text: str, kinds: list[list[str]]) -> None:
    assert [[block.kind.value for block in passage.blocks] for passage in split_passages(text)] == kinds


def test_long_prose_is_cut_between_sentences() -> None:
    made = split_passages(" ".join(f"Sentence number {n} is `x.y` here." for n in range(12)))
    assert [len(list(sentences(passage.prose))) for passage in made] == [4, 4, 4] and MOST_SENTENCES >= 4


@pytest.mark.parametrize("text", [VENV, TABS, SIGNATURE, TERMS, "Python", "- a\n- b", "a\nb\n\n    x = 1\n    y = 2"])
def test_no_text_is_lost(text: str) -> None:
    written = "\n\n".join(passage.text for passage in split_passages(text))
    assert [word for word in written.split() if word != "```"] == [word for word in text.split() if word != "```"]


def test_passage_includes_the_sentence_it_refers_to_but_no_aside() -> None:
    def widened(text: str, at: int) -> list[int]:
        return [passage.place for passage in widen(split_passages(text), at)]

    assert widened(VENV, 0) == [0, 1]
    assert widened("One is here. Two is.\n\n```\nx = 1\n```\n\nThis sets it.", 1) == [0, 1]


@pytest.mark.parametrize(("block", "expected"), [
    ("One two three four. Five six seven eight!", ["One two three four.", "Five six seven eight!"]),
    ("and the rest of it goes here. A whole sentence is here.", ["A whole sentence is here."]),
    ("A whole sentence is here. This one was cut in the", ["A whole sentence is here."]),
    ("Use a file format, e.g. Parquet or CSV files.", ["Use a file format, e.g. Parquet or CSV files."]),
    ("ray.data.read_csv reads many files.", ["ray.data.read_csv reads many files."]),
    ("It runs `x. Y()` before the end. Then it has ended.", ["It runs `x. Y()` before the end.", "Then it has ended."]),
    ("Short one.", []),
    ("", []),
])  # fmt: skip
def test_only_whole_sentences_count(block: str, expected: list[str]) -> None:
    assert list(sentences(block)) == expected


@pytest.mark.parametrize(("text", "bare"), [
    ("More: [ports](https://d.test/p#ports), [HTTPS](https://d.test/p).", True),
    ("[The whole list](https://d.test/list) is [here](https://d.test/here).", True),
    ("The port is set by [`--port`](https://d.test/p#ports) and is 8000.", False),
    ("The port is 8000.", False),
    ("You can learn more about GraphQL in its guide. You can also read more about each library there.", True),
    ("You can find out whether the file is there. You can read a file with open.", False),
])  # fmt: skip
def test_passage_of_mostly_links_or_promises_says_nothing(text: str, bare: bool) -> None:
    assert is_bare(split_passages(text)) is bare


def test_text_that_never_ends_a_sentence_is_cut() -> None:
    for text in ("A. " * 20_000, "e.g. A " * 9_000, "`a. B " * 9_001):
        assert max(map(len, split_sentences(text))) < 11_000


@pytest.mark.parametrize("block", ["![](a.png)\n\n", "[a](b.html).\n\n"])
def test_each_empty_passage_is_examined_once(block: str) -> None:
    def calls(blocks: int) -> int:
        passages = split_passages(block * blocks)
        return calls_of(lambda _: widen(passages, 0), "")

    calls(1)
    assert calls(1_600) <= 5 * calls(400)
