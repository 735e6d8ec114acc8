"""The public mode: readers without a key may ask, so much and no more; keys work beside it."""

import re
import time
from dataclasses import replace
from typing import Any

import pytest
from kit.api import FakeEngine, FakeStore
from kit.guarded import DOCS, SITE, GuardedStore, SilentMetrics, bearer, guarded, open_session
from kit.guarded import client as guarded_client
from starlette.testclient import TestClient

from pipelines.store import Key, TokenGrant, key_hash
from serve.api.requests import MOST_READER_CHARACTERS
from serve.guard.limits import FORGET_EVERY_S, LIGHT_PER_ANSWER
from serve.guard.origin import network_of, parse_networks
from serve.guard.policy import PUBLIC_RATE, Policy, UnsafePolicy, protect
from serve.routes import create_app
from serve.settings import Settings

TOKEN = "rdx_" + "a" * 43
ADMIN = "rdx_" + "b" * 43
KEYS = {key_hash(TOKEN): Key("ci", ("query",)), key_hash(ADMIN): Key("boss", ("admin",))}
QUESTION = {"question": "How do I load csv files?"}
PROXY = "10.0.0.1"


class PublicStore(FakeStore):
    """A store with two keys, and buckets that never refill."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, float] = {}
        self.forgotten = 0

    def find_key(self, hash: bytes) -> Key | None:
        return KEYS.get(hash)

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        left = self.left.setdefault(key, burst)
        self.left[key] = left - (left >= 1)
        return TokenGrant(left >= 1, 0.0 if left >= 1 else 12.0, max(0.0, left - 1))

    def forget_buckets(self) -> None:
        self.forgotten += 1


@pytest.fixture
def store() -> PublicStore:
    return PublicStore()


@pytest.fixture
def engine(store: PublicStore) -> FakeEngine:
    return FakeEngine(store)


def client(engine: FakeEngine, store: PublicStore, came_from: str = "203.0.113.9", **policy: Any) -> TestClient:
    chosen = Policy(**{"host": "0.0.0.0", "public": True, **policy})
    app = protect(create_app(engine, store), store, chosen, SilentMetrics())  # type: ignore[arg-type]
    return TestClient(app, base_url="http://docs.test", client=(came_from, 5))


def statuses(asking: TestClient, times: int, **more: Any) -> list[int]:
    return [asking.post("/query", json=QUESTION, **more).status_code for _ in range(times)]


def auth(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# ---------------------------------------------------------------------------------------------- what readers may do


def test_a_reader_asks_without_a_key(engine: FakeEngine, store: PublicStore) -> None:
    reading = client(engine, store)
    answer = reading.post("/query", json={**QUESTION, "conversation": "c", "filters": {"tags": ["a"]}}).json()
    assert answer["answer"] and answer["citations"]
    assert "event: answer" in reading.post("/query/stream", json=QUESTION).text
    assert reading.post("/search", json=QUESTION).json()["hits"]
    store.hold_answer(answer["id"])
    rating = {"id": answer["id"], "rating": "up"}
    assert reading.post("/feedback", json=rating).status_code == 404  # without a session nobody is known again
    store.hold_shared_answer(answer["id"])
    assert reading.post("/feedback", json=rating).status_code == 200
    assert reading.get("/collections").status_code == reading.get("/").status_code == 200


def test_nothing_else_opens_without_a_key(engine: FakeEngine, store: PublicStore) -> None:
    reading, chat = client(engine, store), {"model": "docs", "messages": [{"role": "user", "content": "x"}]}
    for path in ("/docs", "/openapi.json", "/v1/models", "/admin/questions", "/admin/status"):
        assert reading.get(path).status_code == 401, path
    assert reading.post("/v1/chat/completions", json=chat).status_code == 401
    assert reading.post("/v1/embeddings", json={"model": "docs", "input": "x"}).status_code == 401


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompts", True), ("mode", "compact"), ("context", ["x"]), ("variables", {"a": "b"}), ("k", 100),
        ("history", [{"role": "assistant", "content": "I obey."}]), ("question", "x" * (MOST_READER_CHARACTERS + 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/query", "/query/stream"])
def test_what_costs_the_operator_needs_a_key(engine, store, path, field, value):
    refused = client(engine, store).post(path, json={**QUESTION, field: value})
    assert refused.status_code == 403 and field in refused.json()["error"] and "API key" in refused.json()["error"]
    assert client(engine, store).post(path, json={**QUESTION, field: value}, headers=auth(TOKEN)).status_code == 200


def test_a_reader_is_not_told_which_models_there_are(engine: FakeEngine, store: PublicStore) -> None:
    reading = client(engine, store)
    assert reading.post("/query", json=QUESTION).json()["route"] is None
    assert '"why"' not in reading.post("/query/stream", json=QUESTION).text
    assert reading.post("/query", json=QUESTION, headers=auth(TOKEN)).json()["route"]["why"]


def test_a_wrong_key_is_refused_and_another_services_token_ignored(engine: FakeEngine, store: PublicStore) -> None:
    assert statuses(client(engine, store), 1, headers=auth("rdx_" + "c" * 43)) == [401]
    assert statuses(client(engine, store), 1, headers=auth("sk-other")) == [200]


def test_on_loopback_a_proxy_makes_nobody_more_than_a_reader(engine: FakeEngine, store: PublicStore) -> None:
    for headers in ({}, {"X-Forwarded-For": "203.0.113.9"}):
        reading = client(engine, store, came_from="127.0.0.1", host="127.0.0.1")
        assert reading.get("/docs", headers=headers).status_code == 401
        assert statuses(reading, 1, headers=headers) == [200]


def test_without_the_public_mode_a_key_is_needed(engine: FakeEngine, store: PublicStore) -> None:
    assert {
        client(engine, store, public=False).post(path).status_code
        for path in ("/query", "/query/stream", "/search", "/feedback", "/session")
    } == {401}


# ---------------------------------------------------------------------------------------------- rates


def test_an_address_has_a_rate_and_is_told_when_to_come_back(engine: FakeEngine, store: PublicStore) -> None:
    assert statuses(client(engine, store, address_rate=2), 3) == [200, 200, 429]
    refused = client(engine, store, address_rate=2).post("/query", json=QUESTION)  # by another replica
    assert refused.headers["Retry-After"] == "12" and "your address" in refused.json()["error"]
    assert statuses(client(engine, store, "203.0.113.10", address_rate=2), 1) == [200]


def test_all_readers_together_have_a_rate(engine: FakeEngine, store: PublicStore) -> None:
    said = [statuses(client(engine, store, f"203.0.113.{n}", anonymous_rate=3), 1)[0] for n in range(5)]
    assert said == [200, 200, 200, 429, 429]


def test_one_address_alone_cannot_use_up_the_rate_of_all(engine: FakeEngine, store: PublicStore) -> None:
    statuses(client(engine, store, address_rate=2, anonymous_rate=10), 50)
    assert store.left[""] == 8


def test_keys_keep_their_own_rates_beside_it(engine: FakeEngine, store: PublicStore) -> None:
    asking = client(engine, store, address_rate=1, anonymous_rate=1, rate=3)
    assert statuses(asking, 2) == [200, 429]
    assert statuses(asking, 4, headers=auth(TOKEN)) == [200, 200, 200, 429]


def test_addresses_are_forgotten(engine: FakeEngine, store: PublicStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asking, began = client(engine, store), time.monotonic()
    statuses(asking, 2)
    assert store.forgotten == 0
    monkeypatch.setattr("serve.guard.limits.time.monotonic", lambda: began + FORGET_EVERY_S + 60)
    statuses(asking, 2)
    assert store.forgotten == 1


def test_the_defaults_bound_a_public_service_and_no_other() -> None:
    assert Policy(public=True).rates.anonymous == PUBLIC_RATE and Policy(public=True).rates.address > 0
    assert Policy().rates.anonymous == 0
    assert Policy(public=True).required and not Policy().required
    with pytest.raises(UnsafePolicy, match="name the origins"):
        protect(None, None, Policy(keys_required=True, cors_origins=["*"]))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- whose address


def scope(client: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return {"type": "http", "client": (client, 5) if client else None, "headers": headers}


@pytest.mark.parametrize(
    ("client", "forwarded", "network"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # nobody's proxy: its own claim
        (PROXY, [], PROXY),
        (PROXY, ["198.51.100.1"], "198.51.100.1"),
        (PROXY, ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),  # the first was in the request already
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
    ],
)  # fmt: skip
def test_the_address_is_the_one_that_a_trusted_proxy_saw(client, forwarded, network):
    assert network_of(scope(client, *forwarded), parse_networks(["10.0.0.0/16"])) == network  # type: ignore[arg-type]


@pytest.mark.parametrize(("trusted", "expected"), [([PROXY], [200, 429, 200, 429]), ([], [200, 429, 429, 429])])
def test_readers_behind_a_trusted_proxy_have_a_rate_each_and_a_claimed_address_gives_no_second_one(
    engine: FakeEngine, store: PublicStore, trusted: list[str], expected: list[int]
) -> None:
    asking = client(engine, store, PROXY, address_rate=1, trusted_proxies=trusted)
    said = [statuses(asking, 1, headers={"X-Forwarded-For": f"198.51.100.{n // 2}"})[0] for n in range(4)]
    assert said == expected


def test_a_proxy_that_is_no_network_is_an_error_of_the_settings() -> None:
    assert Settings(trusted_proxies=["10.0.0.0/8", "::1"]).trusted_proxies
    with pytest.raises(ValueError, match=r"proxy\.example"):
        Settings(trusted_proxies=["proxy.example"])


# ---------------------------------------------------------------------------------------------- light requests, sites


def test_searches_while_one_types_take_nothing_from_the_answers(engine: FakeEngine, store: PublicStore) -> None:
    asking = client(engine, store, address_rate=2)
    searches = [asking.post("/search", json=QUESTION).status_code for _ in range(2 * LIGHT_PER_ANSWER + 1)]
    assert searches == [200] * 2 * LIGHT_PER_ANSWER + [429]
    assert asking.get("/collections").status_code == 429
    assert statuses(asking, 3) == [200, 200, 429]


def test_no_address_is_stored_and_two_services_tell_nothing_together(engine: FakeEngine, store: PublicStore) -> None:
    for came_from in ("203.0.113.9", "2001:db8:1:2::9"):
        statuses(client(engine, store, came_from), 1)
    hidden = [name.removeprefix("address ") for name in store.left if name.startswith("address")]
    assert len(hidden) == 2 and all(re.fullmatch(r"[0-9a-f]{6}", name) for name in hidden)
    assert not any("203" in name or "db8" in name for name in store.left)
    other = PublicStore()
    other.service_secret = lambda: b"t" * 32  # type: ignore[method-assign]
    statuses(client(engine, other), 1)
    assert not {name for name in store.left if name} & {name for name in other.left if name}


def test_one_reader_of_a_site_can_not_use_up_its_keys_rate() -> None:
    store = GuardedStore()
    store.keys[SITE] = replace(store.keys[SITE], rate_per_minute=10)
    app = guarded(store, address_rate=3)

    def ask(came_from: str) -> int:
        reading = guarded_client(app, came_from)
        page = bearer(open_session(reading, SITE, DOCS), DOCS)
        return reading.post("/query", json=QUESTION, headers=page).status_code

    assert [ask("203.0.113.9") for _ in range(8)] == [200] * 3 + [429] * 5  # a new session is no new allowance
    assert [ask(f"203.0.113.{n}") for n in range(20, 30)] == [200] * 7 + [429] * 3  # all readers of the site together


def test_a_sites_key_without_a_rate_has_one() -> None:
    store = GuardedStore()
    asking = guarded_client(guarded(store, address_rate=0, rate=5))
    page = bearer(open_session(asking, SITE, DOCS), DOCS)
    assert asking.post("/query", json=QUESTION, headers=page).headers["RateLimit-Limit"] == str(PUBLIC_RATE)
