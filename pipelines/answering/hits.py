"""Formats hits for readers and models (heading, snippet, full text), and applies filters to them."""

from pipelines.page.stored import plain_text
from pipelines.records import Filters, Hit

SNIPPET = 300  # characters: readable at a glance; the hit contains the whole text


def snippet(text: str, length: int = SNIPPET) -> str:
    """Return the beginning of `text` on one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"


def heading(hit: Hit) -> str:
    """Return a hit's heading path for a reader; without headings, the page's title or URL."""
    return " › ".join(dict.fromkeys(hit.headings)) or hit.title or hit.url


def own_heading(hit: Hit) -> str:
    """Return the heading of a hit's own section; without headings, the page's title or URL."""
    return (hit.headings[-1] if hit.headings else hit.title) or hit.url


def passes(hit: Hit, filters: Filters) -> bool:
    """Return whether a hit passes `filters`."""
    return (
        (not filters.tags or bool(set(filters.tags) & set(hit.tags)))
        and filters.version in (None, hit.version)
        and filters.language in (None, hit.language)
        and hit.url.startswith(filters.url_prefix or "")
    )


def full_text(hit: Hit) -> str:
    """Return a hit's headings, title and passage as plain text, for comparison by words and vectors."""
    return f"{heading(hit)} {hit.title}\n{plain_text(hit.passage)}"
