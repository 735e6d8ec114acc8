"""Document formats are declared once, for the crawler, the folder source and the reader."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.indexing.crawling.reply import HttpReply, page_from_reply, page_refusal, parse_content_type
from pipelines.indexing.crawling.scope import BINARY_SUFFIXES, looks_binary
from pipelines.indexing.folders.folder import FolderSettings
from pipelines.indexing.reading import formats
from pipelines.indexing.reading.read import read_page, reader_of
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import Page

ROOT = Path(__file__).parents[3]
SUFFIXES = [(entry, suffix) for entry in formats.FORMATS for suffix in entry.suffixes]
TYPES = [(entry, kind) for entry in formats.FORMATS for kind in entry.media_types]


@pytest.mark.parametrize(("entry", "suffix"), SUFFIXES, ids=[suffix for _, suffix in SUFFIXES])
def test_suffix_has_one_meaning_everywhere(entry, suffix, tmp_path):
    url = f"https://d.test/page.{suffix}"
    assert looks_binary(url) is not entry.linked
    for vague in formats.VAGUE_TYPES:
        assert parse_content_type(vague, url) == (entry.media_type, None)
        assert formats.format_of_page(Page(url, b"words", vague)) is entry
        assert page_from_reply(HttpReply(url, 200, {"content-type": vague}, b"words"), None).state == "ok"
    path = tmp_path / f"page.{suffix.upper()}"
    path.write_text("words")
    folder = FolderSettings(path=str(tmp_path), base_url="https://d.test/")
    assert folder.files().paths == [str(path)]
    page = folder.page(str(path), url, b"words", None)
    assert page.content_type == entry.media_type
    assert formats.format_of_page(Page(url, b"words", page.content_type)) is entry


@pytest.mark.parametrize(("entry", "kind"), TYPES, ids=[kind for _, kind in TYPES])
def test_media_type_has_one_meaning_everywhere(entry, kind):
    url = "https://d.test/page"
    assert page_refusal({"content-type": kind}, url) == ""
    assert parse_content_type(kind, url)[0] == entry.media_type
    assert formats.format_of_page(Page(url, b"words", kind)) is entry
    assert page_from_reply(HttpReply(url, 200, {"content-type": kind}, b"words"), None).content_type == entry.media_type


@pytest.mark.parametrize("kind", ["image/png", "application/zip"])
def test_unknown_type_is_refused_everywhere(kind):
    url = "https://d.test/page"
    assert kind in page_refusal({"content-type": kind}, url)
    assert page_from_reply(HttpReply(url, 200, {"content-type": kind}, b"words"), None).state == "skipped"
    with pytest.raises(UnreadablePage, match="unsupported type"):
        read_page(Page(url, b"words", kind))


@pytest.mark.parametrize(("entry", "kind"), TYPES, ids=[kind for _, kind in TYPES])
def test_size_limit_comes_from_the_format(entry, kind):
    with pytest.raises(UnreadablePage, match=f"at most {entry.max_bytes:,} are read"):
        read_page(Page("https://d.test/page", b"x" * (entry.max_bytes + 1), kind))


def test_larger_page_gets_more_time():
    assert formats.HTML.limit_s(0) == formats.HTML.timeout_s
    # SQLite's page of requirements, with its time on an idle core
    assert formats.HTML.limit_s(1_850_000) > 5 * 0.65 * 1.85


def test_every_reader_is_an_existing_function():
    assert all(callable(reader_of(entry)) for entry in formats.FORMATS)


def test_table_is_loaded_without_any_parser():
    parsers = {"docutils", "lxml", "markdown_it", "nbformat", "pypdfium2"}
    code = f"import sys, pipelines.indexing.reading.formats; print(sorted({parsers} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_suffix_or_type_belongs_to_two_formats():
    assert len({suffix for _, suffix in SUFFIXES}) == len(SUFFIXES)
    assert len({kind for _, kind in TYPES}) == len(TYPES)
    assert BINARY_SUFFIXES.isdisjoint(suffix for _, suffix in SUFFIXES)


def test_no_other_file_of_indexing_names_a_suffix_or_a_type():
    """The comparisons above can only agree if no other code has a table of its own."""
    own = {kind for _, kind in TYPES} | {f".{suffix}" for _, suffix in SUFFIXES}
    named = [
        f"{path.name}:{node.lineno}: {node.value}"
        for path in (ROOT / "pipelines" / "indexing").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text() if path != Path(formats.__file__) else ""))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() in own
    ]
    assert named == []


def test_first_bytes_and_suffixes_tell_the_format():
    assert formats.format_of_body(b"\xef\xbb\xbf\n%PDF-1.7") is formats.PDF
    assert formats.format_of_page(Page("https://d.test/a.html", b"%PDF-1.7", "text/html")) is formats.PDF
    assert formats.format_of_body(b"<p>") is None
    assert formats.format_of_body(b"<!-- a --> <?xml version='1.0'?>\n<!-- b --><HTML>") is formats.HTML
    assert formats.format_of_body(b"<!-- a <html>") is None
    assert formats.format_of_name("a.rst.txt") is formats.format_of_name("b.RST")
    assert formats.format_of_name("1.2.txt") is formats.TEXT
    assert formats.format_of_name("README") is None and formats.format_of_name("docs.md/html") is None
    assert formats.format_of_type(" Text/HTML") is formats.FORMATS[0]
    assert formats.format_of_page(Page("https://d.test/a", b"words", "")) is formats.TEXT
    assert formats.accept_header() == (
        "text/html,application/xhtml+xml,application/pdf;q=0.9,text/x-rst;q=0.8,"
        "text/x-asciidoc;q=0.8,text/plain;q=0.8,*/*;q=0.1"
    )
