"""The content of a live index: its root page, versions, languages, and the beginnings of its sections."""

import pytest
from kit.workshop import BASE, Workshop

from pipelines.indexing.chunking.url_rules import UrlRules
from pipelines.store import Place, Store

SITE = {
    "index.html": {"s0": "Here everything begins."},
    "1.9/a.html": {"s0": "The first section.", "s1": "The second one."},
    "1.10/a.html": {"s0": "The first section of the newer version."},
}


@pytest.fixture
def workshop(store: Store) -> Workshop:
    """Index SITE, whose versions are folders, as a collection."""
    workshop = Workshop(store)
    workshop.rules = UrlRules(version=rf"^{BASE}([\d.]+)/")
    workshop.reindex(SITE)
    return workshop


def test_index_describes_its_content(store: Store, workshop: Workshop) -> None:
    outline = store.outline("docs", workshop.live().id)
    assert (outline.title, outline.versions, outline.languages) == ("Title", ("1.10", "1.9"), ("en",))
    starts = store.section_starts("docs", workshop.live().id)
    assert sorted((start.url.removeprefix(BASE), start.headings[-1], start.text) for start in starts) == sorted(
        (page, anchor, text) for page, sections in SITE.items() for anchor, text in sections.items()
    )
    assert {(start.links, start.language) for start in starts} == {(0, "en")}


def test_open_page_is_found_with_its_section_and_version(store: Store, workshop: Workshop) -> None:
    urls = [f"{BASE}1.9/a", f"{BASE}1.9/a.html"]
    place = store.find_place(workshop.live(), urls, "s1")
    assert place == Place(f"{BASE}1.9/a.html", "Title", "1.9", "en", "s1") and place.subject == "s1"
    for anchor in ("", "none", "\0"):
        place = store.find_place(workshop.live(), urls, anchor)
        assert place is not None and (place.heading, place.subject) == ("", "Title")
    assert store.find_place(workshop.live(), [f"{BASE}2.0/a.html"]) is None


def test_index_without_a_root_page_has_no_title(store: Store) -> None:
    workshop = Workshop(store)
    workshop.reindex({"a": {"s0": "Only a page."}})
    assert store.outline("docs", workshop.live().id).title == ""
