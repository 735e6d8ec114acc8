"""A collection's display name: its title, the common part of its page titles, its front page, or its host."""

from pathlib import Path

from kit.reindexing import Jobs
from kit.workshop import BASE

from pipelines.indexing.site_name import SiteNames
from pipelines.store import Store

MODEL = ("--model", "hash:64", "--no-ray", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")


def test_collection_title_comes_from_host_front_page_titles_or_a_setting(jobs: Jobs, tmp_path: Path):
    def name(*flags: str) -> str:
        jobs.run("reindex", "--collection", jobs.name, *flags)
        with Store(jobs.url) as store:
            (row,) = store.collections()
            return SiteNames(store).get(row)

    listing = "<title>Directory listing for /</title><h1>Listing</h1><ul><li><a href='p0.html'>p0.html</a></ul>"
    (tmp_path / "index.html").write_text(listing)
    (tmp_path / "p0.md").write_text("# Start\n\nWords.")
    assert name("--path", str(tmp_path), "--base-url", BASE, "--max-delete-ratio", "1", *map(str, MODEL)) == "docs.test"
    (tmp_path / "index.html").unlink()
    (tmp_path / "index.md").write_text("# Welcome to Acme!\n\nAll about it.")
    assert name() == "Acme"
    for n in range(5):
        title = f"<title>Topic {n} — Acme 3</title>"
        (tmp_path / f"p{n}.html").write_text(f"{title}<h1>Topic {n}</h1><p>Words about topic {n}.</p>")
    assert name() == "Acme 3"
    assert name("--title", "The handbook") == "The handbook"
    assert name() == "The handbook"
