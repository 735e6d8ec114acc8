"""Pages whose URLs change are moved: the index has them once, and they do not count as vanished."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.reindexing import JobResult, Jobs, html_page, site_sections
from kit.web import Site as WebSite
from kit.workshop import BASE

pytestmark = pytest.mark.slow
MODEL = ("--no-ray", "--model", "hash:64")
Index = Callable[..., JobResult]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with ten pages of Markdown in two folders that link to one another."""
    for number, (name, sections) in enumerate(site_sections(10).items()):
        path = tmp_path / "docs" / ("guide" if number % 2 else "api") / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"\n## {title}\n\n{text} See [the next](../api/p00.md).\n" for title, text in sections.items())
        path.write_text(f"# Page {name}\n{text}")
    return tmp_path / "docs"


@pytest.fixture
def index(jobs: Jobs) -> Index:
    def run(folder: Path, *flags: object, base: str = BASE, code: int = 0) -> JobResult:
        done = jobs.run("reindex", folder, "--base-url", base, "--collection", "docs", *MODEL, *flags)
        assert done.code == code, done.messages
        return done

    return run


def moved_once(jobs: Jobs, done: JobResult, prefix: str, suffix: str, pages: int = 10) -> None:
    """Assert that the index has each page once, at its new URL, and that nothing was embedded for it."""
    urls = {source.partition("#")[0] for source in jobs.texts()}
    assert {url.startswith(prefix) and url.endswith(suffix) for url in urls} == {True}
    assert len(urls) == pages and done.summary["chunks"]["total"] == 3 * pages
    assert done.summary["chunks"]["embedded"] == 0
    assert (done.summary["published"], done.summary["warnings"]) == (True, [])
    assert "moved" in done.messages


def test_new_url_style_moves_the_pages(jobs: Jobs, folder: Path, index: Index) -> None:
    assert index(folder, "--url-style", "html").summary["chunks"]["total"] == 30
    done = index(folder, "--url-style", "directory")
    moved_once(jobs, done, "", "/")
    assert (done.summary["pages"]["deleted"], done.summary["chunks"]["reused"]) == (10, 30)
    moved_once(jobs, index(folder, "--url-style", "html"), "", ".html")  # and back


def test_new_base_url_moves_the_pages(jobs: Jobs, folder: Path, index: Index) -> None:
    index(folder, "--url-style", "html")
    moved_once(jobs, index(folder, "--url-style", "html", base=f"{BASE}latest/"), "latest/", ".html")
    done = index(folder, "--url-style", "html", base="https://other.test/docs/")
    moved_once(jobs, done, "docs/", ".html")


def test_moved_folder_takes_its_pages_along(jobs: Jobs, folder: Path, index: Index) -> None:
    index(folder)
    (folder / "guide").rename(folder / "handbook")
    done = index(folder)
    assert done.summary["pages"]["deleted"] == 5 and done.summary["chunks"]["total"] == 30
    elsewhere = folder.rename(folder.parent / "elsewhere")  # its pages keep their URLs
    done = index(elsewhere)
    assert (done.summary["pages"]["unchanged"], done.summary["chunks"]["total"]) == (10, 30)


def test_moved_pages_do_not_hide_lost_ones(jobs: Jobs, folder: Path, index: Index) -> None:
    index(folder, "--url-style", "html")
    for path in sorted((folder / "guide").iterdir())[:3]:
        path.unlink()
    done = index(folder, "--url-style", "directory", code=3)
    assert "3 of 10 pages have vanished" in done.messages
    urls = {source.partition("#")[0] for source in jobs.texts()}
    assert len(urls) == 10 and sum(url.endswith(".html") for url in urls) == 3  # the others are there once
    done = index(folder, "--url-style", "directory", "--max-delete-ratio", 1)
    assert done.summary["chunks"]["total"] == 21


def test_site_that_moves_to_another_host_moves_its_pages(jobs: Jobs) -> None:
    pages = site_sections(6)
    routes = {f"/{name}.html": html_page(name, sections) for name, sections in pages.items()}
    routes["/"] = html_page("Start", {"s": "The first page of all."}, links=tuple(f"/{name}.html" for name in pages))
    for number in (1, 2):
        with WebSite(dict(routes)) as web:
            done = jobs.run("reindex", f"{web.url}/", "--collection", "docs", "--allow-private", *MODEL)
            assert (done.code, done.summary["chunks"]["total"]) == (0, 19), done.messages
            assert done.summary["chunks"]["embedded"] == (19 if number == 1 else 0)
