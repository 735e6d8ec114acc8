"""Sections of real documentation: Ray's (Sphinx), Python's (Sphinx) and Postgres' (DocBook), intact and mangled."""

import json
import os
import random
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from lxml import etree

from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.tree import Document
from pipelines.records import Page
from tests.kit.blocks import blocks_of

DATA = Path(os.environ.get("RAYDEX_DATA") or Path(__file__).parents[4] / "shared" / "data")
ARCHIVE = DATA / "ray-docs-html.tar.xz"
PYTHON = Path("/usr/share/doc/python3.11/html")
POSTGRES = Path("/usr/share/doc/postgresql-doc-15/html")

pytestmark = pytest.mark.slow

needs_ray = pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"needs {ARCHIVE} (set RAYDEX_DATA)")
needs_python = pytest.mark.skipif(not PYTHON.is_dir(), reason="needs Debian's python3.11-doc")
needs_postgres = pytest.mark.skipif(not POSTGRES.is_dir(), reason="needs Debian's postgresql-doc-15")


@cache
def ray_pages() -> dict[str, bytes]:
    """Return the pages of the Ray documentation by URL."""
    with tarfile.open(ARCHIVE) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive if member.name.endswith(".html"))
        return {f"https://docs.ray.io/{name}": file.read() for name, file in files if file}


def asked_anchors() -> dict[str, set[str]]:
    """Return by URL the anchors of the 5,727 questions."""
    anchors: dict[str, set[str]] = defaultdict(set)
    for question in json.loads((DATA / "embedding_qa.json").read_text()):
        url, _, anchor = question["source"].partition("#")
        anchors[url].add(anchor)
    return anchors


def is_empty_in_the_original(body: bytes, anchor: str) -> bool:
    """Return whether the section `anchor` has only links besides its heading and subsections."""
    tree = etree.fromstring(body, etree.HTMLParser(encoding="utf-8"))
    (section,) = tree.xpath("//section[@id=$anchor]", anchor=anchor)
    own = section.xpath(
        ".//text()[ancestor::section[1]/@id=$anchor][not(ancestor::h1|ancestor::h2|ancestor::h3|ancestor::h4|ancestor::h5"
        "|ancestor::h6|ancestor::a|ancestor::div[contains(@class,'toctree-wrapper')]|ancestor::script|ancestor::style)]",
        anchor=anchor,
    )
    return not "".join(own).strip()


def read(url: str, body: bytes) -> Document:
    return read_page(Page(url, body))


def text(document: Document) -> str:
    return "\n".join(block.text for section in document.sections for block in blocks_of(section))


@needs_ray
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_every_section_in_the_question_set_has_text_under_its_anchor(every):
    missing, asked = [], asked_anchors()
    for url, anchors in sorted(asked.items())[::every]:
        found = {anchor for section in read(url, ray_pages()[url]).sections for anchor in section.anchors}
        missing += [(url, anchor) for anchor in anchors - found]
    assert sum(map(len, asked.values())) == 5727
    assert [place for place in missing if not is_empty_in_the_original(ray_pages()[place[0]], place[1])] == []


@needs_ray
def test_no_ray_page_shows_its_page_frame():
    pages = ray_pages()
    signs = ("Was this helpful?", "¶", "By The Ray Team", "Permalink to this", "Toggle navigation", "[source]\n")
    for url in random.Random(7).sample(sorted(url for url in pages if "/genindex" not in url), 150):
        try:
            document = read(url, pages[url])
        except UnreadablePage:
            continue
        found = text(document)
        assert [sign for sign in signs if sign in found] == [], url


@needs_ray
def test_source_listings_and_the_general_index_have_no_sections():
    base, pages = "https://docs.ray.io/en/master/", ray_pages()
    for path in ("_modules/ray/data/dataset.html", "genindex.html", "py-modindex.html"):
        assert read(base + path, pages[base + path]).sections == ()
    assert read(f"{base}data/key-concepts.html", pages[f"{base}data/key-concepts.html"]).sections


@needs_python
def test_python_entries_end_at_their_own_anchor():
    document = read("https://p.org/library/os.path.html", (PYTHON / "library/os.path.html").read_bytes())
    (join,) = [section for section in document.sections if section.anchor == "os.path.join"]
    assert join.headings[-1] == "os.path.join"
    assert blocks_of(join)[0].text == "os.path.join(path, *paths)"
    assert blocks_of(join)[1].text.startswith("Join one or more path segments intelligently.")
    assert document.language == "en"


@needs_postgres
def test_docbook_pages_are_split_by_chapter_and_setting():
    document = read("https://p.org/r.html", (POSTGRES / "runtime-config-resource.html").read_bytes())
    (setting,) = [section for section in document.sections if section.anchor == "GUC-WORK-MEM"]
    assert setting.anchors == ("RUNTIME-CONFIG-RESOURCE", "RUNTIME-CONFIG-RESOURCE-MEMORY", "GUC-WORK-MEM")
    assert setting.headings == ("20.4. Resource Consumption", "20.4.1. Memory", "work_mem (integer)")
    assert not any("Note" in section.headings for section in document.sections)
    reference = read("https://p.org/s.html", (POSTGRES / "sql-createindex.html").read_bytes())
    synopsis = next(section for section in reference.sections if section.headings[-1] == "Synopsis")
    assert synopsis.anchors == ("SQL-CREATEINDEX",)
    assert blocks_of(synopsis)[0].kind == "code"


@pytest.mark.parametrize(
    "folder",
    [pytest.param(PYTHON / "library", marks=needs_python), pytest.param(POSTGRES, marks=needs_postgres)],
)
def test_hardly_a_word_of_a_manual_is_lost(folder: Path):
    """Compares the words in all paragraphs and listings of the pages with the words in their sections."""
    for path in random.Random(3).sample(sorted(folder.glob("[a-s]*.html")), 40):
        tree = etree.fromstring(path.read_bytes(), etree.HTMLParser(encoding="utf-8"))
        body = tree.xpath("//*[@role='main']") or tree.xpath("//body")
        parts = body[0].xpath(".//*[self::p or self::pre][not(ancestor::div[@class='toc'])]")
        told = {word for part in parts for word in re.findall(r"\w+", "".join(part.itertext()))}
        try:
            found = set(re.findall(r"\w+", text(read("https://p.org/", path.read_bytes()))))
        except UnreadablePage:
            found = set()
        assert len(told & found) >= 0.9 * len(told), path


ATTRIBUTES = b" ".join(b"a%d=1" % n for n in range(100_000))
INSERTED = (
    b"<!" * 100_000,
    b"<div>" * 50_000,
    b"<p " + ATTRIBUTES + b">",
    b"<!--" * 50_000,
    b"<a" * 100_000,
    b"\0\xed\xa0\x80&#0;&#xD800;" * 1000,
)


def mangle(page: bytes, way: int, dice: random.Random) -> bytes:
    """Return `page` broken in the `way`-th of 12 ways."""
    cut = dice.randrange(len(page))
    if way < len(INSERTED):
        return page[:cut] + INSERTED[way] + page[cut:]
    if way == 6:
        return page[cut:] if cut % 2 else page[:cut]
    if way == 7:
        return page.decode("utf-8").encode("utf-16" if cut % 2 else "utf-7")
    if way == 8:
        return re.sub(rb"</\w+>", b"", page)
    if way == 9:
        return page * (20_000_000 // len(page) + 1)
    share = 0.05 if way == 10 else 1.0
    return bytes(dice.randrange(256) if dice.random() < share else byte for byte in page[:30_000])


def mangled(pages: list[bytes], count: int) -> Iterator[bytes]:
    """Return `count` broken variants of real pages, always the same ones."""
    dice = random.Random(11)
    for number in range(count):
        yield mangle(dice.choice(pages), number % 12, dice)


@needs_ray
@pytest.mark.exhaustive
def test_200_mangled_pages_delay_nothing():
    pages = random.Random(5).sample(sorted(ray_pages().values()), 50)
    read_ones = 0
    reader = PageReader(read_page)
    reader(Page("https://x.org/", b"start"))
    for number, body in enumerate(mangled(pages, 200)):
        try:
            found = text(reader(Page(f"https://x.org/{number}", body)))
            read_ones += 1
        except UnreadablePage:
            found = ""
        assert "\0" not in found
        found.encode("utf-8")
    assert read_ones >= 120
