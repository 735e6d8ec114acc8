"""Text repeated on most pages of a site is kept out of its index, and later runs work as if it had never existed."""

from pathlib import Path

import pytest
from kit.reindexing import Jobs
from kit.web import Site
from kit.workshop import BASE

from pipelines.store import Store
from serve.mcp.pages import PageShelf

MODEL = ("--model", "hash:64", "--no-ray", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")
BANNER = "<div><h1>Acme 3.2 documentation</h1></div><div>Acme. Fast and small.</div>"


def page(number: int, links: str = "") -> str:
    return (
        f"<html><head><title>Topic {number} — Acme 3.2</title></head><body>{BANNER}<div><h1>Topic {number}</h1>"
        f"<p>Words about topic {number} and nothing else.</p>{links}</div></body></html>"
    )


def write(folder: Path, pages: range) -> None:
    folder.mkdir(exist_ok=True)
    for number in pages:
        (folder / f"p{number:02}.html").write_text(page(number))


@pytest.fixture
def folder(jobs: Jobs, tmp_path: Path) -> Path:
    """Return a folder of twelve pages with a banner, and the flags that index it."""
    write(tmp_path / "site", range(12))
    jobs.common = ["--path", tmp_path / "site", "--base-url", BASE, *MODEL]
    return tmp_path / "site"


def test_banner_is_omitted_and_reported_and_a_page_keeps_its_own_title(jobs, folder):
    summary = jobs.reindex().summary
    assert sorted(jobs.texts().values()) == sorted(f"Words about topic {n} and nothing else." for n in range(12))
    (layout,) = summary["layouts"].values()
    assert layout["titles"] == ["Acme 3.2 documentation"] and layout["lines"] == ["Acme. Fast and small."]
    (status,) = jobs.run("status").summary["collections"].values()
    assert status["layouts"] == summary["layouts"]
    with Store(jobs.url) as store:
        read = PageShelf(store).read([store.live_index(jobs.name)], f"{BASE}p03.html")
    assert read.title == "Topic 3" and "Fast and small" not in read.text

    rows = jobs.rows()  # later runs read and embed only new content
    again = jobs.reindex().summary
    assert again["chunks"] == {"total": 12, "embedded": 0, "reused": 0, "written": 0, "deleted": 0}
    write(folder, range(12, 13))
    more = jobs.reindex().summary
    assert more["chunks"] == {"total": 13, "embedded": 1, "reused": 0, "written": 1, "deleted": 0}
    assert rows.items() <= jobs.rows().items()


def test_index_that_contains_the_layout_is_repaired_from_stored_pages(jobs, folder):
    for number in range(7, 12):
        (folder / f"p{number:02}.html").unlink()
    assert jobs.reindex().summary["chunks"]["total"] == 14  # too few pages to decide
    write(folder, range(12))
    assert jobs.reindex().summary["chunks"]["total"] == 12
    assert not any("Fast and small" in text for text in jobs.texts().values())


def test_first_crawl_omits_the_layout_and_embeds_none_of_it(jobs):
    links = {n: "".join(f"<a href='/p{to:02}.html'>more</a>" for to in range(9 * n, 9 * n + 9)) for n in range(12)}
    pages = {f"/p{number:02}.html": page(number, links.get(number, "")) for number in range(100)}
    with Site({"/": page(100, links[0]), **pages}) as site:
        jobs.common = ["--start-url", site.url + "/", "--allow-private", *MODEL]
        summary = jobs.reindex().summary
        assert summary["chunks"]["total"] == summary["chunks"]["embedded"] == 101 and summary["layouts"]
        assert not any("Fast and small" in text for text in jobs.texts().values())
        assert jobs.reindex().summary["chunks"]["embedded"] == 0
