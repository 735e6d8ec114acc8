"""What readers call a collection: its title, what its pages' titles share, its front page, its host."""

from pathlib import Path

import pytest
from kit.reindexing import Jobs
from kit.workshop import BASE

from pipelines.indexing.site_name import SiteNames
from pipelines.store import Store

MODEL = ("--model", "hash:64", "--no-ray", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")
LISTING = (
    "<title>Directory listing for /</title><h1>Directory listing for /</h1><ul><li><a href='p0.html'>p0.html</a></ul>"
)


def name_of(jobs: Jobs, folder: Path, pages: dict[str, str], *flags: str) -> str:
    folder.mkdir(exist_ok=True)
    for path, text in pages.items():
        (folder / path).write_text(text)
    jobs.common = ["--path", folder, "--base-url", BASE, *MODEL]
    jobs.reindex(*flags)
    with Store(jobs.url) as store:
        (row,) = store.collections()
        return SiteNames(store).get(row)


def page(n: int, title: str) -> str:
    return (
        f"<html><head><title>{title}</title></head><body><h1>Topic {n}</h1><p>Words about topic {n}.</p></body></html>"
    )


@pytest.mark.parametrize(
    ("pages", "name"),
    [
        ({f"p{n}.html": page(n, f"Topic {n} — Acme 3") for n in range(5)} | {"index.html": LISTING}, "Acme 3"),
        ({"p0.md": "# Start\n\nWords.", "index.md": "# Welcome to Acme!\n\nAll about it."}, "Acme"),
        ({"p0.md": "# Start\n\nWords.", "index.html": LISTING}, BASE.split("/")[2]),
    ],
    ids=["the titles' common end", "the front page's heading", "the host"],
)
def test_a_collection_is_called_as_its_site(jobs: Jobs, tmp_path: Path, pages: dict[str, str], name: str) -> None:
    assert name_of(jobs, tmp_path / "site", pages) == name


def test_a_title_that_was_set_comes_first_and_stays(jobs: Jobs, tmp_path: Path) -> None:
    pages = {"index.md": "# Acme\n\nAll about it."}
    assert name_of(jobs, tmp_path / "site", pages, "--title", "The handbook") == "The handbook"
    jobs.run("reindex", "--collection", jobs.name)
    with Store(jobs.url) as store:
        assert SiteNames(store).get(store.collections()[0]) == "The handbook"
