"""Names with colons are not links: they stay in any answer, and quotations keep the whole text of a passage."""

from collections.abc import Iterable, Iterator
from os import environ
from pathlib import Path
from tarfile import open as open_tar
from urllib.parse import urlsplit

import pytest
from kit.kept_text import kept
from test_sanitizing import leads_out, out_of_any_chunks

from pipelines.answering.sanitizing.stream import sanitize
from pipelines.answering.synthesis.quotes import hide_numbers
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.records import IndexSettings, Page

ROOT = Path(__file__).parents[3]
DATA = Path(environ.get("RAYDEX_DATA") or ROOT.parent / "shared" / "data")
ARCHIVE = DATA / "ray-docs-html.tar.xz"
DEBIAN = Path("/usr/share/doc/python3.11/html/library")
EVERY = 100  # one of so many pages of a large site is tested

FRAMES = [
    "{}", "Set {} there.", "Is it {}?", "- **{}**, too", "`{}`", "```rust\n{}\n```",
    "| a | b |\n| --- | --- |\n| {} | c |",
]  # fmt: skip
NAMES = [
    "core.net.http:cacert_path", "tauri_plugin_http::init()", "http::Response", '"http:default"',
    "http:default,http:deny", "Result<http::Response>", "use tauri_plugin_http::reqwest::{Client, Url};",
    "reqwest::get(http::Uri::from_static(x))", "javascript:install:esbuild", '{"data:": 1}', "data:image/png;base64",
    "meta-data:", "ws:connect", "https:enabled=true", "std::vector::push_back", "javascript: the language",
    "core.http:tls.verify", "x-ftp:mode", "vbscript::Name", "(data:)",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", FRAMES)
def test_name_with_colons_is_kept_in_any_answer(name: str, frame: str) -> None:
    text = frame.format(name)
    assert out_of_any_chunks(text) in (text, text.replace("<http::Response>", "`<http::Response>`"))


@pytest.mark.parametrize(("written", "leaves"), [
    ("A vector<std::string> and a map[key]: std::string.", "A vector`<std::string>` and a map[key]: std::string."),
    ("vector\\<std::string> and f\\[x\\](http:y)", None),
    ("```\nhandlers[name](event::of(a(b(c))))\n```", None),
    ("```\n[x](<a b//evil.example>)\n```", "```\n[x] (<a b//evil.example>)\n```"),
    ('```xml\n<Key Path="Software\\Company" Note="a &amp; b &lt; c">\n```', None),
])  # fmt: skip
def test_code_in_prose_and_listings_is_kept(written: str, leaves: str | None) -> None:
    assert out_of_any_chunks(written) == (leaves or written)


LINKS = [
    "http:://evil.example", "http::\\\\evil.example", "http:[9]//evil.example", "http:x@evil.example",
    "http:evil。example", "http:%65vil.example", "ws:evil.example", "javascript:alert`evil.example`",
    "javascript:a;location='//evil.example'", "data:,evil.example", "data:text/html,evil", "[r]: http::evil:x\n\n[r]",
    "[a\n\\[r]: //evil.example", "> 1. [r]: //evil.example", "<http:evil.example>", "[x](http:evil)",
    "```\n[x](a(b(c))//evil.example)\n```", '```\n<img src="\\\\evil.example">\n```',
    '```\n<img src="/\t/evil.example">\n```', "core.https://evil.example", "` \\<img src=//evil.example>`",
    "<b>\\<img src=//evil.example></b>", "f\\[x\\](//evil.example)", "a-http:evil.example/x",
]  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_link_does_not_pass_as_a_name(link: str) -> None:
    for text in (link, f"Look:\n\n{link} and [1].", f"- {link}"):
        assert not leads_out(out_of_any_chunks(text)), out_of_any_chunks(text)


WORDS = [
    "javascript:void(0)", "data:text/plain,x", "http:default.json", "mailto:a@b.example", "https:evil.example",
    "data:,x",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_word_of_a_passage_is_shown_but_not_linked(word: str) -> None:
    for text in (f"`{word}`", f"```\n{word}\n```", f"Type {word} there.", f"See [it]({word})."):
        said = sanitize(text, 1, ["https://own.example"], [text])
        assert word in said
        assert f"]({word})" not in said
    assert word not in sanitize(f"See [it]({word}).", 1, ["https://own.example"])


# ------------------------------------------------------------------------------------- whole indexes


def golden_pages() -> Iterator[Page]:
    for path in sorted((ROOT / "tests" / "data" / "pages").glob("*.html")):
        yield Page(f"https://docs.example.org/{path.name}", path.read_bytes(), "text/html")


def own_documentation() -> Iterator[Page]:
    for path in sorted((ROOT / "docs").rglob("*.md"))[::8]:
        yield Page(f"https://docs.example.org/{path.name}", path.read_bytes(), "text/markdown")


def ray_documentation() -> Iterator[Page]:
    if not ARCHIVE.exists():
        pytest.skip(f"{ARCHIVE} is missing")
    with open_tar(ARCHIVE) as archive:
        members = [each for each in archive if each.name.endswith(".html")]
        for member in members[::EVERY]:
            file = archive.extractfile(member)
            assert file
            yield Page(f"https://docs.ray.io/{member.name}", file.read(), "text/html")


def python_documentation() -> Iterator[Page]:
    if not DEBIAN.is_dir():
        pytest.skip(f"{DEBIAN} is missing: the package python3.11-doc has it")
    for path in sorted(DEBIAN.glob("*.html"))[::EVERY]:
        yield Page(f"https://docs.python.org/3.11/library/{path.name}", path.read_bytes(), "text/html")


def changed_chunks(pages: Iterable[Page]) -> Iterator[str]:
    """Yield each chunk of `pages` that loses more than links to other hosts when it is quoted."""
    cut, count = PageCutter(IndexSettings()), 0
    for page in pages:
        host = "://".join(urlsplit(page.url)[:2])
        for chunk in cut(page).chunks:
            text, count = hide_numbers(chunk.text), count + 1
            said = sanitize(text, 0, [host], [text])
            if kept(said, host) != kept(text, host):
                yield f"{chunk.url}#{chunk.anchor}\n{text}\n---\n{said}"
    assert count > 50


@pytest.mark.parametrize("pages", [
    golden_pages,
    pytest.param(own_documentation, marks=pytest.mark.slow),
    pytest.param(ray_documentation, marks=pytest.mark.slow),
    pytest.param(python_documentation, marks=pytest.mark.slow),
])  # fmt: skip
def test_quotation_loses_only_links(pages: type[Iterator[Page]]) -> None:
    assert not list(changed_chunks(pages()))
