"""Computes the ids that generators give headings from their titles."""

import re
from html import escape
from unicodedata import normalize
from urllib.parse import quote


def slug(title: str) -> str:
    """Return the id that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def python_markdown_slug(title: str) -> str:
    """Return the id that Python-Markdown's toc extension gives a heading."""
    plain = normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def blackfriday_slug(title: str) -> str:
    """Return the id that Hugo gives a heading if its configuration asks for the ids of Blackfriday."""
    return re.sub(r"[\W_]+", "-", title.lower()).strip("-")


def vue_slug(title: str) -> str:
    """Return the id that VitePress and VuePress give a heading."""
    plain = re.sub(r"[\u0300-\u036f\x00-\x1f]", "", normalize("NFKD", title))
    return re.sub(r"^(?=\d)", "_", re.sub(r"[\s!-/:-@\[-`{-~“”‘’]+", "-", plain).strip("-")).lower()


def docsify_slug(title: str) -> str:
    """Return the id that docsify gives a heading, of whose HTML it is made: `&` is `amp`, and `'` is `39`."""
    html = escape(title.strip().lower()).replace("&#x27;", "&#39;")
    plain = re.sub(r"[\u2000-\u206f\u2e00-\u2e7f\\'!\"#$%&()*+,./:;<=>?@\[\]^`{|}~]", "", html)
    return re.sub(r"^(?=\d)", "_", re.sub(r"-+", "-", re.sub(r"\s", "-", plain)))


def jupyter_slug(title: str) -> str:
    """Return the id that nbconvert and nbviewer give a heading of a notebook: a part of a URL."""
    return quote(title.replace(" ", "-"), safe="?/:@!$&'()*+,;=")


def nbsphinx_slug(title: str) -> str:
    """Return the id that nbsphinx gives a heading of a notebook."""
    return title.strip().replace(" ", "-").replace('"', "%22")


def docutils_slug(title: str) -> str:
    """Return the id that docutils gives a section."""
    from docutils.nodes import make_id

    return make_id(title)
