"""Reads Jupyter notebooks: their Markdown, their code and its text output, but no images."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import nbformat
from markdown_it.token import Token

from pipelines.indexing.reading.formats import HTML, MARKDOWN, TEXT
from pipelines.indexing.reading.formats.html import document_of_html
from pipelines.indexing.reading.formats.markdown import dialect_of, render
from pipelines.indexing.reading.text import UnreadablePage, text_of_page, without_escapes
from pipelines.page.tree import Document
from pipelines.records import Page

# Characters of one cell's output: a pandas table has about 2,000, the log of a training run 100,000.
MAX_OUTPUT = 2_000
LATEX = "text/latex"
_REMOVED = frozenset(("remove-cell", "remove_cell"))
_OBJECT = re.compile(r"<[\w. ]+(?: (?:object|at) ?.*)?>|")  # `<IPython.core.display.HTML object>`


_WITHOUT_INPUT, _WITHOUT_OUTPUT = ({f"remove-{part}", f"remove_{part}"} for part in ("input", "output"))


def read_notebook(page: Page) -> Document:
    """Read a notebook, with the anchors of nbconvert or of its dialect's parser. Raises UnreadablePage."""
    notebook = _parse(page)
    title = str(notebook.get("metadata", {}).get("title") or "")
    rendered, _ = render([part for cell in notebook.cells for part in _parts(cell)], dialect_of(page))
    return document_of_html(page.url, rendered, title)


def _parse(page: Page) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about cells without an id
            return nbformat.reads(text_of_page(page), as_version=4)
    except UnreadablePage:
        raise
    except Exception as error:  # nbformat lets every exception of its converters through
        raise UnreadablePage(page.url, f"not a Jupyter notebook ({type(error).__name__}: {error})"[:300]) from error


def _parts(cell: Mapping[str, Any]) -> Iterator[str | Token]:
    """Yield a cell as Markdown, or as code and its output."""
    source = str(cell.get("source") or "")
    metadata = cell.get("metadata") or {}
    tags = set(metadata.get("tags") or ())
    if _REMOVED & tags or metadata.get("nbsphinx") == "hidden":
        return
    if cell.get("cell_type") == "markdown":
        yield source
    elif cell.get("cell_type") == "code":
        source = source if _WITHOUT_INPUT.isdisjoint(tags) else ""
        shown = [*map(_shown_by, cell.get("outputs") or ())] if _WITHOUT_OUTPUT.isdisjoint(tags) else []
        printed = _printed([text for kind, text in shown if kind == "code"])
        yield from (Token("fence", "code", 0, content=text) for text in (source, printed) if text.strip())
        yield from (text for kind, text in shown if kind == "markdown" and text.strip())
        yield from (Token("html_block", "", 0, content=text) for kind, text in shown if kind == "html")


def _printed(texts: Sequence[str]) -> str:
    text = without_escapes("\n".join(filter(None, map(str.rstrip, texts))))
    return text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT].rpartition(chr(10))[0] or text[:MAX_OUTPUT]}\n…"


def _shown_by(output: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an output (code, Markdown or HTML) and its most readable text.

    The text is "" for an image, and for an object whose text only names it.
    """
    kind = output.get("output_type")
    if kind == "stream":
        return "code", str(output.get("text") or "")[: 2 * MAX_OUTPUT]
    if kind == "error":
        lines = "\n".join(map(str, output.get("traceback") or ()))
        return "code", lines[: 2 * MAX_OUTPUT] or f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data") or {}
    text = str(data.get(TEXT.media_type) or "")[: 2 * MAX_OUTPUT]
    if rich := next(filter(None, map(data.get, (MARKDOWN.media_type, LATEX))), None):
        return "markdown", str(rich)[: 2 * MAX_OUTPUT]
    if any(name.startswith("image/") for name in data):
        return "code", ""
    if _OBJECT.fullmatch(text.strip()):  # only its HTML is readable
        html = str(data.get(HTML.media_type) or "")
        return ("html", f"<div>{html}</div>") if len(html) <= 10 * MAX_OUTPUT else ("code", "")
    return "code", text
