"""Files are matched with the URLs listed by their site, even if it renames them."""

import json
import zlib
from pathlib import Path

import pytest

from pipelines.indexing.crawling.seeds import parse_listing
from pipelines.indexing.folders.folder import FolderSettings

BASE = "https://d.test/docs/"


def matched(root: Path, files: dict[str, str], urls: list[str], style: str = "auto") -> dict[str, str]:
    """Return by file the URL (below the base) at which it is cited, for a site with `urls`."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text or "# Words\n")
    settings = FolderSettings(path=str(root), base_url=BASE, url_style=style).recognised()
    listing = settings.files()
    settings = settings.matched(listing.system, listing.paths, [BASE + url for url in urls])
    found = {path: settings.url_of(str(root / path)) for path in files}
    return {path: url.removeprefix(BASE) for path, url in found.items()}


@pytest.mark.parametrize(
    ("files", "urls"),
    [
        ({"a.md": "", "guide/index.md": ""}, ["a/", "guide/"]),  # another style
        ({"Guide/My Page.md": "", "Guide/B_c.md": ""}, ["guide/my-page", "guide/b-c"]),  # lower case, slugs
        ({"01-start/02-install.md": "", "(g)/x.mdx": ""}, ["start/install.html", "x"]),  # order, groups
        ({"content/en/a/x.md": "", "content/en/a/y.md": "", "content/en/z.md": ""}, ["a/x/", "a/y/", "z/"]),
        ({"topics/ai/x.md": "", "topics/y.md": "", "topics/ai/z.md": ""}, ["x.html", "y.html", "z.html"]),  # flat
        ({"src/a/x.md": "", "src/a/y.md": ""}, ["v2/a/x", "v2/a/y"]),  # a folder in front
        ({"t/apollo.md": "---\nurl: /examples/apollo_tutorial/\n---\n"}, ["examples/apollo_tutorial/"]),
        ({"t/a.md": "---\nslug: other\n---\n"}, ["t/other"]),
        ({"t/123.md": "---\ntitle: Getting started\n---\n"}, ["t/getting-started/"]),
        ({"t/123.md": "# How to & why\n"}, ["t/how-to--why/"]),
    ],
)
def test_file_is_found_at_its_published_url(files, urls, tmp_path):
    assert list(matched(tmp_path, files, [*urls, "unrelated/page", "about"]).values()) == urls


def test_file_not_listed_by_the_site_keeps_its_assumed_url(tmp_path):
    files = {"a.md": "", "b.md": "", "draft.md": "", "x/changes.md": "", "y/changes.md": ""}
    found = matched(tmp_path, files, ["a/", "b/", "blog/changes/"], style="directory")
    assert found == {
        "a.md": "a/",
        "b.md": "b/",
        "draft.md": "draft/",
        "x/changes.md": "x/changes/",
        "y/changes.md": "y/changes/",
    }  # fmt: skip  (two files may be that page: neither is taken for it)


def test_two_files_never_share_a_url(tmp_path):
    found = matched(tmp_path, {"en/a.md": "", "de/a.md": "", "en/b.md": "", "en/c.md": ""}, ["a", "b", "c"])
    assert (found["en/a.md"], found["de/a.md"]) == ("a", "de/a.md")


def test_page_and_folder_of_one_name_are_two_pages(tmp_path):
    files = {"a.html": "<h1>A</h1>", "a/index.html": "<h1>All of A</h1>", "b.html": "<h1>B</h1>"}
    assert matched(tmp_path, files, ["a.html", "a/index.html", "b"]) == {
        "a.html": "a.html", "a/index.html": "a/index.html", "b.html": "b"
    }  # fmt: skip


def test_links_lead_to_published_urls(tmp_path):
    (tmp_path / "a.md").write_text("[b](B_c.md#x)")
    (tmp_path / "B_c.md").write_text("# B")
    settings = FolderSettings(path=str(tmp_path), base_url=BASE).recognised()
    listing = settings.files()
    settings = settings.matched(listing.system, listing.paths, [f"{BASE}a", f"{BASE}b-c"])
    page = settings.page(str(tmp_path / "a.md"), f"{BASE}a", b"[b](B_c.md#x)", None)
    assert page.links == (f"{BASE}b-c",) and page.body == f"[b]({BASE}b-c#x)".encode()


INVENTORY = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# The rest is packed.\n" + zlib.compress(
    b"intro std:doc -1 a/intro.html The start\nx.y py:function 1 api.html#$ -\n"
)


@pytest.mark.parametrize(
    ("body", "places"),
    [
        (b"<urlset><url><loc>https://d.test/docs/a</loc></url></urlset>", ["https://d.test/docs/a"]),
        (b"https://d.test/docs/a\nhttps://d.test/docs/b\n", ["https://d.test/docs/a", "https://d.test/docs/b"]),
        (INVENTORY, ["a/intro.html", "api.html"]),
        (INVENTORY[:-20], ["a/intro.html"]),  # cut short
        (json.dumps({"docs": [{"location": "a/#x"}, {"location": "a/"}, {"location": 3}]}).encode(), ["a/"]),
        (b"# Docs\n- [A](https://d.test/docs/a.md): the start\n", ["https://d.test/docs/a.md"]),
        (b"<!doctype html><html><body>Not found</body></html>", []),
        (b"{broken", []),
        (b'{"docs": null}', []),
        (b'{"docs": 5}', []),
        (b'{"docs": [5, null, {"location": null}, {"url": "b/"}]}', ["b/"]),
        (b"[" * 100_000, []),
        (b'{"docs":' * 100_000, []),
        (b"# Sphinx inventory version 2\n", []),
        (b"\x00\xff\xfe", []),
        (b"", []),
    ],
)
def test_page_list_is_read_in_every_format_and_broken_ones_are_empty(body, places):
    assert parse_listing(body) == places
