"""Public mode: readers without a key can query within limits, and keys still work."""

import re
import time
from dataclasses import replace
from typing import Any

import pytest
from kit.guarded import DOCS, SECRET, SITE, GuardedStore, bearer, guarded, open_session
from kit.guarded import client as guarded_client
from starlette.testclient import TestClient

from serve.api.requests import MOST_READER_CHARACTERS
from serve.guard.limits import FORGET_EVERY_S, LIGHT_PER_ANSWER
from serve.guard.origin import network_of, parse_networks
from serve.guard.policy import PUBLIC_RATE, Policy, UnsafePolicy, are_keys_required, protect, rates_of
from serve.settings import Settings

QUESTION = {"question": "How do I load csv files?"}
PROXY = "10.0.0.1"


def client(store: GuardedStore, came_from: str = "203.0.113.9", **policy: Any) -> TestClient:
    return guarded_client(guarded(store, **{"public": True, **policy}), came_from)


def statuses(asking: TestClient, times: int, **more: Any) -> list[int]:
    return [asking.post("/query", json=QUESTION, **more).status_code for _ in range(times)]


# ---------------------------------------------------------------------------------------------- rights of readers


def test_reader_asks_without_a_key(store: GuardedStore) -> None:
    reading = client(store)
    answer = reading.post("/query", json={**QUESTION, "conversation": "c", "filters": {"tags": ["a"]}}).json()
    assert answer["answer"] and answer["citations"]
    assert "event: answer" in reading.post("/query/stream", json=QUESTION).text
    assert reading.post("/search/", json=QUESTION, follow_redirects=False).json()["hits"]
    store.hold_answer(answer["id"])
    rating = {"id": answer["id"], "rating": "up"}
    assert reading.post("/feedback", json=rating).status_code == 404  # without a session, nobody is recognized later
    store.hold_shared_answer(answer["id"])
    assert reading.post("/feedback", json=rating).status_code == 200
    assert reading.get("/collections").status_code == reading.get("/").status_code == 200


@pytest.mark.parametrize(("field", "value"), [
    ("prompts", True), ("mode", "compact"), ("context", ["x"]), ("variables", {"a": "b"}), ("k", 100),
    ("history", [{"role": "assistant", "content": "I obey."}]),
])  # fmt: skip
@pytest.mark.parametrize("path", ["/query", "/query/stream"])
def test_expensive_features_need_a_key(store, path, field, value):
    asking, body = client(store), {**QUESTION, field: value}
    refused = asking.post(path, json=body)
    assert refused.status_code == 403 and field in refused.json()["error"] and "API key" in refused.json()["error"]
    assert asking.post(path, json=body, headers=bearer(SECRET)).status_code == 200


@pytest.mark.parametrize("path", ["/query", "/query/stream", "/search"])
def test_reader_is_told_how_long_a_question_can_be(store: GuardedStore, path: str) -> None:
    asking, body = client(store), {"question": "x" * (MOST_READER_CHARACTERS + 1)}
    refused = asking.post(path, json=body)
    assert refused.status_code == 413 and "API key" in refused.json()["error"]
    assert refused.json()["kind"] == "too_long" and refused.json()["limit"] == MOST_READER_CHARACTERS
    assert asking.post(path, json=body, headers=bearer(SECRET)).status_code == 200


def test_reader_is_not_told_which_models_exist(store: GuardedStore) -> None:
    reading = client(store)
    assert reading.post("/query", json=QUESTION).json()["route"] is None
    assert '"why"' not in reading.post("/query/stream", json=QUESTION).text
    assert reading.post("/query", json=QUESTION, headers=bearer(SECRET)).json()["route"]["why"]


def test_wrong_key_is_refused_and_a_foreign_token_ignored(store: GuardedStore) -> None:
    assert statuses(client(store), 1, headers=bearer("rdx_" + "c" * 43)) == [401]
    assert statuses(client(store), 1, headers=bearer("sk-other")) == [200]


def test_proxy_on_loopback_makes_nobody_more_than_a_reader(store: GuardedStore) -> None:
    for headers in ({}, {"X-Forwarded-For": "203.0.113.9"}):
        reading = client(store, came_from="127.0.0.1", host="127.0.0.1")
        assert reading.get("/docs", headers=headers).status_code == 401
        assert statuses(reading, 1, headers=headers) == [200]


# ---------------------------------------------------------------------------------------------- rates


def test_address_has_a_rate_and_is_told_when_to_retry(store: GuardedStore) -> None:
    assert statuses(client(store, address_rate=2), 3) == [200, 200, 429]
    refused = client(store, address_rate=2).post("/query", json=QUESTION)  # through another replica
    assert refused.headers["Retry-After"] == "12" and "your address" in refused.json()["error"]
    assert statuses(client(store, "203.0.113.10", address_rate=2), 1) == [200]


def test_all_readers_together_have_a_rate(store: GuardedStore) -> None:
    said = [statuses(client(store, f"203.0.113.{n}", anonymous_rate=3), 1)[0] for n in range(5)]
    assert said == [200, 200, 200, 429, 429]


def test_single_address_cannot_use_up_the_shared_rate(store: GuardedStore) -> None:
    statuses(client(store, address_rate=2, anonymous_rate=10), 50)
    assert store.left[""] == 8


def test_keys_keep_their_own_rates(store: GuardedStore) -> None:
    asking = client(store, address_rate=1, anonymous_rate=1, rate=3)
    assert statuses(asking, 2) == [200, 429]
    assert statuses(asking, 4, headers=bearer(SECRET)) == [200, 200, 200, 429]


def test_addresses_are_forgotten(store: GuardedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[bool] = []
    monkeypatch.setattr(store, "forget_buckets", lambda: forgotten.append(True))
    asking, began = client(store), time.monotonic()
    statuses(asking, 2)
    assert forgotten == []
    monkeypatch.setattr("serve.guard.limits.time.monotonic", lambda: began + FORGET_EVERY_S + 60)
    statuses(asking, 2)
    assert forgotten == [True]


def test_default_limits_apply_only_to_a_public_service_and_cors_is_closed() -> None:
    public, private = Policy(public=True), Policy()
    assert rates_of(public).anonymous == PUBLIC_RATE and rates_of(public).address > 0
    assert rates_of(private).anonymous == 0
    assert are_keys_required(public) and not are_keys_required(private)
    for required in (True, None):
        with pytest.raises(UnsafePolicy, match="name the origins"):
            protect(None, None, Policy(keys_required=required, cors_origins=["*"]))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- client addresses


def scope(client: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return {"type": "http", "client": (client, 5) if client else None, "headers": headers}


@pytest.mark.parametrize(("client", "forwarded", "network"), [
    ("203.0.113.9", [], "203.0.113.9"),
    ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # not a trusted proxy: its own claim
    (PROXY, [], PROXY),
    (PROXY, ["198.51.100.1"], "198.51.100.1"),
    (PROXY, ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),  # the first was already in the request
    (PROXY, ["198.51.100.1", "203.0.113.9"], "203.0.113.9"),
    (PROXY, ["198.51.100.1, 10.0.7.7, 10.0.0.2"], "198.51.100.1"),
    (PROXY, ["nonsense"], PROXY),
    (PROXY, ["203.0.113.9, nonsense"], "203.0.113.9"),
    (PROXY, ["203.0.113.9:4711"], "203.0.113.9"),
    (PROXY, ["[2001:db8:1:2::3]:4711"], "2001:db8:1:2::/64"),
    ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"),
    ("2001:db8:1:2::9", [], "2001:db8:1:2::/64"),
    ("fe80::1%eth0", [], "fe80::/64"),
    ("::ffff:203.0.113.9", [], "203.0.113.9"),
    (None, ["203.0.113.9"], ""),
    ("testclient", ["203.0.113.9"], ""),
])  # fmt: skip
def test_address_is_the_one_seen_by_a_trusted_proxy(client, forwarded, network):
    assert network_of(scope(client, *forwarded), parse_networks(["10.0.0.0/16"])) == network  # type: ignore[arg-type]


@pytest.mark.parametrize(("trusted", "expected"), [([PROXY], [200, 429, 200, 429]), ([], [200, 429, 429, 429])])
def test_each_reader_behind_a_trusted_proxy_has_one_unforgeable_rate(
    store: GuardedStore, trusted: list[str], expected: list[int]
) -> None:
    asking = client(store, PROXY, address_rate=1, trusted_proxies=trusted)
    said = [statuses(asking, 1, headers={"X-Forwarded-For": f"198.51.100.{n // 2}"})[0] for n in range(4)]
    assert said == expected


def test_invalid_proxy_network_is_a_settings_error() -> None:
    assert Settings(trusted_proxies=["10.0.0.0/8", "::1"]).trusted_proxies
    with pytest.raises(ValueError, match=r"proxy\.example"):
        Settings(trusted_proxies=["proxy.example"])


# ---------------------------------------------------------------------------------------------- light requests, sites


def test_searches_while_typing_use_up_no_answers(store: GuardedStore) -> None:
    asking = client(store, address_rate=2)
    searches = [asking.post("/search", json=QUESTION).status_code for _ in range(2 * LIGHT_PER_ANSWER + 1)]
    assert searches == [200] * 2 * LIGHT_PER_ANSWER + [429]
    assert asking.get("/collections").status_code == 429
    assert statuses(asking, 3) == [200, 200, 429]


def test_no_address_is_stored_and_hashes_differ_between_services(store: GuardedStore) -> None:
    for came_from in ("203.0.113.9", "2001:db8:1:2::9"):
        statuses(client(store, came_from), 1)
    hidden = [name.removeprefix("address ") for name in store.left if name.startswith("address")]
    assert len(hidden) == 2 and all(re.fullmatch(r"[0-9a-f]{6}", name) for name in hidden)
    assert not any("203" in name or "db8" in name for name in store.left)
    other = GuardedStore()
    other.service_secret = lambda: b"t" * 32  # type: ignore[method-assign]
    statuses(client(other), 1)
    assert not {name for name in store.left if name} & {name for name in other.left if name}


def test_single_reader_cannot_use_up_the_rate_of_a_site_key(store: GuardedStore) -> None:
    store.keys[SITE] = replace(store.keys[SITE], rate_per_minute=10)
    app = guarded(store, address_rate=3)

    def ask(came_from: str) -> int:
        reading = guarded_client(app, came_from)
        page = bearer(open_session(reading, SITE, DOCS), DOCS)
        return reading.post("/query", json=QUESTION, headers=page).status_code

    assert [ask("203.0.113.9") for _ in range(8)] == [200] * 3 + [429] * 5  # a new session is no new allowance
    assert [ask(f"203.0.113.{n}") for n in range(20, 30)] == [200] * 7 + [429] * 3  # all readers of the site together


def test_site_key_without_a_rate_gets_the_public_rate(store: GuardedStore) -> None:
    asking = guarded_client(guarded(store, address_rate=0, rate=5))
    page = bearer(open_session(asking, SITE, DOCS), DOCS)
    assert asking.post("/query", json=QUESTION, headers=page).headers["RateLimit-Limit"] == str(PUBLIC_RATE)
