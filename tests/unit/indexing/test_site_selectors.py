"""A collection describes its own pages by CSS selectors where no general rule applies."""

from dataclasses import replace

import pytest

from pipelines.indexing.collection import Collection, InvalidCollection, Site, compose_collection
from pipelines.indexing.reading.html.site import SelectorCheck
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.page.tree import Document
from pipelines.records import IndexSettings, Page
from tests.kit.sectioning import text_of

PAGE = (
    '<body><div class="top"><h1 class="page">Installing</h1></div><div class="side">Try our new plan today.</div>'
    '<div class="doc"><h2 id="pip">With pip</h2><p>Run the installer.</p>'
    '<div class="hint"><h3>Mind</h3><p>Close the editor first.</p></div><p>Then restart.</p>'
    '<div class="rate">Rate this text from one to five.</div></div>and<div class="doc"><p>More of it.</p></div></body>'
)
HTML = {"content": ".doc", "title": "h1.page", "noise": [".rate", "#toc"], "boxes": [".hint"]}


def read(html: dict[str, object]) -> Document:
    return read_page(Page("https://x.org/page.html", PAGE.encode()), html)


def text(html: dict[str, object]) -> str:
    return text_of(*read(html).sections)


def test_only_the_selected_content_without_its_noise_is_read():
    assert "Try our new plan" in text({}) and "Rate this text" in text({})
    assert "Run the installer." in text(HTML) and "More of it." in text(HTML)
    assert not any(words in text(HTML) for words in ("new plan", "Rate this", "and\n", "Installing"))


def test_script_outside_the_content_may_show_hidden_parts():
    style = "<style>.more {display: none}</style><p class='more'>More of it.</p>"
    parts = f"<div class='doc'><p>Run it.</p>{style}</div><div class='doc'>End.</div>"
    page = f"<body><script>show('.more')</script>{parts}".encode()
    document = read_page(Page("https://x.org/page.html", page), {"content": ".doc"})
    assert "More of it." in text_of(*document.sections)


def test_title_can_be_outside_the_content():
    assert (read(HTML).title, read({"content": ".doc"}).title) == ("Installing", "With pip")


def test_heading_in_a_noise_box_is_no_section_and_text_continues_after_it():
    assert "Mind" in read({"content": ".doc"}).sections[1].headings[-1]
    (section,) = read(HTML).sections
    assert section.headings == ("With pip",) and "Then restart." in text_of(section)


def test_page_without_selector_matches_is_read_as_on_any_site():
    assert text({"content": "main", "title": ".no", "noise": [".no"]}) == text({})


def test_selectors_without_matches_are_reported():
    check = PageReader(SelectorCheck([".doc", "#toc"]))
    assert check(Page("https://x.org/page.html", PAGE.encode())) == {".doc"}


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ({"content": "main >"}, "html.content: 'main >' is not a CSS selector"),
        ({"noise": [".ok", ".x["]}, "html.noise.1: '.x[' is not a CSS selector"),
        ({"boxes": ["p::before"]}, "html.boxes.0: 'p::before' is not a CSS selector"),
        ({"titel": "h1"}, "html.titel is unknown: did you mean title?"),
    ],
)
def test_wrong_selector_is_named_before_anything_is_read(html, words):
    stored = {"name": "docs", "sites": [{"start_urls": ["https://docs.test/"]}], "html": html}
    with pytest.raises(InvalidCollection) as error:
        compose_collection(stored=stored)
    assert words in str(error.value)


def test_index_older_than_selectors_keeps_its_fingerprint():
    plain = Collection(name="docs", sites=[Site(start_urls=["https://docs.test/"])])
    before = IndexSettings("all-MiniLM-L6-v2")
    assert replace(before, html=plain.html.chosen).fingerprint == before.fingerprint
    assert replace(before, html={"content": "main"}).fingerprint != before.fingerprint
