"""Statements: an answer is split into them while it streams, in the same way for any pieces."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.answering.writing.claims import is_claim as states_something
from pipelines.answering.writing.stages.text import Statement, StatementKind, TextReader, read_text, shown

MARKDOWN = st.text(alphabet="aB.[]12`~\n :-|*#>é。 ", max_size=80)


def read(*pieces: str) -> list[str | Statement]:
    reader = TextReader()
    return [part for piece in pieces for part in reader.feed(piece)] + reader.close()


def statements(*pieces: str) -> list[Statement]:
    return [part for part in read(*pieces) if isinstance(part, Statement)]


def written(*pieces: str) -> str:
    return shown(read(*pieces))


@pytest.mark.parametrize(("text", "expected"), [
    ("One thing. Load files [1]. Then stop [2].", [("One thing.", ()), ("Load files.", (1,)), ("Then stop.", (2,))]),
    ("Load files. [1] Then stop. [2]", [("Load files.", (1,)), ("Then stop.", (2,))]),
    ("Both do [1][2].", [("Both do.", (1, 2))]),
    ("Do. [2] [1] Then stop.", [("Do.", (2, 1)), ("Then stop.", ())]),
    ("- Load files [1]\n- Stop trials [2]", [("Load files", (1,)), ("Stop trials", (2,))]),
    ("Call `x[1]` now [2].", [("Call `x[1]` now.", (2,))]),
    ("```python\nread_csv(x[1])\n```\n[2]", [("read_csv(x[1])", (2,))]),
    ("```\na\n```\n[2] says so.", [("a", ()), ("says so.", (2,))]),
    ("[1] says so. Not this.", [("says so.", (1,)), ("Not this.", ())]),
    ("Load files.\n[1]\n\nStop.", [("Load files.", (1,)), ("Stop.", ())]),
    ("Load files.\n[1] Stop.", [("Load files.", ()), ("Stop.", (1,))]),
    ("Use a store, e.g. Redis, since v2.3. Stop.", [("Use a store, e.g. Redis, since v2.3.", ()), ("Stop.", ())]),
    ("See https://d.test/a.b?c. `a. B` is code.", [("See https://d.test/a.b?c.", ()), ("`a. B` is code.", ())]),
    ("Soft\nwrapped. Next", [("Soft wrapped.", ()), ("Next", ())]),
    ("1. One.\n   - Two\n2. Three", [("One.", ()), ("Two", ()), ("Three", ())]),
    ("先加载文件。然后停止[2]。", [("先加载文件。", ()), ("然后停止。", (2,))]),
    ("Das geht z.B. so. Ende.", [("Das geht z.B. so.", ()), ("Ende.", ())]),
    ("| a | b |\n|---|---|\n| c | d [2] |\n", [("a | b", ()), ("c | d", (2,))]),
    ("**Bold.** Next one.", [("**Bold.**", ()), ("Next one.", ())]),
])  # fmt: skip
def test_number_belongs_to_the_statement_before_it(text: str, expected: list[object]) -> None:
    assert [(statement.text, statement.numbers) for statement in statements(text)] == expected


@pytest.mark.parametrize(("text", "is_claim"), [
    ("Ray scales Python.", True),
    ("- `num_cpus`: the number of CPUs", True),
    ("```\nray.init(address='auto')\n```", True),
    ("| num_cpus | 4 |", True),
    ("使用 ray.init 初始化集群。", True),
    ("Die Funktion `read_csv` lädt Dateien.", True),
    ("**Note:** The default is 4.", True),
    ("## Load CSV files", False),
    ("**Load CSV files**\n\n", False),
    ("Load CSV files\n---\n", False),
    ("| option | default |\n|---|---|\n", False),
    ("Here is how to load CSV files:", False),
    ("Do you load CSV files?", False),
    ("I hope this helps with your CSV files!", False),
    ("For example, you can follow these steps.", False),
    ("Yes, it does.", False),
    ("I do not know: nothing in this collection seems to answer that.", False),
    ("The passages do not mention CSV files.", False),
    ("The provided context does not say how to load CSV files.", False),
])  # fmt: skip
def test_claim_states_something_about_the_subject(text: str, is_claim: bool) -> None:
    (statement,) = statements(text)
    assert states_something(statement) is is_claim


@given(MARKDOWN, st.lists(st.integers(0, 80)))
@example("Do it.  \n\n- `a. B`\n```x\n1. [1]\n```\n[2]\n", [5, 9, 12, 20, 30, 33])
def test_splitting_the_stream_changes_nothing(text: str, cuts: list[int]) -> None:
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(ends)]
    assert statements(*pieces) == statements(text)
    assert written(*pieces) == written(text)


@given(MARKDOWN)
def test_text_is_kept_and_open_code_is_closed(text: str) -> None:
    text_out = written(text)
    assert text_out.startswith(text)
    assert not text_out.removeprefix(text).strip(" \n>`~")


def test_truncated_code_is_closed() -> None:
    assert written("So:\n\n- ```python\n  a = [1]") == "So:\n\n- ```python\n  a = [1]\n  ```"


def test_only_text_that_may_still_change_is_held_back() -> None:
    reader = TextReader()
    assert reader.feed("Load") == ["Load"]
    assert reader.feed(" files. ") == [" ", "files."]
    assert reader.feed("[") == []
    assert reader.feed("1] ") == [" ", "[1]"]
    assert reader.feed("T") == [Statement("Load files.", (1,), StatementKind.SENTENCE, " "), "T"]


@pytest.mark.parametrize("unit", ["a", "a ", "[1]", "`a ", "```\nx\n", "| ", "#", "- ", "a. ", "\n", "> "])
def test_long_text_is_read_to_its_end(unit: str) -> None:
    text = unit * 3_000
    assert written(*[text[at : at + 5] for at in range(0, len(text), 5)]).startswith(text)


@pytest.mark.parametrize("text", [
    "a" * 9_000, "-" * 9_000, "x" + " " * 9_000 + "y", "`" * 9_000, "a|" * 4_000, "。" * 9_000, "中" * 9_000,
    "|-" * 4_000, "a.\n\n" + "[1] " * 2_500, "```\n" + "a" * 9_000, "x" + " \n" * 5_000 + "y", "> " * 4_500 + "a",
    "#" * 9_000,
])  # fmt: skip
def test_endless_text_is_returned_in_statements_of_limited_length(text: str) -> None:
    whole = read_text(text)
    assert shown(whole).startswith(text)  # code gets its closing fence
    for size in (1, 7, 999):
        reader = TextReader()
        pieces = [piece for at in range(0, len(text), size) for piece in reader.feed(text[at : at + size])]
        pieces += reader.close()
        assert shown(pieces) == shown(whole)
        statements = [piece for piece in pieces if isinstance(piece, Statement)]
        prose = [len(one.text) for one in statements if one.kind is not StatementKind.CODE]
        assert max(prose, default=0) <= 4_000
