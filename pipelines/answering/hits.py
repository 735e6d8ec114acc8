"""Shows hits to readers and models: heading, snippet, all of the text."""

from pipelines.page.stored import plain_text
from pipelines.records import Hit

SNIPPET = 300  # characters: as long as a reader's glance; the whole text is in the hit


def snippet(text: str, length: int = SNIPPET) -> str:
    """Return the beginning of `text` on one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"


def heading(hit: Hit) -> str:
    """Return a hit's heading path for a reader; the page's title or URL if it has none."""
    return " › ".join(dict.fromkeys(hit.headings)) or hit.title or hit.url


def own_heading(hit: Hit) -> str:
    """Return the heading of a hit's own section; the page's title or URL if it has none."""
    return (hit.headings[-1] if hit.headings else hit.title) or hit.url


def full_text(hit: Hit) -> str:
    """Return a hit's headings, title and passage, plain: what is compared with words and vectors."""
    return f"{heading(hit)} {hit.title}\n{plain_text(hit.passage)}"
