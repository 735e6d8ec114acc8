"""Stand-in for read.py's links until that file is there."""

from urllib.parse import urldefrag, urljoin

import lxml.html

from pipelines.records import Page


def page_links(page: Page) -> tuple[str, ...]:
    """Absolute URLs that an HTML page points to."""
    if "html" not in page.content_type:
        return ()
    hrefs = (a.get("href") for a in lxml.html.document_fromstring(page.body).iter("a"))
    found = (urldefrag(urljoin(page.url, href))[0] for href in hrefs if href)
    return tuple(dict.fromkeys(found))


def page_canonical(page: Page) -> str | None:
    """The canonical URL of a page: not read yet."""
    return None
