"""Asciidoctor: a box is a table of two cells, its sign and its text."""

from bs4 import BeautifulSoup

from pipelines.indexing.reading.generator import Generator


def _rewrite(soup: BeautifulSoup) -> None:
    for table in soup.select("div.admonitionblock > table"):
        table["role"] = "presentation"


GENERATOR = Generator("Asciidoctor", marks="admonitionblock", rewrite=_rewrite)
