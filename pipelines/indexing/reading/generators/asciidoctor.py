"""Asciidoctor: a box is a table of two cells, its sign and its text."""

from bs4 import BeautifulSoup


def rewrite(soup: BeautifulSoup) -> None:
    """Make plain HTML of a page."""
    for table in soup.select("div.admonitionblock > table"):
        table["role"] = "presentation"
