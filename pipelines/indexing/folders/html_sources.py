"""Tells pages in HTML from templates in a source folder, and reads those with front matter.

A theme, an override or a partial is no page: readers see it only as a part of others. This module reads no file.
"""

import re
from html import escape

from pipelines.indexing.reading.front_matter import FRONT_MATTER, front_matter

_HEAD = 20_000  # characters in which the head of a page is looked for
_WHOLE = re.compile(r"<(?:!doctype|html|body)\b", re.IGNORECASE)
_BODY = re.compile(r"<body\b", re.IGNORECASE)
# Code and comments: a page that shows a tag there is no template.
_SHOWN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|pre|code|textarea)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(r"\{%-?\s*\w|\{\{")


def is_html_page(body: bytes, renders_html: bool) -> bool:
    """Return whether HTML is a page, and no template. HTML with front matter is a page.

    A template has a tag in its head, or anywhere if it is a part of a page. A generator without `renders_html` only
    publishes whole pages, because it makes none from HTML.
    """
    text = body[:_HEAD].decode("utf-8", "replace")
    if FRONT_MATTER.match(text):
        return True
    whole = _WHOLE.search(text) is not None
    head = _BODY.split(text, maxsplit=1)[0] if whole else text
    return (whole or renders_html) and _TAG.search(_SHOWN.sub("", head)) is None


def html_page(body: bytes) -> bytes:
    """Return a page in HTML with its title instead of its front matter, and the words of its tags."""
    text = body.decode("utf-8", "surrogateescape")
    head = FRONT_MATTER.match(text)
    if head is None:
        return body
    from pipelines.indexing.reading.formats.templates import fill_tags  # takes 0.1 s, and few folders need it

    title = front_matter(text).get("title")
    said = f"<title>{escape(str(title))}</title>\n" if title else ""
    return f"{said}{fill_tags(text[head.end() :])}".encode("utf-8", "surrogateescape")
