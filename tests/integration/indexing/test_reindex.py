"""The whole job as a user runs it: from a folder or site to an index, and the work of later runs."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import yaml
from kit.reindexing import Jobs, html_page, site_sections, write_site
from kit.web import Answer, Site, redirect
from kit.workshop import BASE

from pipelines.store import RunLock, Store

pytestmark = pytest.mark.slow
MODEL = ("--no-ray", "--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")


@pytest.fixture
def folder(jobs: Jobs, tmp_path: Path) -> Path:
    """Return a folder of twelve pages, and the flags that index it."""
    write_site(tmp_path / "site", site_sections(12))
    jobs.common = ["--path", tmp_path / "site", "--base-url", BASE, *MODEL]
    return tmp_path / "site"


def test_folder_is_indexed_and_later_runs_process_only_changes(jobs, folder):
    first = jobs.reindex("--title", "The docs")
    assert first.code == 0
    summary = first.summary
    assert summary["pages"].items() >= {
        "seen": 12, "new": 12, "changed": 0, "unchanged": 0, "failed": 0, "deleted": 0,
    }.items()  # fmt: skip
    assert summary["sections"] >= 36
    assert summary["chunks"] == {"total": 36, "embedded": 36, "reused": 0, "written": 36, "deleted": 0}
    assert set(summary["seconds"]) >= {"total", "embed", "publish"}
    assert all(isinstance(value, (int, float)) for value in summary["seconds"].values())
    assert (summary["revision"], summary["published"]) == (1, True)
    assert isinstance(summary["index"], int)
    assert jobs.texts()["p03.html#usage"] == site_sections(12)["p03"]["usage"]
    rows = jobs.rows()

    again = jobs.verb("reindex").summary  # only by its name
    assert jobs.verb("status").summary["collections"]["docs"]["settings"]["title"] == "The docs"
    assert again["pages"].items() >= {"seen": 12, "new": 0, "changed": 0, "unchanged": 12}.items()
    assert again["chunks"] == {"total": 36, "embedded": 0, "reused": 0, "written": 0, "deleted": 0}
    assert (again["index"], again["revision"], again["published"]) == (summary["index"], 1, True)
    assert jobs.rows() == rows

    words = "First this. Then that."
    write_site(folder, {"p05": site_sections(12)["p05"] | {"usage": words}, "new": {"purpose": "A new page."}})
    changed = jobs.reindex().summary
    assert changed["pages"].items() >= {"seen": 13, "new": 1, "changed": 1, "unchanged": 11}.items()
    assert changed["chunks"] == {"total": 37, "embedded": 2, "reused": 2, "written": 2, "deleted": 1}
    assert (changed["revision"], changed["in_place"]) == (2, True)
    assert len(rows.items() & jobs.rows().items()) == len(rows.keys() & jobs.rows().keys()) == 35
    assert jobs.texts()["p05.html#usage"] == words


def test_vanished_files_are_deleted_unless_too_many_even_with_new_settings(jobs, folder):
    first = jobs.reindex().summary
    (folder / "p00.html").unlink()
    gone = jobs.reindex()
    assert (gone.code, gone.summary["pages"]["deleted"], gone.summary["chunks"]["deleted"]) == (0, 1, 3)
    for number in range(1, 6):
        (folder / f"p{number:02}.html").unlink()
    kept = jobs.reindex()
    assert kept.code == 3
    assert (kept.summary["pages"]["deleted"], kept.summary["chunks"]["total"]) == (0, 33)
    assert "5 of 11 pages have vanished" in kept.messages
    assert "--max-delete-ratio 0.2" in kept.messages
    assert any("none of them is deleted" in warning for warning in kept.summary["warnings"])
    for _ in range(2):
        rebuilt = jobs.reindex("--model", "hash:32")
        assert (rebuilt.code, rebuilt.summary["published"]) == (3, False)
        assert "5 of 11 pages have vanished" in rebuilt.messages
        assert "left as a candidate" in rebuilt.messages
        assert len(jobs.texts()) == 33
    assert jobs.verb("status").summary["collections"]["docs"]["live"]["id"] == first["index"]
    allowed = jobs.reindex("--model", "hash:32", "--max-delete-ratio", 0.5)
    assert (allowed.code, allowed.summary["published"]) == (0, True)
    assert set(jobs.texts()) == {f"p{n:02}.html#{s}" for n in range(6, 12) for s in ("purpose", "usage", "limits")}
    jobs.common += ["--model", "hash:32"]
    for number in (6, 7):
        (folder / f"p{number:02}.html").unlink()
    assert jobs.reindex().code == 3 and len(jobs.texts()) == 18
    smaller = jobs.reindex("--max-delete-ratio", 0.5)
    assert (smaller.code, smaller.summary["pages"]["deleted"], smaller.summary["chunks"]["deleted"]) == (0, 2, 6)
    assert (smaller.summary["index"], smaller.summary["in_place"]) == (allowed.summary["index"], True)
    assert set(jobs.texts()) == {f"p{n:02}.html#{s}" for n in range(8, 12) for s in ("purpose", "usage", "limits")}


def test_new_settings_wait_as_a_candidate_are_published_and_rolled_back(jobs, folder):
    first = jobs.reindex().summary
    waiting = jobs.reindex("--model", "hash:32", "--no-publish")
    assert waiting.code == 0
    assert waiting.summary["published"] is False
    assert waiting.summary["index"] != first["index"]
    status = jobs.verb("status").summary["collections"]["docs"]
    assert status["live"]["id"] == first["index"]
    assert [index["state"] for index in status["indexes"]] == ["live", "candidate"]
    published = jobs.verb("publish")
    assert (published.code, published.summary["index"]) == (0, waiting.summary["index"])
    assert jobs.verb("publish").code == 2
    rolled_back = jobs.verb("rollback")
    assert (rolled_back.code, rolled_back.summary["index"]) == (0, first["index"])
    assert jobs.verb("prune").summary["pruned"] == [waiting.summary["index"]]
    assert jobs.verb("rollback").code == 2
    status = jobs.verb("status").summary["collections"]["docs"]
    assert [(index["id"], index["state"]) for index in status["indexes"]] == [(first["index"], "live")]
    assert [run["kind"] for run in status["runs"]][:1] == ["rollback"]
    assert [run["state"] for run in status["runs"]] == ["done"] * 4  # a refused run is not recorded


def test_unreadable_page_is_a_failed_row_and_the_others_are_indexed(jobs, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing of one")
    (folder / "empty.html").write_text(" ")
    (folder / "nul.html").write_bytes(html_page("Nul", {"s": "before\0after"}).encode())
    copy = f'<link rel="canonical" href="{BASE}p00.html">'
    (folder / "copy.html").write_text(html_page("Page p00", site_sections(1)["p00"], head=copy))
    elsewhere = '<link rel="canonical" href="https://elsewhere.test/latest/p01.html">'
    (folder / "versioned.html").write_text(html_page("Versioned", {"s": "Stands alone."}, head=elsewhere))
    done = jobs.reindex()
    assert done.code == 0
    assert (done.summary["pages"]["failed"], done.summary["pages"]["new"]) == (2, 14)
    texts = jobs.texts()
    assert texts["nul.html#s"].replace("\ufffd", "") == "beforeafter"
    assert texts["versioned.html#s"] == "Stands alone."
    assert not [source for source in texts if source.startswith("copy.html")]
    assert jobs.page_states().items() >= {
        "broken.pdf": "failed", "empty.html": "failed", "copy.html": "duplicate", "p00.html": "ok",
    }.items()  # fmt: skip
    assert {page["url"]: page["error"] for page in done.summary["failures"]}.keys() == {
        f"{BASE}broken.pdf", f"{BASE}empty.html"
    }  # fmt: skip
    failures = {page["url"]: page["error"] for page in jobs.verb("status").summary["collections"]["docs"]["failures"]}
    assert set(failures) == {f"{BASE}broken.pdf", f"{BASE}empty.html"}
    assert "PDF" in failures[f"{BASE}broken.pdf"]
    (folder / "empty.html").write_text(html_page("Filled", {"s": "Now there is something."}))
    mended = jobs.reindex().summary
    assert (mended["pages"]["failed"], mended["chunks"]["embedded"]) == (1, 1)


def test_pages_filled_by_scripts_are_a_warning_and_listings_are_counted(jobs, folder):
    for name in ("app", "api"):
        note = "<noscript>You need to enable JavaScript to run this app.</noscript>"
        (folder / f"{name}.html").write_text(f'<body>{note}<div id="root"></div><script src="x.js"></script></body>')
    (folder / "contents.html").write_text(html_page("Contents", {}, links=("p00.html", "p01.html")))
    done = jobs.reindex()
    (warning,) = done.summary["warnings"]
    assert warning.startswith(f"2 pages hold no text without JavaScript: {BASE}api.html, {BASE}app.html. Raydex runs")
    assert (done.summary["pages"]["failed"], done.summary["pages"]["listings"]) == (2, 1)
    assert not [text for text in jobs.texts().values() if "JavaScript" in text or "p01" in text]
    failures = jobs.verb("status").summary["collections"]["docs"]["failures"]
    assert failures[0]["error"].endswith("it has no text without JavaScript")


# ---------------------------------------------------------------------------------------------- sites


@pytest.fixture
def site(jobs: Jobs, tmp_path: Path) -> Iterator[Site]:
    """Return a web site with nine pages and a start page, and the collection file that indexes it."""
    pages = {f"/{name}.html": html_page(name, sections) for name, sections in site_sections(9).items()}
    start = html_page("Start", {"welcome": "Welcome to these pages."}, links=tuple(pages))
    with Site({"/": start, **pages}) as site:
        file = tmp_path / "docs.yaml"
        crawling = {"start_urls": [f"{site.url}/"], "allow_private": True, "retries": 0, "sitemap": False}
        file.write_text(yaml.safe_dump({"sites": [crawling], "tags": {"/p0[0-4]": "early"}}))
        jobs.common = [file, *MODEL]
        yield site


def test_vanished_failed_and_over_budget_pages_are_handled(jobs, site):
    first = jobs.reindex()
    assert (first.code, first.summary["pages"]["new"], first.summary["chunks"]["embedded"]) == (0, 10, 28)
    assert first.summary["crawls"][0]["complete"]
    good = dict(site.routes)

    site.routes |= {"/p01.html": Answer("", 404), "/p02.html": Answer("", 500)}
    second = jobs.reindex()
    assert second.code == 0
    assert second.summary["pages"].items() >= {"unchanged": 8, "failed": 1, "deleted": 1}.items()
    assert second.summary["chunks"]["embedded"] == 0
    texts = jobs.texts()
    assert not [source for source in texts if source.startswith("p01")]
    assert len([source for source in texts if source.startswith("p02")]) == 3

    mended = html_page("p02", {"usage": "Mended."}, links=("/unknown.html",))
    site.routes |= {"/p02.html": mended, "/p03.html": Answer("", 404)}
    site.requests.clear()
    retried = jobs.reindex("--retry-failed")
    assert (retried.code, retried.summary["crawls"][0]["stopped_by"]) == (0, "retry_failed")
    assert site.paths() == ["/p02.html"]
    assert retried.summary["pages"].items() >= {"seen": 1, "changed": 1, "deleted": 0}.items()
    assert jobs.texts()["p02.html#usage"] == "Mended."
    assert "p03.html#usage" in jobs.texts()

    before = jobs.rows()
    site.routes.clear()
    site.routes["/"] = Answer("", 500)
    down = jobs.reindex()
    assert down.code == 1
    assert f"start URL {site.url}/ could not be fetched: the server answered 500" in down.messages
    assert jobs.rows() == before
    with Store(jobs.url) as store:
        assert store.live_index("docs").revision == retried.summary["revision"]
        assert store.status("docs")["runs"][0]["state"] == "failed"

    site.routes |= good
    healed = jobs.reindex()
    assert (healed.code, healed.summary["pages"]["failed"]) == (0, 0)
    assert len(jobs.texts()) == 28
    assert healed.summary["chunks"]["embedded"] <= 6  # the pages that were gone or changed meanwhile

    short = jobs.reindex("--max-pages", 3)
    assert (short.code, short.summary["pages"]["deleted"], short.summary["chunks"]["total"]) == (0, 0, 28)
    assert "max_pages" in short.messages


def test_changed_settings_rebuild_from_stored_pages_without_a_request(jobs, site):
    first = jobs.reindex().summary
    site.requests.clear()
    rebuilt = jobs.reindex("--model", "hash:32").summary
    assert site.requests == []
    assert rebuilt["index"] != first["index"]
    assert rebuilt["chunks"] | {"deleted": 0} == {"total": 28, "embedded": 28, "reused": 0, "written": 28, "deleted": 0}
    assert len(jobs.texts()) == 28
    chunked = jobs.reindex("--model", "hash:32", "--chunk-size", 100).summary
    assert (chunked["chunks"]["embedded"], chunked["chunks"]["reused"]) == (0, 28)
    asked = jobs.reindex("--model", "hash:32", "--chunk-size", 100, "--query-prefix", "ask: ").summary
    assert (asked["chunks"]["embedded"], asked["chunks"]["reused"]) == (0, 28)
    read = jobs.reindex("--model", "hash:32", "--chunk-size", 100, "--chunk-prefix", "read: ").summary
    assert (read["chunks"]["embedded"], read["chunks"]["reused"]) == (28, 0)
    jobs.reindex("--model", "hash:32", "--chunk-size", 100)
    after = jobs.reindex("--model", "hash:32", "--chunk-size", 100).summary
    assert len(site.paths()) >= 10  # the next run crawls the site again
    assert after["chunks"]["written"] == 0


def test_mutually_canonical_pages_leave_no_negative_count(jobs):
    with Site({}) as site:
        pages = {}
        for name, other in (("a", "b"), ("b", "a")):
            head = f'<link rel="canonical" href="{site.url}/{other}">'
            sections = {"one": "What only this page says.", "two": "More of what it says."}
            pages[f"/{name}"] = html_page("Page", sections, head, links=("/a", "/b"))
        site.routes |= pages
        jobs.common = ["--start-url", f"{site.url}/a", "--allow-private", *MODEL]
        done = jobs.reindex()
    assert (done.code, done.summary["pages"]["duplicate"], done.summary["pages"]["indexed"]) == (0, 1, 1)
    chunks = done.summary["chunks"]
    assert chunks["embedded"] >= chunks["written"] == chunks["total"] > 0 and chunks["reused"] == 0


# ---------------------------------------------------------------------------------------------- refused runs


def test_busy_collection_is_left_alone_or_waited_for(jobs, folder, database_url, monkeypatch):
    with Store(database_url) as store:
        lock = RunLock(store, "docs")
        assert lock.try_acquire()
        run = lock.begin("reindex", {})
        busy = jobs.reindex()
        assert busy.code == 75
        assert f"run {run} (reindex" in busy.messages
        assert "--wait" in busy.messages
        begun: list[int] = []

        def release(_seconds: float) -> None:
            begun.extend(other["id"] for other in store.status("docs")["runs"])
            lock.release()

        monkeypatch.setattr("pipelines.indexing.lock.time", SimpleNamespace(sleep=release))
        waited = jobs.reindex("--wait")
    assert waited.code == 0
    assert begun == [run]  # the other did not continue before
    assert waited.messages.count("waiting for run") == 1
    assert waited.summary["chunks"]["total"] == 36


def test_dry_run_reports_its_plan_and_changes_nothing(jobs, site, database_url, tmp_path):
    dry = jobs.reindex("--dry-run")
    assert dry.code == 0
    assert dry.summary["index"] == "build new"
    [planned] = dry.summary["sources"]
    assert (planned["pages"], planned["new_pages"]) == (10, 10)
    expected = dry.summary["estimate"]
    assert (expected["pages"], expected["texts"], expected["measured"]) == (10, 40, False)
    assert site.paths() == ["/"]
    with psycopg.connect(database_url) as connection:
        for table in ("run", "page", "index", "collection"):
            count = connection.execute(psycopg.sql.SQL("select count(*) from {}").format(psycopg.sql.Identifier(table)))
            assert count.fetchone() == (0,), table
    # With known pages and those in a sitemap:
    jobs.reindex()
    site.routes["/sitemap.xml"] = f"<urlset><url><loc>{site.url}/alone.html</loc></url></urlset>"
    site.routes["/"] = redirect("/p00.html")
    file = tmp_path / "docs.yaml"
    file.write_text(file.read_text().replace("sitemap: false", "sitemap: true"))
    dry = jobs.reindex("--dry-run").summary
    [planned] = dry["sources"]
    assert (planned["pages"], planned["new_pages"]) == (3, 1)  # the start page, its link, and the sitemap's page
    assert dry["known_pages"] == {"ok": 10} and dry["stored_pages_to_index"] == 0
    assert dry["estimate"]["bottleneck"] == "fetching"  # one page of 3 to embed, and all ten to fetch
    site.routes["/"] = Answer("", 404)
    missing = jobs.reindex("--dry-run")
    assert missing.code == 1 and "is gone: the server answered 404" in missing.messages


START = {"start_urls": ["https://a.test/"]}
WRONG_FILES = [
    ({"sites": [START | {"max_pages": 0}]}, ["sites.0.max_pages", "0"]),
    ({"sites": [START | {"max_depth": -1}]}, ["sites.0.max_depth", "-1"]),
    ({"sites": [START | {"depth": 3}]}, ["sites.0.depth", "max_depth"]),
    ({"sites": [{"start_urls": []}]}, ["sites.0.start_urls"]),
    ({"sites": [{"start_urls": ["ftp://a.test/"]}]}, ["ftp://a.test/"]),
    ({"sites": [START | {"include": ["("]}]}, ["include", "("]),
    ({"sites": [{}]}, ["sites.0.start_urls", "missing"]),
    ({"folders": [{"path": "/nowhere", "base_url": "docs"}]}, ["docs"]),
    ({"folders": [{"path": "/nowhere/at/all", "base_url": BASE}]}, ["/nowhere/at/all", "does not exist"]),
    ({"sites": [START], "index": {"vector_type": "bit"}}, ["index.vector_type", "bit"]),
    ({"sites": [START], "max_delete_ratio": 2}, ["max_delete_ratio", "2"]),
    ({"sites": [START], "tags": {"(": "x"}}, ["("]),
    (["a list"], ["must contain keys and values"]),
]
HERE = ("--path", "/tmp", "--base-url", BASE)
WRONG_FLAGS = [
    (["reindex"], "nothing to index"),
    (["reindex", "--start-url", "http://user:secret@a.test/"], "user name"),
    (["reindex", "--start-url", "https://a.test/", "--model", "hash:0"], "hash:0"),
    (["reindex", *HERE, "--chunk-size", "-1"], "--chunk-size is '-1'"),
    (["reindex", *HERE, "--embedders", "0"], "0 embedding actors"),
    (["reindex", *HERE, "--embedders", "2", "--no-ray"], "leave out one of the two"),
    *(([verb, "--collection", "docs"], "there is no collection 'docs': `raydex index` makes the first one")
      for verb in ("publish", "rollback", "prune", "reindex")),
]  # fmt: skip


def test_unusable_input_is_rejected_by_name(jobs, tmp_path):
    """In a collection file, the error names the file, its key and its value."""
    file = tmp_path / "wrong.yaml"
    for content, words in WRONG_FILES:
        file.write_text(yaml.safe_dump(content))
        done = jobs.run("reindex", file)
        assert done.code == 2 and "Traceback" not in done.messages, (content, done.messages)
        assert [word for word in (*words, "wrong.yaml") if word not in done.messages] == [], (content, done.messages)
    for flags, said in WRONG_FLAGS:
        done = jobs.run(*flags)
        assert done.code == 2 and said in done.messages and "Traceback" not in done.messages, (flags, done.messages)
