"""Writes a benchmark's table between its markers in a page: `<!-- bench: NAME -->` and `<!-- /bench: NAME -->`."""

from collections.abc import Sequence
from pathlib import Path

from pipelines.text.tables import split_between


def write_table(page: Path, name: str, markdown: str) -> None:
    """Replace the text between the markers of table `name`. The rest of the page stays. Raises NoPlace."""
    before, after = _split(page, name)
    page.write_text(f"{before}{markdown.strip()}\n{after}", encoding="utf-8")


def check_place(page: Path, name: str) -> None:
    """Raise NoPlace unless the page has the markers of table `name`. Call it before minutes of measuring."""
    _split(page, name)


def as_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    top, *below = ("| " + " | ".join(map(str, line)) + " |" for line in (head, *rows))
    return "\n".join([top, "|" + "---|" * len(head), *below])


def _split(page: Path, name: str) -> tuple[str, str]:
    begin, end = f"<!-- bench: {name} -->", f"<!-- /bench: {name} -->"
    return split_between(page.read_text(encoding="utf-8") if page.exists() else "", begin, end, page)
