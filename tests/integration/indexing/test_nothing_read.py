"""A run that reads nothing fails, says why within seconds, and changes nothing."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from kit.reindexing import JobResult, Jobs
from kit.web import Answer, Site, closed_port, page

from pipelines.store import Store

MODEL = ("--model", "hash:8", "--no-ray")


@pytest.fixture
def nobody() -> Iterator[str]:
    """Return the URL of a port where nobody listens."""
    with closed_port() as port:
        yield f"http://127.0.0.1:{port}/docs/"


@pytest.mark.slow
def test_first_run_that_reads_nothing_leaves_no_collection(jobs: Jobs, store: Store, nobody: str) -> None:
    with Site({"/": Answer("", 404)}) as site:
        for url, said in (
            (nobody, f"{nobody}: connection refused: nothing was read, nothing is changed"),
            (f"{site.url}/", f"start URL {site.url}/ is gone: the server answered 404"),
        ):
            failed = jobs.reindex("--start-url", url, "--allow-private", *MODEL)
            assert failed.code == 1 and said in failed.messages
            assert store.collections() == []


@pytest.mark.slow
def test_unreachable_site_or_wrong_address_leaves_the_collection_unchanged(jobs, store, nobody):
    def state() -> tuple[object, ...]:
        return jobs.texts(), jobs.page_states(), store.collection_settings("docs"), store.live_index("docs")

    with Site({"/": page("a.html"), "/a.html": page()}) as site:
        flags = ("--start-url", f"{site.url}/", "--allow-private", *MODEL)
        assert jobs.reindex(*flags).code == 0
    before = state()
    assert len(jobs.texts()) == 2

    def check(failed: JobResult) -> None:
        assert failed.code == 1
        assert state() == before
        run = store.status("docs")["runs"][0]
        assert run["state"] == "failed" and "connection refused" in run["error"]

    with closed_port(urlsplit(site.url).port or 0):
        check(jobs.reindex(*flags))
    check(jobs.reindex("--start-url", nobody, "--allow-private", *MODEL))
