"""TypeDoc: signatures are boxes."""

from bs4 import BeautifulSoup

from pipelines.indexing.reading.generator import Generator
from pipelines.indexing.reading.html.soup import become_listing, lines_of


def _rewrite(soup: BeautifulSoup) -> None:
    for signature in soup.select("div.tsd-signature"):
        become_listing(signature, lines_of(signature))


GENERATOR = Generator(
    "TypeDoc",
    marks="tsd-signature",
    noise="tsd-breadcrumb tsd-page-toolbar tsd-index-group tsd-sources tsd-navigation col-sidebar",
    rewrite=_rewrite,
)
