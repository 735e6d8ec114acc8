"""Formats hits for readers and models: heading, snippet, full text."""

import re
from collections.abc import Sequence
from typing import Protocol

from pipelines.page.stored import plain_text
from pipelines.records import Hit

SNIPPET = 300  # characters: readable at a glance; the hit contains the whole text


class Headed(Protocol):
    """A chunk with its headings, from the outermost."""

    @property
    def url(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def headings(self) -> Sequence[str]: ...


def snippet(text: str, length: int = SNIPPET) -> str:
    """Return the beginning of `text` on one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"


def heading(hit: Headed) -> str:
    """Return a hit's heading path for a reader; without headings, the page's title or URL."""
    return " › ".join(dict.fromkeys(hit.headings)) or hit.title or hit.url


def place(hit: Hit) -> str:
    """Return the title of a hit's page and its heading path, for someone who sees only this part of the page."""
    names: dict[str, str] = {}
    for name in (hit.title, *hit.headings):
        names.setdefault("".join(re.findall(r"\w+", name)).casefold() or name, name)
    return " › ".join(filter(None, names.values())) or hit.url


def own_heading(hit: Hit) -> str:
    """Return the heading of a hit's own section; without headings, the page's title or URL."""
    return (hit.headings[-1] if hit.headings else hit.title) or hit.url


def full_text(hit: Hit) -> str:
    """Return a hit's headings, title and passage as plain text, for comparison by words and vectors."""
    return f"{heading(hit)} {hit.title}\n{plain_text(hit.passage)}"
