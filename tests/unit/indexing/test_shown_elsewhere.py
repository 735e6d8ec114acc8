"""Refreshes, `<base>` and shadow roots determine the visible page; exported pages show notes and code."""

import pytest

from pipelines.indexing.reading.links import page_pointers
from pipelines.indexing.reading.read import read_page
from pipelines.page.tree import Document, leaves_of
from pipelines.records import Page
from tests.kit.sectioning import read_html, text_of

URL = "https://docs.example.org/guide/b.html"
LONG = "Version 4.2 loses the connection after ten minutes. Set keepalive to 60 until 4.3 is there. " * 4


def text(body: str, head: str = "") -> str:
    page = Page(URL, f'<html lang="en"><head><title>T</title>{head}</head><body>{body}</body></html>'.encode())
    return text_of(*read_page(page).sections)


REFRESHED = {
    "for readers without scripts": (
        '<noscript><meta http-equiv="refresh" content="0; URL=/other"></noscript>',
        "Short.",
    ),
    "itself": ('<meta http-equiv="refresh" content="0; url=b.html">', "Short."),
    "itself, by its whole URL and a query": (f'<meta http-equiv="refresh" content="5; url={URL}?t=1#x">', "Short."),
    "itself, without naming it": ('<meta http-equiv="refresh" content="300">', "Short."),
    "another one, after it was read": ('<meta http-equiv="refresh" content="30; url=next.html">', "A slide."),
    "another one, below a text": ('<meta http-equiv="Refresh" content="0;url=new.html">', LONG),
    "no URL": ('<meta http-equiv="refresh" content="0; url=http://[">', "Short."),
}


@pytest.mark.parametrize(("head", "words"), REFRESHED.values(), ids=REFRESHED)
def test_page_that_reloads_itself_or_has_its_own_text_is_read(head, words):
    assert text(f"<main><h1>Known problems</h1><p>{words}</p></main>", head) == words.strip()


@pytest.mark.parametrize("content", ["0; URL=new.html", "0;url='/b.html'", "3, new.html", "0.5; Url = https://o.org/"])
def test_page_that_redirects_its_reader_is_no_source(content):
    head = f'<meta http-equiv="refresh" content="{content}">'
    assert text('<p>This page has moved to <a href="new.html">a new place</a>.</p>', head) == ""


def shown(html: str) -> Document:
    return read_html(f"<main><h1>Button</h1>{html}</main>")


def root(inner: str, mode: str = "open") -> str:
    return f'<template shadowrootmode="{mode}"><style>p{{}}</style>{inner}</template>'


INNER = f"<x-b>{root('<p>Inner.</p><slot></slot>')}<slot></slot></x-b>"
NAMED = root("<p><slot name=b></slot></p><p><slot name=a></slot></p>") + '<b slot="a">First.</b><b slot="b">Second.</b>'
SHADOWS = {
    "a slot": (f"<x-a>{root('<p>Before.</p><slot></slot><p>After.</p>')}<p>Own.</p></x-a>", "Before. Own. After."),
    "named slots, in their order": (f"<x-a>{NAMED}</x-a>", "Second. First."),
    "what a slot shows by itself": (f"<x-a>{root('<p>One <slot>of many.</slot></p>', 'closed')}</x-a>", "One of many."),
    "what no slot takes": (f"<x-a>{root('<p>Shown.</p>')}<p>Not shown.</p></x-a>", "Shown."),
    "one in another": (
        f"<x-a>{root(INNER)}<p>Outer.</p></x-a>",
        "Inner. Outer.",
    ),
    "a second root": (f"<x-a>{root('<p>First.</p>')}{root('<p>Second.</p>')}</x-a>", "First."),
    "a template": ("<x-a><template><p>Hidden.</p></template><p>Own.</p></x-a>", "Own."),
}


@pytest.mark.parametrize(("html", "words"), SHADOWS.values(), ids=SHADOWS)
def test_shadow_root_is_the_content_of_its_element(html, words):
    assert " ".join(text_of(*shown(html).sections).split()) == words


def test_headings_and_links_in_a_shadow_root_count():
    usage = root('<h2 id="usage">Usage</h2><p>A <a href="/label">label</a> is needed.</p>')
    html = f"<doc-a>{usage}</doc-a>"
    assert [section.anchors for section in shown(html).sections] == [("usage",)]
    assert page_pointers(Page(URL, html.encode()))[0] == ("https://docs.example.org/label",)
    assert page_pointers(Page(URL, b'<template><a href="/no">no</a></template>'))[0] == ()


def targets(base: str, *links: str) -> list[str]:
    """Return the link targets of a page with `<base href>`: those in citations, and those that are crawled."""
    anchors = " and ".join(f'<a href="{link}">{number} it</a>' for number, link in enumerate(links))
    html = f'<head><base href="{base}"></head><main><h1>R</h1><p id="guards">Read {anchors}.</p></main>'
    page = Page(URL, html.encode())
    (section,) = read_page(page).sections
    cited = [span.target for leaf in leaves_of(section.content) for span in leaf.spans if span.target]
    assert {url.partition("#")[0] for url in cited} - {URL} <= set(page_pointers(page)[0])
    return cited


@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("/", "https://docs.example.org/api/Router"),
        ("../v2/", "https://docs.example.org/v2/api/Router"),
        ("https://docs.example.org/x/index.html", "https://docs.example.org/x/api/Router"),
        *((hostile, "https://docs.example.org/guide/api/Router")
          for hostile in ("https://evil.test/", "//evil.test/", "data:text/html,", "javascript:x()", "http://[", "")),
    ],
)  # fmt: skip
def test_links_are_relative_to_the_base_element_on_the_same_site(base, target):
    assert targets(base, "api/Router") == [target]


def test_link_to_a_page_fragment_stays_on_the_page():
    root_url = "https://docs.example.org/"
    assert targets("/", "#guards", "#elsewhere", "a#x") == [f"{URL}#guards", f"{root_url}#elsewhere", f"{root_url}a#x"]


CONFLUENCE = (
    "<div id='main-content' class='wiki-content'><div class='toc-macro'><ul><li><a href='#b'>Run</a></li></ul></div>"
    "<h2 id='a'>Plan</h2><div class='confluence-information-macro'><p class='title'>Beware</p>"
    "<span class='aui-icon'></span><div class='confluence-information-macro-body'><p>Never stop it.</p></div></div>"
    "<h2 id='b'>Run</h2><div class='code panel'><div class='codeContent panelContent'>"
    "<pre class='syntaxhighlighter-pre'>acme stop\nacme start</pre></div></div></div>"
)
NBCONVERT = (
    "<main><div class='jp-Cell jp-MarkdownCell'><div class='jp-InputPrompt'></div><div class='jp-MarkdownOutput'>"
    "<h1 id='Load'>Load<a class='anchor-link' href='#Load'>¶</a></h1><p>First load it.</p></div></div>"
    "<div class='jp-Cell jp-CodeCell'><div class='jp-InputPrompt'>In [1]:</div><div class='highlight'>"
    "<pre>load()</pre></div><div class='jp-OutputPrompt'>Out[1]:</div><div class='jp-OutputArea-output'>"
    "<pre>5 rows</pre></div></div></main>"
)


def test_confluence_and_nbconvert_pages_show_their_notes_and_code():
    first, second = read_html(f"<h1>Backup</h1>{CONFLUENCE}").sections
    assert (first.anchor, text_of(first)) == ("a", "Beware\nNever stop it.")
    assert (second.anchor, text_of(second)) == ("b", "acme stop\nacme start")
    (section,) = read_html(NBCONVERT).sections
    assert " ".join(text_of(section).split()) == "First load it. load() 5 rows"
