"""Code in a source is found as its format delimits it; what looks like markup in it is none."""

import re

import pytest

from pipelines.indexing.folders.links import lead_links
from pipelines.indexing.reading.formats import ASCIIDOC, MARKDOWN, QUARTO, RESTRUCTURED_TEXT
from pipelines.indexing.reading.links import markdown_links
from pipelines.indexing.reading.verbatim import replace_outside_code

LINKS = "```{note}\n[a](a.md)\n```\n\n- ~~~python\n  [b](b.md)\n  ~~~\n- `[c](c.md)` and [d](d.md)\n"


@pytest.mark.parametrize(
    ("text", "entry", "shown"),
    [
        ("X `X` X `` X ` X `` X", MARKDOWN, "o `X` o `` X ` X `` o"),
        ("X ` X", MARKDOWN, "o ` o"),
        ("```py\nX\n```\nX", MARKDOWN, "```py\nX\n```\no"),
        ("````\n```\nX\n```\nX\n````\nX", MARKDOWN, "````\n```\nX\n```\nX\n````\no"),
        ("1. ~~~\n   X\n   ```\n   ~~~\n   X", MARKDOWN, "1. ~~~\n   X\n   ```\n   ~~~\n   o"),
        ("> ```\n> X\n> ```\nX", MARKDOWN, "> ```\n> X\n> ```\no"),
        ("```\nX", MARKDOWN, "```\nX"),
        ("```X``` X\n\nX", MARKDOWN, "```X``` o\n\no"),
        ("````{note}\nX\n```{code-block} py\nX\n```\n````\nX", MARKDOWN,
         "````{note}\no\n```{code-block} py\nX\n```\n````\no"),
        ("```{.python}\nX\n```", MARKDOWN, "```{.python}\nX\n```"),
        ("X\n----\nX\n----\nX", MARKDOWN, "o\n----\no\n----\no"),
        ("X\n----\nX\n----\nX", RESTRUCTURED_TEXT, "o\n----\no\n----\no"),
        ("X\n----\nX\n----\nX", ASCIIDOC, "o\n----\nX\n----\no"),
        ("....\nX\n----\n....\nX", ASCIIDOC, "....\nX\n----\n....\no"),
        ("Use X\n-----\nX\n\n----\nX\n----", ASCIIDOC, "Use o\n-----\no\n\n----\nX\n----"),
        ("X::\n\n  X\n\n   X\n\nX\n~~~\nX", RESTRUCTURED_TEXT, "o::\n\n  X\n\n   X\n\no\n~~~\no"),
        ("- X::\n\n    X\n\n  X\n", RESTRUCTURED_TEXT, "- o::\n\n    X\n\n  o\n"),
        (".. code-block:: rst\n   :linenos:\n\n   X::\n\n.. note:: X\n\n   X", RESTRUCTURED_TEXT,
         ".. code-block:: rst\n   :linenos:\n\n   X::\n\n.. note:: o\n\n   o"),
    ],
)  # fmt: skip
def test_markup_is_replaced_outside_code_only(text, entry, shown):
    assert replace_outside_code(re.compile("X"), lambda _: "o", text, entry) == shown


GRID = "+---+---+\n| X | b |\n+===+===+\n| c | X |\n+---+---+\n\nX | X |\n"
SIMPLE = "==  ==\nX   X\n==  ==\nX   X\n\nX   X\n==  ==\n\nX\n"


@pytest.mark.parametrize(
    ("text", "entry", "shown"),
    [
        (GRID, RESTRUCTURED_TEXT, GRID.replace("X | X", "long | long")),
        (GRID, QUARTO, GRID.replace("X | X", "long | long")),
        (GRID, MARKDOWN, GRID.replace("X", "long")),
        ("| X | X |\n|---|---|\n| X | X |\n", QUARTO, "| long | long |\n|---|---|\n| long | long |\n"),
        (SIMPLE, RESTRUCTURED_TEXT, SIMPLE.replace("X\n", "long\n")),
    ],
)
def test_columns_of_drawn_tables_keep_their_width(text, entry, shown):
    pattern = re.compile("X")
    assert replace_outside_code(pattern, lambda _: "long", text, entry) == shown
    assert replace_outside_code(pattern, lambda _: "o", text, entry) == text.replace("X", "o")


def test_links_lead_to_pages_within_directives_but_not_in_code():
    led = lead_links(LINKS.encode(), "http://f/x.md", "http://f/", lambda url: url.replace(".md", "/"), MARKDOWN)
    assert led.decode() == LINKS.replace("a.md", "http://f/a/").replace("d.md", "http://f/d/")
    assert markdown_links(LINKS) == ["a.md", "d.md"]
