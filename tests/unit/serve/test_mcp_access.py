"""Access to /mcp: the keys, rates and limits of /query. Pages of other sites are refused."""

from typing import Any

import pytest
from kit.guarded import SECRET, SITE, GuardedStore, SilentMetrics, bearer, client, guarded

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def post(store: GuardedStore, token: str = "", here: bool = False, **policy: Any) -> Any:
    """Return the reply to an agent elsewhere, or `here` on the service's machine."""
    body, headers, path = policy.pop("body", LIST), policy.pop("headers", {}), policy.pop("path", "/mcp")
    place = ("127.0.0.1", "127.0.0.1:8000") if here else ()
    asking = client(guarded(store, **({"host": "127.0.0.1"} if here else {}), **policy), *place)
    return asking.post(path, json=body, headers={"Accept": "application/json", **bearer(token), **headers})


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_secret_key_opens_mcp_pays_for_it_and_is_counted_as_such(store, monkeypatch, path):
    counted = []
    monkeypatch.setattr(SilentMetrics, "count_request", lambda self, *request: counted.append(request))
    reply = post(store, SECRET, rate=60, path=path)
    assert reply.json()["result"]["tools"][0]["name"] == "search_docs"
    assert store.left == {"ci": 59} and counted == [("/mcp", 200)]


def test_refusal_says_whether_a_key_is_missing_or_wrong(store):
    missing, wrong = post(store), post(store, "rdx_" + "z" * 43)
    assert missing.status_code == wrong.status_code == 401
    challenge = missing.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer realm="raydex"')
    assert "raydex keys create NAME" in challenge
    assert "error=" not in challenge.replace("error_description=", "")
    assert 'error="invalid_token"' in wrong.headers["WWW-Authenticate"]


def test_publishable_keys_and_page_sessions_are_refused(store):
    assert post(store, SITE).status_code == 403
    assert "secret API key" in post(store, "rds_anything").json()["error"]["message"]


def test_empty_bucket_is_a_429_with_seconds_and_large_requests_are_refused(store):
    assert post(store, SECRET, body={"x": "y" * 2_000}, max_body_bytes=1_000).status_code == 413
    store.left["ci"] = 0
    reply = post(store, SECRET, rate=60)
    assert (reply.status_code, reply.headers["Retry-After"]) == (429, "12")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.test"}, 401),  # DNS rebinding: a page's host name that points here
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "https://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}, 403),  # a page needs a session
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_local_clients_need_no_key_but_browser_pages_are_refused(store, headers, status):
    assert post(store, here=True, headers=headers).status_code == status


def test_public_service_answers_agents_of_readers_at_their_rate(store):
    assert post(store, public=True).status_code == 200
    assert store.left


def test_authorization_discovery_is_404(store):
    assert client(guarded(store)).get("/.well-known/oauth-protected-resource/mcp").status_code == 404
