"""A browser gets a page when a request fails; every other program gets JSON."""

import re
from urllib.parse import urljoin

import pytest
from kit.guarded import ADMIN, SECRET, GuardedStore, bearer, client, guarded
from starlette.testclient import TestClient

from pipelines.text.languages import LANGUAGES, read_texts

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
}
POLICIES = ({"public": True}, {}, {"keys_required": False})


def asking(**policy: bool) -> TestClient:
    return client(guarded(GuardedStore(), **policy))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("path", ["/nowhere", "/guide/intro.html", "/web/no.js", "/admin/no", "/v1/no", "/a"])
def test_wrong_address_is_a_page_that_says_so(policy: dict[str, bool], path: str) -> None:
    opened = asking(**policy).get(path, headers=BROWSER)
    assert opened.status_code == 404 and opened.headers["content-type"].startswith("text/html")
    assert "There is no such page" in opened.text and "API key" not in opened.text
    way = re.search(r'href="([./]+)"', opened.text.partition("<body>")[2])
    assert way and urljoin(f"https://ask.test{path}", way[1]) == "https://ask.test/"


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/event-stream", ""])
def test_other_programs_get_json(policy: dict[str, bool], accept: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        reply = asking(**policy).request(method, "/nowhere", headers={"Accept": accept})
        assert reply.status_code == 404 and reply.json()["kind"] == "not_found"
        assert reply.json()["error"] == f"{method} /nowhere is not served: /docs shows what is"
    assert asking(**policy).head("/nowhere", headers={"Accept": accept}).headers["content-type"] == "application/json"
    sent = asking(**policy).post("/nowhere", headers=BROWSER)
    assert sent.headers["content-type"] == "application/json", "a form or a script sends it, no reader opens it"


@pytest.mark.parametrize(("path", "status", "said"), [
    ("/docs", 401, "An API key is needed"),
    ("/docs/", 401, "An API key is needed"),
    ("/admin/status", 401, "An API key is needed"),
    ("/query", 405, "There is no such page"),
    ("/collections/nowhere", 404, "Something went wrong"),
])  # fmt: skip
def test_any_failure_in_a_browser_is_a_page(path: str, status: int, said: str) -> None:
    opened = asking(public=True).get(path, headers=BROWSER)
    assert opened.status_code == status and said in opened.text and opened.text.startswith("<!doctype html>")
    head = asking(public=True).head(path, headers=BROWSER)
    assert head.status_code == status and head.headers["content-type"].startswith("text/html")


def test_failure_page_runs_nothing_and_escapes_foreign_markup() -> None:
    opened = asking().get("/collections/<script>alert(1)</script>", headers=BROWSER)
    assert "<script" not in opened.text
    policy = opened.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'none'" in policy and "sha256-" in policy
    assert opened.headers["cache-control"] == "no-store" and "Accept" in opened.headers["vary"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_failure_page_is_in_the_language_of_the_reader(language: str) -> None:
    opened = asking(public=True).get("/nowhere", headers={**BROWSER, "Accept-Language": f"tlh,{language};q=0.8"})
    assert read_texts(language)["page"]["no_page"] in opened.text and f'<html lang="{language}">' in opened.text


def test_key_holder_gets_the_same_reply_for_a_wrong_path() -> None:
    for token in (SECRET, ADMIN, "rdx_" + "c" * 43):
        assert asking().get("/nowhere", headers=bearer(token)).status_code == 404
