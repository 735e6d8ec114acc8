"""TypeDoc: signatures are boxes, which become listings."""

from bs4 import BeautifulSoup

from pipelines.indexing.reading.html.soup import become_listing, lines_of


def rewrite(soup: BeautifulSoup) -> None:
    """Turn a page into plain HTML."""
    for signature in soup.select("div.tsd-signature"):
        become_listing(signature, lines_of(signature))
