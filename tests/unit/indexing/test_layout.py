"""Text that most pages repeat outside their own headings is layout; text under a heading is not."""

from dataclasses import replace

import pytest

from pipelines.indexing.reading.layout import Layouts, learn_layout
from pipelines.indexing.reading.read import read_page
from pipelines.indexing.summary import describe_layouts
from pipelines.page.tree import Document
from pipelines.records import Page
from tests.kit.sectioning import text_of

BANNER = "<div class='x1'>Acme. Fast and small.</div>"
PAGER = "<div class='x2'><a href='a'>« back</a> | <a href='b'>on »</a></div>"
LICENCE = "Licensed under the Example Licence: you may copy this page as long as you name those who wrote it."
WARNING = "This function is experimental and may change."


def page(number: int, body: str, title: str = "") -> Document:
    text = f"<html><head><title>{title or f'Page {number} — Acme 3.2'}</title></head><body>{body}</body></html>"
    return read_page(Page(f"http://acme.test/{number}.html", text.encode()))


def site(pages: int, frame: str = BANNER + PAGER) -> list[Document]:
    return [page(number, f"{frame}<div><h1>Topic {number}</h1><p>Words about topic {number}.</p>"
                 f"<p>{WARNING}</p><pre>pip install acme</pre><h2>Parameters</h2><p>None.</p>"
                 f"<h2>Licence</h2><p>{LICENCE}</p></div>") for number in range(pages)]  # fmt: skip


def texts(document: Document) -> str:
    return text_of(*document.sections)


def test_banners_and_pagers_are_removed():
    documents = site(20)
    layout = learn_layout(documents)
    stripped = [layout.strip(document) for document in documents]
    assert all("Acme. Fast" in texts(document) for document in documents)
    assert not any("Acme. Fast" in texts(document) or "back" in texts(document) for document in stripped)


def test_menu_is_removed_although_part_of_it_belongs_to_the_page():
    entries = "".join(f"<li><a href='{name}'>{name} of Acme</a></li>" for name in ("Modules", "Buffers", "Timers"))
    index = f"<li>Index<hr><ul>{entries}</ul></li>"
    documents = [
        page(
            number,
            f"<h1>Acme 3.2</h1><ul>{index}<li>Contents<hr><ul><li>Part {number}</li></ul></li></ul>"
            f"<h2>Topic {number}</h2><p>Words about topic {number}.</p>",
            f"Topic {number}",
        )
        for number in range(20)
    ]
    stripped = [texts(document) for document in map(learn_layout(documents).strip, documents)]
    assert all("Buffers of Acme" in texts(document) for document in documents)
    assert not any("Buffers of Acme" in text for text in stripped)
    assert all(f"Words about topic {n}." in text for n, text in enumerate(stripped))


def test_repeated_text_under_the_heading_of_a_page_stays():
    documents = site(20)
    for document in map(learn_layout(documents).strip, documents):
        kept = texts(document)
        assert all(words in kept for words in (WARNING, "pip install acme", "None.", LICENCE, "Words about"))
        assert {"Parameters", "Licence"} <= {section.headings[-1] for section in document.sections}


def test_code_is_never_layout():
    documents = [page(n, f"<pre>pip install acme</pre><h1>Topic {n}</h1><p>Words {n}.</p>") for n in range(20)]
    assert all("pip install acme" in texts(learn_layout(documents).strip(document)) for document in documents)


PLAIN = [page(n, f"<h1>Topic {n}</h1><p>Words about topic {n}.</p><p>{WARNING}</p>") for n in range(30)]


@pytest.mark.parametrize("documents", [site(1), site(3), site(7), PLAIN], ids=len)
def test_small_or_varied_site_has_no_layout(documents):
    assert not learn_layout(documents)
    assert [learn_layout(documents).strip(document) for document in documents] == documents


def test_page_is_named_by_its_own_heading():
    documents = site(20, "<div><h1>Acme 3.2 documentation</h1></div>" + BANNER)
    layout = learn_layout(documents)
    assert {document.title for document in documents} == {"Acme 3.2 documentation"}
    assert [layout.strip(document).title for document in documents] == [f"Topic {number}" for number in range(20)]
    assert not any("Acme 3.2" in heading for document in map(layout.strip, documents)
                   for section in document.sections for heading in section.headings)  # fmt: skip


def test_page_without_a_heading_is_named_by_the_unique_part_of_its_title():
    head = "<div><h1>Acme 3.2 documentation</h1></div>"
    documents = [page(n, f"{head}<p>Words about topic {n}.</p>") for n in range(20)]
    layout = learn_layout(documents)
    assert layout.strip(documents[3]).title == "3"
    named = [page(n, f"{head}<p>Words {n}.</p>", f"{'abcdefghijklmnopqrst'[n]} topic — Acme 3.2") for n in range(20)]
    assert learn_layout(named).strip(named[3]).title == "d"


def test_layout_is_kept_if_its_share_falls_slightly_below_half():
    documents = site(20)
    known, others = learn_layout(documents), [page(n, f"<h1>Other {n}</h1><p>Text {n}.</p>") for n in range(20, 45)]
    assert not learn_layout(documents + others)
    assert replace(learn_layout(documents + others, known), pages=20).lines == known.lines


def test_order_of_pages_changes_nothing():
    documents = site(20)
    assert learn_layout(documents[::-1]) == learn_layout(documents)


def test_layouts_survive_storage():
    layouts = Layouts((("http://acme.test", learn_layout(site(20))),))
    assert Layouts.from_json(layouts.as_json()) == layouts
    assert layouts.digest
    assert Layouts().digest == ""
    assert not layouts.of("http://other.test/1")


def test_report_shows_on_how_many_pages_each_line_appears():
    bare = [page(n, f"<div><h1>Topic {n}</h1><p>Words about topic {n}.</p></div>") for n in range(20, 24)]
    layouts = Layouts((("http://acme.test", learn_layout(site(20) + bare)),))
    [line] = describe_layouts(layouts.as_json())
    assert line.startswith('http://acme.test: left out because it repeats on most of 24 pages: "')
    assert '" (on 20)' in line and "(on 24)" not in line
    stored = layouts.as_json()["http://acme.test"]
    del stored["counts"]  # as the previous version stored it
    assert "(on " not in describe_layouts({"http://acme.test": stored})[0]
    assert Layouts.from_json({"http://acme.test": stored}).digest == layouts.digest


def test_options_that_all_commands_share_are_not_layout():
    options = "<dl><dt>--help</dt><dd>Print a summary</dd></dl>"
    documents = [
        page(n, f"<h2>Name</h2><p>Command {n} counts.</p><h2>Options</h2>{options}<h2>Notes</h2><p>Words {n}.</p>")
        for n in range(20)
    ]
    assert all("Print a summary" in texts(learn_layout(documents).strip(document)) for document in documents)
