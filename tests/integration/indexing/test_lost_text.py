"""A run never reports success over nothing: pages that lose their text are refused, and omissions reported."""

import re
from pathlib import Path

import psycopg
import pytest
import yaml
from kit.nights import Nights
from kit.reindexing import Jobs, html_page, site_sections, write_site
from kit.web import Site, redirect

from pipelines.store import Store

BASE = "https://docs.test/"
MODEL = ("--model", "hash:8", "--no-ray")
SHELL = '<html><head><title>T</title><meta http-equiv="refresh" content="0; url=/new/"></head><body></body></html>'

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm")]


@pytest.fixture
def folder(tmp_path: Path, jobs: Jobs) -> Path:
    """Index a folder of 12 pages with 36 sections."""
    folder = tmp_path / "site"
    write_site(folder, site_sections(12))
    jobs.common = ["--path", str(folder), "--base-url", BASE, *MODEL]
    return folder


def lose(folder: Path, pages: int) -> None:
    for path in sorted(folder.glob("*.html"))[:pages]:
        path.write_text(SHELL)


def test_first_run_without_text_fails(jobs, folder, store: Store):
    lose(folder, 12)
    for more in ([], ["--no-publish"]):
        failed = jobs.reindex(*more)
        assert (failed.code, failed.summary["index"], failed.summary["published"]) == (1, None, False)
        assert "no page has text to cite: nothing is published. Pages seen: 12 (12 only with links" in failed.messages
        assert store.status("docs")["indexes"] == []


@pytest.mark.parametrize(
    "more",
    [[], pytest.param(["--no-publish"], marks=pytest.mark.exhaustive), ["--model", "hash:16"]],
    ids=["", "unpublished", "other settings"],
)
def test_run_that_loses_most_of_the_text_is_refused(jobs, folder, more):
    assert jobs.reindex().code == 0
    before = jobs.texts()
    lose(folder, 9)
    refused = jobs.reindex(*more)
    assert (refused.code, refused.summary["published"]) == (3, False)
    assert (
        "of the text would be lost" in refused.messages
        and "`raydex publish docs` publishes the new index" in refused.messages
    )
    assert jobs.texts() == before
    status = jobs.verb("status").summary["collections"]["docs"]
    assert [index["state"] for index in status["indexes"]] == ["live", "candidate"]  # for inspection
    allowed = jobs.reindex("--max-delete-ratio", 1)
    assert allowed.code == 0 and len(jobs.texts()) == 9


def test_text_read_by_a_refused_run_can_be_published(jobs, folder):
    assert jobs.reindex().code == 0
    lose(folder, 9)
    assert jobs.reindex().code == 3
    assert jobs.verb("publish").code == 0
    assert len(jobs.texts()) == 9


def test_refused_run_that_continues_as_candidate_names_publish_command(jobs, folder):
    assert jobs.reindex().code == 0
    other = ("--model", "hash:16")
    assert jobs.reindex(*other, "--no-publish").code == 0
    lose(folder, 9)
    refused = jobs.reindex(*other)
    assert (
        refused.code == 3 and "`raydex index --collection docs --max-delete-ratio 1` publishes it" in refused.messages
    )
    assert jobs.run("reindex", "--collection", "docs", "--max-delete-ratio", 1, "--no-ray").code == 0
    assert len(jobs.texts()) == 9


def test_delete_ratio_flag_applies_to_one_run(jobs, folder):
    assert jobs.reindex("--max-delete-ratio", 1).code == 0
    lose(folder, 9)
    again = ("reindex", "--collection", "docs", "--no-ray")
    assert jobs.run(*again).code == 3
    assert jobs.run(*again, "--max-delete-ratio", 1).code == 0 and len(jobs.texts()) == 9
    (folder / "p11.html").unlink()
    kept = jobs.run(*again, "--max-delete-ratio", 0)  # nor does a smaller one stay
    assert kept.code == 3 and "`--max-delete-ratio 0` allows" in kept.messages and len(jobs.texts()) == 9
    assert jobs.run(*again).code == 0 and len(jobs.texts()) == 6


def test_collection_file_can_allow_a_loss_permanently(tmp_path, jobs, folder):
    file = tmp_path / "docs.yaml"
    folders = [{"path": str(folder), "base_url": BASE}]
    file.write_text(yaml.safe_dump({"folders": folders, "max_delete_ratio": 1, "index": {"model": "hash:8"}}))
    jobs.common = []
    assert jobs.run("reindex", str(file), "--no-ray").code == 0
    lose(folder, 9)
    refused = jobs.run("reindex", str(file), "--no-ray", "--max-delete-ratio", 0.2)
    assert refused.code == 3
    assert jobs.run("reindex", "--collection", "docs", "--no-ray").code == 0 and len(jobs.texts()) == 9


@pytest.mark.parametrize("ratio", [-0.1, 1.5])
def test_delete_ratio_must_be_between_0_and_1(jobs, folder, ratio):
    refused = jobs.reindex("--max-delete-ratio", ratio)
    assert refused.code == 2 and f"--max-delete-ratio is {ratio}: it must be 0 to 1" in refused.messages


def test_deleting_the_last_page_suggests_dropping_the_collection(jobs, folder):
    for path in sorted(folder.glob("*.html"))[1:]:
        path.unlink()
    assert jobs.reindex().code == 0
    page = ("reindex", "docs", "--deleted", f"{BASE}p00.html", "--max-delete-ratio", 1, "--no-ray")
    failed = jobs.run(*page)
    assert failed.code == 1 and "`raydex drop docs` deletes the whole collection" in failed.messages
    assert f"Pages seen: 1 (1 gone: {BASE}p00.html (it was said to be deleted))" in failed.messages
    assert len(jobs.texts()) == 3


def test_missing_text_is_explained_for_deleted_pages_too(jobs):
    home = html_page("Home", {"one": "What this page says."}, links=("/a", "/b"))
    with Site({"/": home, "/a": html_page("A", {"a": "Of a."})}) as site:
        jobs.common = ["--start-url", f"{site.url}/", "--allow-private", *MODEL]
        assert jobs.reindex().code == 0
        site.routes |= {"/": "<title>T</title><nav><a href=/a>a</a> <a href=/b>b</a></nav>", "/a": redirect("/b")}
        failed = jobs.reindex("--max-delete-ratio", 1)
    assert failed.code == 1
    (said,) = re.findall(r"Pages seen: .*", failed.messages)
    for part in (
        "3 (1 only with links",
        f"1 redirect: {site.url}/a",
        f"1 gone: {site.url}/b (the server answered 404)",
    ):
        assert part in said


def test_run_without_changes_does_not_read_the_index_to_judge_itself(jobs, folder, store: Store):
    """A run that only replaces pages with as much text does not read the index's size either."""
    assert jobs.reindex().code == 0
    index, run = store.live_index("docs").id, store.last_runs("docs", 1)[0]["id"]
    assert store.text_sizes("docs", run, index, index, True) == (0, 0)
    assert store.leaves_text("docs", run, index, True)
    with psycopg.connect(store.url) as connection:
        connection.execute("update page set state = 'gone' where url like '%p00%'")
    before, after = store.text_sizes("docs", run, index, index, True)
    assert before > after > 0
    assert store.text_sizes("docs", run, index, index, ["other"]) == (0, 0)
    with psycopg.connect(store.url) as connection:
        connection.execute("update page set state = 'gone'")
    assert store.text_sizes("docs", run, index, index, True) == (before, 0)
    assert not store.leaves_text("docs", run, index, True) and not store.leaves_text("docs", run, None, True)


def test_losing_some_text_is_allowed(jobs, folder):
    assert jobs.reindex().code == 0
    lose(folder, 5)
    done = jobs.reindex()
    assert done.code == 0 and len(jobs.texts()) == 21


@pytest.mark.parametrize("ratio", [(), ("--max-delete-ratio", 1)], ids=["", "all may vanish"])
def test_run_that_loses_all_text_leaves_the_index_unchanged(jobs, folder, ratio):
    assert jobs.reindex().code == 0
    before = jobs.texts()
    lose(folder, 12)
    failed = jobs.reindex(*ratio)
    assert failed.code == 1 and "stays as it is" in failed.messages
    assert jobs.texts() == before
    write_site(folder, site_sections(12))
    assert jobs.reindex().code == 0 and jobs.texts() == before


def test_losing_single_pages_with_most_of_the_text_is_refused(jobs, folder):
    (folder / "p00.html").write_text(html_page("All", {"all": "Much is said in one place alone. " * 200}))
    assert jobs.reindex().code == 0
    before = jobs.texts()
    lose(folder, 1)
    refused = jobs.run("reindex", "docs", "--changed", f"{BASE}p00.html", "--no-ray")
    assert refused.code == 3 and "of the text would be lost" in refused.messages
    assert jobs.texts() == before


def test_theme_with_one_canonical_url_on_all_pages_loses_no_page(jobs, folder):
    assert jobs.reindex().code == 0
    before = jobs.texts()
    head = f'<link rel="canonical" href="{BASE}p00.html">'
    for name, sections in site_sections(12).items():
        (folder / f"{name}.html").write_text(html_page(f"Page {name}", sections, head))
    done = jobs.reindex()
    assert (done.code, done.summary["pages"]["duplicate"]) == (0, 0)
    assert jobs.texts() == before


def test_pages_with_equal_text_count_as_one(jobs):
    words = {"one": "What this page says of its subject.", "two": "And what it says besides."}
    links = ("/", "/index.html", "/index.html?x=1", "/x//", "/x", "/x/", "/x/index.html", "/old")
    home, other = html_page("Home", words, links=links), html_page("X", {"a": "Of x."}, links=links)
    pages = {link: other if link.startswith("/x") else home for link in links[:-1]}
    with Site(pages) as site:
        jobs.common = ["--start-url", f"{site.url}/", "--allow-private", *MODEL]
        done = jobs.reindex()
        again = jobs.reindex()
        text = jobs.text("reindex", "--collection", "docs", *jobs.common)
    assert (done.code, done.summary["pages"]["duplicate"], done.summary["pages"]["indexed"]) == (0, 5, 2)
    assert sorted(jobs.texts()) == ["#one", "#two", "x#a"]
    assert {one["state"]: one["pages"] for one in done.summary["left_out"]} == {"duplicate": 5, "gone": 1}
    assert again.summary["chunks"]["written"] == again.summary["chunks"]["deleted"] == 0
    assert "5 duplicates, such as " in text and "(same text as " in text and "1 gone: " in text


def test_night_that_loses_the_text_is_refused(tmp_path, jobs, store, monkeypatch):
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    nights = Nights(tmp_path, jobs)
    assert nights().summary["verdict"] == "published"
    index, pages = store.live_index("docs"), sorted(nights.pages.glob("*.html"))
    for count, said in ((len(pages) * 3 // 4, "of the text would be lost"), (len(pages), "no page has text")):
        lose(nights.pages, count)
        refused = nights()
        assert (refused.code, refused.summary["verdict"]) == (4, "refused")
        assert re.search(said, refused.summary["reason"]), refused.summary["reason"]
        assert store.live_index("docs") == index
    assert refused.summary["steps"]["publish"] == "refused"
