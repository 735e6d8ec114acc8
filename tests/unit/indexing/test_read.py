"""Any bytes become a document, or an UnreadablePage with a reason, in limited time."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.reading.child_process import Child, ChildCrash, ChildNotStarted, ChildTimeout
from pipelines.indexing.reading.formats import MAX_BYTES
from pipelines.indexing.reading.links import page_pointers
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.tree import Document
from pipelines.records import IndexSettings, Page
from tests.kit.blocks import Block, blocks_of
from tests.kit.processes import alive, eventually
from tests.kit.sectioning import text_of


def read(
    body: bytes, content_type: str = "text/html", charset: str | None = None, url: str = "https://x.org/p"
) -> Document:
    return read_page(Page(url, body, content_type, charset))


def words(document: Document) -> str:
    return text_of(*document.sections)


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("Grüße".encode(), None),
        ("Grüße".encode("cp1252"), "iso-8859-1"),
        ("Grüße".encode("utf-8-sig"), "latin-1"),
        ("Grüße".encode("utf-16"), None),
        (b'<meta charset="windows-1252">' + "Grüße".encode("cp1252"), None),
        ("Grüße, schöne größere Bücher über Äpfel und Öfen. ".encode("cp1252") * 5, None),
        ("Grüße".encode(), "no-such-charset"),
        ("Gru\u0308ße".encode(), None),
    ],
)
def test_text_is_decoded_with_and_without_a_declared_encoding(body, charset):
    assert words(read(body, charset=charset)).startswith("Grüße")


def test_plain_text_joins_paragraphs_and_keeps_columns():
    document = read(b"One\nline.\n\n  a  1\n  b  2\n", "text/plain", url="https://x.org/notes.txt")
    assert document.title == "notes.txt"
    assert blocks_of(document.sections[0]) == (Block("prose", "One line."), Block("code", "  a  1\n  b  2"))


def test_plain_text_has_sections_at_underlined_lines_and_lists():
    text = b"Foo\n===\n\nIt runs.  It\nstops:\n- a\n- b\n\n***\nUse\n***\nCall it.\n\nName  Age\n---------\nAnn   3\n"
    document = read(text, "text/plain", url="https://x.org/notes.txt")
    assert document.title == "Foo"
    assert [(section.headings, blocks_of(section)) for section in document.sections] == [
        (("Foo",), (Block("prose", "It runs. It stops:\n- a\n- b"),)),
        (("Foo", "Use"), (Block("prose", "Call it."), Block("code", "Name  Age\n---------\nAnn   3"))),
    ]


def test_indented_prose_in_plain_text_is_prose():
    lines = (
        "   The server keeps each message until it has been read, and\n   deletes the old ones where the disk is full."
    )
    body = f"Messages\n\n{lines}\n\n     keep = 7d\n".encode()
    document = read(body, "text/plain", url="https://x.org/notes.txt")
    told = "The server keeps each message until it has been read, and deletes the old ones where the disk is full."
    assert blocks_of(document.sections[0]) == (
        Block("prose", f"Messages\n\n{told}"),
        Block("code", "keep = 7d"),
    )


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b" \n", "text/html", "empty"),
        (b"<html><script>x</script></html>", "text/html", "no text"),
        (b"<!-- a page -->", "text/html", "no text"),
        (b"</p></a>", "text/html", "no text"),
        (b"<!DOCTYPE html>", "application/xhtml+xml", "no text"),
        (b"x" * (MAX_BYTES + 1), "text/html", "too large"),
        (b"%PDF-1.4 nothing", "application/pdf", "broken PDF"),
        (bytes(range(256)) * 9 + b"\0" * 5000, "text/html", "binary data"),
    ],
)
def test_unreadable_page_says_why(body, content_type, reason):
    with pytest.raises(UnreadablePage, match=r"https://x\.org/p") as caught:
        read(body, content_type)
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    "listing",
    [
        '<h1>Source code for ray.data</h1><pre><a class="viewcode-back" href="x">[docs]</a>def read_csv(): ...</pre>',
        '<h1>Index</h1><div class="genindex-jumpbox">A | B</div><table><tr><td>read_csv</td></tr></table>',
        '<h1>Python Module Index</h1><div class="modindex-jumpbox">r</div><p>ray.data</p>',
    ],
)
def test_generated_listings_are_pages_without_sections(listing):
    document = read_page(Page("https://d.test/_modules/x.html", f"<main>{listing}</main>".encode()))
    assert document.sections == () and document.title


def test_deep_nesting_and_absurd_attributes_lose_no_text():
    assert words(read(b"<div>" * 50_000 + b"hello")) == "hello"
    attributes = b" ".join(b"a%d=1" % n for n in range(100_000))
    assert words(read(b"<p " + attributes + b">hello")) == "hello"
    assert words(read(b'<p a="<" ' + attributes + b">hello")).endswith("hello")


def test_words_before_the_first_tag_are_not_attributes():
    assert words(read(b"word " * 2000 + b"<p>end")).count("word") == 2000


def test_hanging_call_costs_its_limit_and_the_next_call_is_answered():
    with closing(Child()) as child:
        with pytest.raises(ChildTimeout, match=r"no result within 0\.2 s"):
            child(sum, range(10**12), 0.2)
        assert child(sum, range(3), 5) == 3
        assert child(len, range(3), 5) == 3


def test_waiting_call_ends_eventually():
    with closing(Child()) as child, pytest.raises(ChildTimeout):
        child(time.sleep, 600, 0.01)


def test_time_used_by_other_processes_costs_no_page():
    with closing(Child()) as child:
        assert child(time.sleep, 0.6, 0.5) is None


def test_call_that_kills_its_process_says_how_it_died():
    with closing(Child()) as child, pytest.raises(ChildCrash, match="exit status 7"):
        child(os._exit, 7, 5)


def test_process_that_starts_while_it_is_closed_is_ended(monkeypatch):
    start, starting, closed, started = subprocess.Popen, threading.Event(), threading.Event(), []

    def start_late(*args, **options):
        starting.set()
        closed.wait(30)
        started.append(start(*args, **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start_late)
    child = Child()
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(child, abs, -1, 5)
        assert starting.wait(30)
        child.close()
        closed.set()
        with pytest.raises(ChildNotStarted, match="closed"):
            call.result(60)
    assert started[0].returncode == -signal.SIGKILL


OWNER = """
import os, sys
sys.path.insert(0, {root!r})
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.records import Page
reader = PageReader(read_page)
reader(Page("https://x.org/", b"hello"))
print(reader.child._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_reading_process_ends_with_its_killed_owner():
    root = str(Path(__file__).parents[3])
    done = subprocess.run([sys.executable, "-c", OWNER.format(root=root)], capture_output=True, text=True, check=False)
    eventually(lambda: not alive(int(done.stdout)), "the reading process has ended")


def test_reader_returns_the_result_of_read_page():
    page = Page("https://x.org/", b"<main><h1 id=a>A</h1><p>text</p></main>")
    reader = PageReader(read_page)
    assert reader(page) == read_page(page)
    with pytest.raises(UnreadablePage, match="empty"):
        reader(Page("https://x.org/", b""))


@pytest.mark.parametrize(("head", "text", "language"), [
    ("", "Mit diesem Befehl wird die Datei gelesen.\n\nWie das geht, steht im `README`.\n\n> Read the file.", "de"),
    ("", "This reads a file.\n\nIch bin ein Zitat und nicht der Text.\n\nThen it is closed.", "en"),
    ("", "`ls -l`", ""),
    ("---\nlang: fr\n---\n", "This is not translated yet.", "fr"),
])  # fmt: skip
def test_page_without_a_declared_language_gets_that_of_most_paragraphs(head, text, language):
    page = Page("https://x.org/a.md", f"{head}# A\n\n{text}\n".encode(), content_type="text/markdown")
    assert read_page(page).language == language


def test_too_slow_chunking_makes_a_page_unreadable_and_the_next_is_read():
    slow = b"<p>" + b" ".join(str(number).encode() for number in range(600_000)) + b"</p>"
    page = Page("http://x/", b"<html lang=en><title>T</title><main><h1 id=top>Top</h1><p>Some text.</p></main></html>")
    child, cut = Child(), PageCutter(IndexSettings(model="hash:16", dimension=16))
    reader, impatient = PageReader(cut, child=child), PageReader(cut, patience=0.02, child=child)
    first = reader(page)
    assert (first.title, first.language, first.sections) == ("Top", "en", 1)
    assert [(chunk.anchor, chunk.text) for chunk in first.chunks] == [("top", "Some text.")]
    with pytest.raises(UnreadablePage, match="too long"):
        impatient(Page("http://x/slow", slow))
    assert reader(page) == first


def test_links_are_absolute_unique_and_valid():
    html = b"""<base href="/docs/"><a href="a.html#x">1</a><a href='a.html'>2</a><a rel="nofollow" href="n.html">3</a>
    <a href="mailto:a@b.c">4</a><!-- <a href="c.html"> --><script>"<a href='s.html'>"</script>
    <a title=">" href=b?x=1&amp;y=2>5</a>
    <a href="http://[">6</a><a href="javascript:x()">7</a><A HREF="//other.org/p q">8</A><frame src=f.html>
    <iframe data-src="no.html" src="g.html"></iframe><META HTTP-EQUIV=Refresh content="0; URL='m.html?a=1'">
    <meta http-equiv="refresh" content="300"><meta name="x" content="y=n.html"><base href="/n/">"""
    assert page_pointers(Page("https://x.org/p/q", html))[0] == (
        "https://x.org/docs/a.html", "https://x.org/docs/b?x=1&y=2", "https://other.org/p%20q",
        "https://x.org/docs/f.html", "https://x.org/docs/g.html", "https://x.org/docs/m.html?a=1"
    )  # fmt: skip


def test_canonical_is_absolute_and_differs_from_the_page():
    page = Page("https://x.org/p", b'<link rel="canonical" href="/q#frag">')
    assert page_pointers(page)[1] == "https://x.org/q"
    assert page_pointers(Page("https://x.org/q", page.body))[1] is None
    assert page_pointers(Page("https://x.org/q", b'<link rel="canonical" href="file:///x">'))[1] is None


def test_links_of_markdown_are_those_that_a_reader_can_follow():
    page = Page(
        "https://x.org/d/a.md",
        b"[a](b.md 'title') ![c](c.png) [d](<e f.md>) [g](h_(i).md)([x](y.md)) [r][1] `[no](code.md)`\n\n"
        b"```md\n[no](fence.md)\n```\n\n~~~~\n[no](tilde.md)\n```\n~~~~\n\n[1]: ref.md\n[2]: <ref 2.md> 'x'\n",
        content_type="text/markdown",
    )
    found = [url.removeprefix("https://x.org/d/") for url in page_pointers(page)[0]]
    assert found == ["b.md", "c.png", "e%20f.md", "h_(i).md", "y.md", "ref.md", "ref%202.md"]


@pytest.mark.parametrize("start", [b"<a", b'<a "', b"<!--", b"<a href='x", b"<script>"])
def test_hostile_pages_do_not_delay_the_search_for_links(start):
    found = page_pointers(Page("https://x.org/", start * 1_000_000))  # would take hours in quadratic time
    assert found == ((), None)


@pytest.mark.parametrize(
    "name", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "rot13", "undefined"]
)
@pytest.mark.parametrize("declared", ["by the server", "by the page"])
def test_codec_that_is_no_web_charset_is_not_used(name, declared):
    meta = f'<meta charset="{name}">' if declared == "by the page" else ""
    body = f"{meta}<p>{'Grüße aus Köln. ' * 4_000}".encode()
    assert words(read(body, charset=name if declared == "by the server" else None)).startswith("Grüße aus Köln.")


@pytest.mark.parametrize("declared", ["iso-8859-1", "windows-1252", "ISO-8859-2", "koi8-r"])
def test_utf8_declared_as_a_single_byte_charset_is_read_as_utf8(declared):
    assert words(read("<p>Größe “quoted” Größe</p>".encode(), charset=declared)).startswith("Größe “quoted”")
    assert words(read(f'<meta charset="{declared}"><p>Привет</p>'.encode())).startswith("Привет")


@pytest.mark.parametrize(
    ("name", "said"),
    [("latin1", "Größe"), ("ISO-8859-2", "Größe"), ("KOI8-R", "Привет"), ("Shift_JIS", "こんにちは"),
     ("EUC-KR", "안녕"), ("Big5", "你好"), ("gb2312", "你好"), ("utf-16", "Größe"), ("x-sjis", "Hello")],
)  # fmt: skip
def test_web_charsets_are_used(name, said):
    body = f"<p>{said} {said}</p>".encode("ascii" if name == "x-sjis" else name)
    assert words(read(body, charset=name)).startswith(said)
