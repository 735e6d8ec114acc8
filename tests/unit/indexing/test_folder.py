"""A folder of files becomes pages: their URLs, the files that are read, and helpful errors."""

import os
from pathlib import Path

import pytest

from pipelines.indexing.folders.folder import FolderSettings, NoSuchFolder
from pipelines.indexing.reading.read import read_page
from pipelines.page.tree import leaves_of
from pipelines.records import Page, content_hash
from tests.kit.sectioning import text_of


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://docs.example.com/en", "guide/index.html", "https://docs.example.com/en/guide/index.html"),
        ("https://x/", "a b/c#d?e~(f).html", "https://x/a%20b/c%23d%3Fe~(f).html"),
    ],
)
def test_file_url_is_the_base_url_plus_its_path_quoted_if_necessary(base, path, url, tmp_path):
    for folder in (tmp_path, tmp_path / "docs [v2]"):  # an existing folder is no glob pattern
        folder.mkdir(exist_ok=True)
        assert FolderSettings(path=str(folder), base_url=base).url_of(f"{folder}/{path}") == url


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    (tmp_path / "en" / "_modules").mkdir(parents=True)
    (tmp_path / "en" / ".git").mkdir()
    for name in ("en/a.html", "en/_modules/b.md", "en/c.png", "en/.git/d.html"):
        (tmp_path / name).write_text("x")
    return tmp_path


def names(root: Path, path: str = "{}", **chosen: tuple[str, ...]) -> list[str]:
    """Return the found files by the part of their URLs after the base URL."""
    folder = FolderSettings(path=path.format(root), base_url="https://x/", **chosen)
    return [folder.url_of(file).removeprefix("https://x/") for file in folder.files()[1]]


def test_cyclic_links_are_not_followed_and_others_are(mirror, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "c.html").write_text("x")
    (elsewhere / "back").symlink_to(mirror)
    links = {"up": "..", "down": elsewhere, "d.html": "a.html", "e.html": "e.html", "f.html": "/no"}
    for name, target in links.items():
        (mirror / "en" / name).symlink_to(target)
    assert names(mirror) == ["en/_modules/b.md", "en/a.html", "en/d.html", "en/down/c.html"]


def test_non_utf8_file_name_is_reported(mirror: Path) -> None:
    Path(os.fsdecode(os.fsencode(mirror) + b"/caf\xe9.html")).write_text("x")
    with pytest.raises(NoSuchFolder, match=r"caf\\xe9.html' is not UTF-8: rename it"):
        names(mirror)


def test_readable_files_are_found_except_hidden_and_excluded_ones(mirror: Path) -> None:
    (mirror / "en" / "_sources").mkdir()
    (mirror / "en" / "_sources" / "a.rst.txt").write_text("x")
    assert names(mirror) == ["en/_modules/b.md", "en/a.html"]
    assert names(mirror, exclude=("_modules",)) == ["en/_sources/a.rst.txt", "en/a.html"]
    assert names(mirror, include=(r"\.html$",)) == ["en/a.html"]
    with pytest.raises(NoSuchFolder, match="include and exclude allow none of 3 URLs, such as 'https://x/en/"):
        names(mirror, include=("/fr/",))


@pytest.mark.parametrize(
    ("path", "urls"),
    [
        ("{}/en/**/*", ["_modules/b.md", "a.html"]),  # a glob is relative to its fixed part
        ("{}/en/a.html", ["a.html"]),  # a single file is relative to its folder
        ("file://{}/en", ["_modules/b.md", "a.html"]),  # a bucket is relative to its prefix
    ],
)
def test_urls_are_relative_to_the_base_folder_of_a_path(path: str, urls: list[str], mirror: Path) -> None:
    assert names(mirror, path) == urls


def test_missing_folder_is_an_error_with_its_name() -> None:
    with pytest.raises(NoSuchFolder, match="/nowhere/at/all"):
        names(Path("/nowhere/at/all"))


@pytest.mark.parametrize("url", ["docs.example.com", "ftp://x/", "https://x/?q=1", "https://x/#a"])
def test_base_url_that_cannot_be_cited_is_an_error(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="base URL"):
        FolderSettings(path=str(tmp_path), base_url=url)


def test_body_of_an_unchanged_file_is_not_loaded() -> None:
    folder, known = FolderSettings(path="/docs", base_url="https://x/"), content_hash(b"<p>x</p>", "text/html", None)
    assert folder.page("/docs/a.html", "https://x/a.html", b"<p>x</p>", known).body is None
    assert folder.page("/docs/a.html", "https://x/a.html", b"<p>y</p>", known).body == b"<p>y</p>"


LINKS = """A [page](../other/page.md#part "title") and [its neighbour](<next one.md>), [the first](/index.md),
[snake](a\\_b.md), [a picture](x.png), [there](https://elsewhere.test/a.md), [here](#part),
[a notebook](run.ipynb) and [outside](../../../README.md),
[a host to fill in](https://[your-host]/a.md) or [a name](//[your-host]/a.md).

[later]: ../other/page.md

`[code](../other/page.md)`

```md
[code](../other/page.md)
```
"""


def test_links_to_sources_lead_to_their_published_urls(tmp_path: Path) -> None:
    folder = FolderSettings(path=str(tmp_path), base_url="https://x.org/docs/", url_style="directory")
    file = f"{tmp_path}/guide/start.md"
    text = (folder.page(file, "https://x.org/docs/guide/start/", LINKS.encode(), None).body or b"").decode()
    assert '[page](https://x.org/docs/other/page/#part "title")' in text
    assert (
        "[the first](https://x.org/docs/),\n[snake](https://x.org/docs/guide/a_b/), [a picture](x.png), "
        "[there](https://elsewhere.test/a.md), [here](#part)" in text
    )
    assert "[a notebook](https://x.org/docs/guide/run/) and [outside](../../../README.md)" in text
    assert "(https://[your-host]/a.md) or [a name](//[your-host]/a.md)" in text
    assert "[later]: https://x.org/docs/other/page/\n" in text
    assert text.count("[code](../other/page.md)") == 2
    kept = folder.model_copy(update={"url_style": "keep"})
    assert kept.page(file, "https://x.org/docs/guide/start.md", LINKS.encode(), None).body == LINKS.encode()


@pytest.mark.parametrize(
    ("config", "name", "source", "links"),
    [
        ("conf.py", "a/b.rst", "See :doc:`the guide <c>`, :doc:`/d/index`, ``:doc:`c```, :doc:`no <https://e.org>`.",
         {"the guide": "a/c.html", "/d/index": "d/"}),
        ("conf.py", "a/b.md", "See {doc}`the guide <c>` and {doc}`/d/index`, `{doc}`.",
         {"the guide": "a/c.html", "/d/index": "d/"}),
        ("_quarto.yml", "a/b.qmd", "See [the guide](c.qmd#part).", {"the guide": "a/c.html#part"}),
        ("antora.yml", "modules/m/pages/a/b.adoc",
         ("xref:c.adoc[One], xref:./c.adoc#part[two], xref:n:d.adoc[three], xref:ROOT:index.adoc[four], "
         "xref:other::e.adoc[five], xref:#part[six], xref:2.0@f.adoc[seven], xref:{a}.adoc[eight]."),
         {"One": "m/c.html", "two": "m/a/c.html#part", "three": "n/d.html", "four": ""}),
    ],
)  # fmt: skip
def test_names_of_pages_lead_to_their_published_urls(config, name, source, links, tmp_path: Path) -> None:
    (tmp_path / config).write_text("project = 'x'" if config == "conf.py" else "name: x")
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text("")
    folder = FolderSettings(path=str(tmp_path), base_url="https://x.org/").recognised()
    page = folder.page(str(file), "https://x.org/p", source.encode(), None)
    document = read_page(Page(page.url, page.body or b"", page.content_type))
    spans = [span for leaf in leaves_of(document.sections[0].content) for span in leaf.spans]
    assert {span.text: span.target for span in spans if span.target} == {
        words: f"https://x.org/{url}" for words, url in links.items()
    }


@pytest.mark.parametrize(
    ("config", "settings", "name", "source", "shown"),
    [
        ("conf.py", "project = 'A'\nrelease = '4.2'\nrst_epilog = '.. _site: https://a.org'\nrst_prolog = f'x'\n",
         "page.rst", ":orphan:\n\nTitle\n=====\n\nAcme |release|, see site_.\n", "Acme 4.2, see site."),
        ("antora.yml", "name: acme\nasciidoc:\n  attributes: {product: Acme@, major: 4, url: x.org}\n",
         "modules/ROOT/pages/page.adoc", "= Title\n:url: y.org\n\n{product} {major}: {url}.\n", "Acme 4: y.org."),
        ("antora.yml", "name: acme\nversion: 3.9\nasciidoc:\n  attributes: {least: 1.5, a: true, b: false, c: ~}\n",
         "modules/ROOT/pages/page.adoc",
         "= Title\n\nifdef::a,b[{page-component-name} {page-component-version}, {least}{a}]\nifdef::b,c[no]\n",
         "acme 3.9, 1.5"),
    ],
)  # fmt: skip
def test_values_from_the_configuration_are_filled_in(config, settings, name, source, shown, tmp_path: Path) -> None:
    (tmp_path / config).write_text(settings)
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    folder = FolderSettings(path=str(tmp_path), base_url="https://x.org/").recognised()
    body = folder.page(str(file), "https://x.org/page.html", source.encode(), None).body or b""
    document = read_page(Page("https://x.org/page.html", body, folder.media_type_of(str(file))))
    assert document.title == "Title" and text_of(*document.sections) == shown
