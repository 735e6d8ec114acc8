"""A run limited to single pages reads and deletes only these, in the live index."""

from pathlib import Path

import psycopg
import pytest
from kit.reindexing import Jobs, html_page, site_sections, write_site
from kit.web import Answer, Site
from kit.workshop import BASE

pytestmark = pytest.mark.slow
FLAGS = ("--no-ray", "--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")
PAGES = site_sections(12)
EDITED = {"usage": "Said again, in other words."}


@pytest.fixture
def folder(jobs: Jobs, tmp_path: Path) -> Path:
    """Index a folder of twelve pages."""
    write_site(tmp_path / "site", PAGES)
    jobs.run("reindex", "--collection", "docs", "--path", tmp_path / "site", "--base-url", BASE, *FLAGS)
    return tmp_path / "site"


@pytest.fixture
def site(jobs: Jobs):
    """Index a site of twelve pages."""
    links = tuple(f"/docs/{name}.html" for name in PAGES)
    routes = {link: html_page(link, sections) for link, sections in zip(links, PAGES.values(), strict=True)}
    with Site({"/docs/": html_page("Start", {"start": "Where all begins."}, links=links), **routes}) as site:
        jobs.run("reindex", f"{site.url}/docs/", "--collection", "docs", "--allow-private", *FLAGS)
        site.requests.clear()
        yield site


def change(jobs: Jobs, changed: list[str] = (), deleted: list[str] = (), *flags):
    named = [*(["--changed", *changed] if changed else []), *(["--deleted", *deleted] if deleted else [])]
    return jobs.run("reindex", "docs", *named, *flags)


def test_single_page_is_refetched_and_an_unreadable_one_is_kept(jobs, site):
    for name in ("p03", "p04"):
        site.routes[f"/docs/{name}.html"] = html_page(f"/docs/{name}.html", PAGES[name] | EDITED)
    result = change(jobs, [f"{site.url}/docs/p03.html#usage"])
    assert site.paths() == ["/docs/p03.html"]
    assert (result.code, result.summary["pages"]["seen"], result.summary["pages"]["changed"]) == (0, 1, 1)
    assert (result.summary["chunks"]["embedded"], result.summary["revision"]) == (1, 2)
    texts = jobs.texts()
    assert texts["docs/p03.html#usage"] == EDITED["usage"]
    assert texts["docs/p04.html#usage"] == PAGES["p04"]["usage"]
    assert len(texts) == 37
    site.routes["/docs/p03.html"] = Answer("", 404)
    result = change(jobs, [f"{site.url}/docs/p03.html"])
    assert (result.code, result.summary["pages"]["deleted"]) == (0, 0)
    assert f"{site.url}/docs/p03.html is left as it is in the index: the server answered 404" in result.messages
    assert jobs.texts() == texts


def test_single_pages_of_a_folder_are_read_and_deleted(jobs, folder):
    write_site(folder, {name: PAGES[name] | EDITED for name in ("p03", "p04")} | {"new": {"purpose": "A new page."}})
    for name in ("p00", "p01"):
        (folder / f"{name}.html").unlink()
    for deleted in (1, 0):  # repeating the change does nothing
        result = change(jobs, [f"{BASE}p03.html", f"{BASE}new.html"], [f"{BASE}p00.html"])
        assert (result.code, result.summary["pages"]["deleted"], result.summary["revision"]) == (0, deleted, 2)
    texts = jobs.texts()
    left = {"new.html", *(f"{name}.html" for name in PAGES)} - {"p00.html"}
    assert {source.partition("#")[0] for source in texts} == left
    assert (texts["p03.html#usage"], texts["p04.html#usage"]) == (EDITED["usage"], PAGES["p04"]["usage"])
    result = change(jobs, [f"{BASE}nowhere.html"])
    assert (result.code, result.summary["changed"]) == (0, False)
    assert f"{BASE}nowhere.html is left as it is in the index: no file and no page is there" in result.messages


def test_too_many_deletions_are_refused_but_changes_are_published(jobs, folder):
    gone = [f"{BASE}p{number:02}.html" for number in range(6, 12)]
    for number in (0, *range(6, 12)):
        (folder / f"p{number:02}.html").unlink()
    assert jobs.run("reindex", "--collection", "docs").code == 3
    assert change(jobs, [], [f"{BASE}p00.html"]).summary["pages"]["deleted"] == 1
    assert len(jobs.texts()) == 33  # the pages that the previous run may not delete stay
    write_site(folder, {"p03": PAGES["p03"] | EDITED})
    refused = change(jobs, [f"{BASE}p03.html"], gone)
    assert refused.code == 3
    assert "6 of 11 pages have vanished" in refused.messages
    assert jobs.texts()["p03.html#usage"] == EDITED["usage"]
    assert len(jobs.texts()) == 33
    allowed = change(jobs, [], gone, "--max-delete-ratio", 1)
    assert (allowed.code, allowed.summary["pages"]["deleted"]) == (0, 6)


def test_ambiguous_change_is_refused_and_starts_no_run(jobs, folder):
    for flags, words in (
        (["docs", "--changed", "https://elsewhere.example/a"], f"outside of collection 'docs', which has {BASE}"),
        (["docs", "--deleted", "https://elsewhere.example/a"], "https://elsewhere.example/a: outside of"),
        (["docs", "--changed", f"{BASE}a", "--deleted", f"{BASE}a#b"], "is named as changed and as deleted"),
        (["other", "--changed", f"{BASE}a"], "no collection 'other'; there are: docs"),
        (["--changed", f"{BASE}a"], "name it, as in `raydex index NAME --changed URL`"),
        (["docs", "--changed", f"{BASE}a", "--chunk-size", "9"], "leave out all flags that set sources or settings"),
        (["docs", "--changed", f"{BASE}a", "--announced"], "leave out --changed and --deleted"),
    ):
        refused = jobs.run("reindex", *flags)
        assert refused.code == 2
        assert words in refused.messages
    with psycopg.connect(jobs.url) as connection:
        assert connection.execute("select count(*) from run").fetchone() == (1,)


def test_changed_page_leaves_vectors_of_an_interrupted_run_for_the_next(jobs, folder):
    with psycopg.connect(jobs.url) as connection:
        run = "insert into run (collection, kind, state) values ('docs', 'reindex', 'abandoned') returning id"
        abandoned = connection.execute(run).fetchone()[0]
        vector = str([0.0] * 64)
        connection.execute("insert into staged_vector values ('embedded before', %s, %s)", [abandoned, vector])
    write_site(folder, {"p03": PAGES["p03"] | EDITED})
    assert change(jobs, [f"{BASE}p03.html"]).summary["chunks"]["embedded"] == 1
    with psycopg.connect(jobs.url) as connection:
        assert connection.execute("select embed_hash from staged_vector").fetchall() == [("embedded before",)]
