"""Notebooks give their text, their code and its output, within limits."""

import json

import pytest

from pipelines.indexing.reading.formats.notebook import MAX_OUTPUT
from pipelines.indexing.reading.read import read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.tree import Document
from pipelines.records import Page
from tests.kit.blocks import blocks_of

KIND = "application/x-ipynb+json"


def notebook(*cells: dict) -> bytes:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()


def code(source: str, *outputs: dict) -> dict:
    return {"cell_type": "code", "source": source, "outputs": outputs, "metadata": {}, "execution_count": 1}


def markdown(source: str) -> dict:
    return {"cell_type": "markdown", "source": source.splitlines(keepends=True), "metadata": {}}


def read(body: bytes, kind: str = KIND) -> Document:
    return read_page(Page("https://x.org/p.ipynb", body, kind))


def blocks(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for section in document.sections for block in blocks_of(section)]


def test_words_code_and_printed_text_stay_in_order():
    document = read(
        notebook(
            markdown("# Title\n\nAn *unclosed\n\n```\nfence"),
            code("print(1)", {"output_type": "stream", "name": "stdout", "text": ["1\n", "\x1b[31mred\x1b[0m\n"]}),
            markdown("## Step 1\n\nWords."),
            code("", {"output_type": "stream", "name": "stdout", "text": ""}),
            code("1/0", {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero", "traceback": []}),
            {"cell_type": "raw", "source": "raw", "metadata": {}},
        )
    )
    assert document.title == "Title"
    assert [section.anchor for section in document.sections] == ["Title", "Step-1"]
    assert blocks(document) == [
        ("prose", "An *unclosed"), ("code", "fence"), ("code", "print(1)"), ("code", "1\nred"), ("prose", "Words."),
        ("code", "1/0"), ("code", "ZeroDivisionError: by zero"),
    ]  # fmt: skip


def test_sphinx_uses_other_anchors_for_notebook_sections():
    body = notebook(markdown("# What's new\n\nWords."))
    assert read(body).sections[0].anchor == "What's-new"
    assert read(body, "application/x-sphinx-ipynb").sections[0].anchor == "what-s-new"


def test_pictures_are_omitted_and_long_output_is_cut():
    picture = {"image/png": "iVBORw0KGgo" * 1000, "text/plain": "<Figure size 640x480 with 1 Axes>"}
    table = {"text/html": "<table></table>", "text/plain": "a  b\n1  2"}
    document = read(
        notebook(
            code("plot()", {"output_type": "display_data", "data": picture, "metadata": {}}),
            code("frame", {"output_type": "execute_result", "data": table, "metadata": {}, "execution_count": 2}),
            code("log()", {"output_type": "stream", "name": "stdout", "text": "line\n" * 100_000}),
        )
    )
    texts = [text for _, text in blocks(document)]
    assert texts[:4] == ["plot()", "frame", "a  b\n1  2", "log()"]
    assert len(texts[4]) <= MAX_OUTPUT + 2 and texts[4].endswith("line\n…")


def test_cell_hidden_from_the_page_is_omitted():
    hidden = [
        code("setup()") | {"metadata": metadata} for metadata in ({"tags": ["remove-cell"]}, {"nbsphinx": "hidden"})
    ]
    assert blocks(read(notebook(*hidden, code("shown()")))) == [("code", "shown()")]


def test_old_notebook_format_is_read():
    cells = [{"cell_type": "code", "input": ["x = 1"], "outputs": [], "language": "python", "collapsed": False}]
    body = {
        "worksheets": [{"cells": cells, "metadata": {}}],
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
    }
    assert blocks(read(json.dumps(body).encode())) == [("code", "x = 1")]


@pytest.mark.parametrize("body", [b"{}", b"[1, 2]", b"words", b'{"nbformat": 4}', b'{"cells": 3, "nbformat": 4}'])
def test_file_that_is_not_a_notebook_is_refused(body):
    with pytest.raises(UnreadablePage):
        read(body)


@pytest.mark.parametrize(("kind", "anchor"), [("x-ipynb+json", "-%25run-%C3%A9"), ("x-nbsphinx-ipynb", "%run-é")])
def test_ids_of_nbconvert_are_parts_of_a_url(kind, anchor):
    body = notebook(markdown("# <a name='x'></a> %run é\n\na"))
    (section,) = read(body, f"application/{kind}").sections
    assert section.anchor == anchor


def test_error_is_shown_with_its_traceback_as_on_the_published_page():
    trace = ["\x1b[0;31mZeroDivisionError\x1b[0m   Traceback", "----> 1 f(0)", "ZeroDivisionError: by zero"]
    error = {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero", "traceback": trace}
    assert blocks(read(notebook(code("f(0)", error))))[-1] == (
        "code", "ZeroDivisionError   Traceback\n----> 1 f(0)\nZeroDivisionError: by zero",
    )  # fmt: skip
