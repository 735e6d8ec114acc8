"""Who may use /mcp: the same keys, rates and limits as for /query; pages of other sites may not."""

from typing import Any

import pytest
from kit.api import FakeEngine
from starlette.testclient import TestClient
from test_auth_surface import QUERY, Guarded, SilentMetrics
from test_mcp import PagedStore

from pipelines.store import Key, TokenGrant, key_hash
from serve.guard.policy import Policy, protect
from serve.routes import create_app

PUBLISHABLE = "pk_" + "p" * 43
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


COUNTED: list[tuple[str, int]] = []


class KeptMetrics(SilentMetrics):
    def count_request(self, route: str, status: int) -> None:
        COUNTED.append((route, status))


class Store(Guarded, PagedStore):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []
        self.empty = False

    def find_key(self, hash: bytes) -> Key | None:
        page = Key("page", ("ask",), origins=("https://docs.test",))
        return page if hash == key_hash(PUBLISHABLE) else super().find_key(hash)

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        self.taken.append(key)
        return TokenGrant(not self.empty, 7.0 if self.empty else 0.0, burst)


@pytest.fixture
def store() -> Store:
    return Store()


def post(store: Store, token: str = "", client: str = "203.0.113.9", body: Any = LIST, **more: Any) -> Any:
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    policy = {"host": "0.0.0.0", "rate": 60, **more.pop("policy", {})}
    app = protect(create_app(FakeEngine(store), store), store, Policy(**policy), KeptMetrics())
    asking = TestClient(app, base_url=more.pop("base", "http://docs.test"), client=(client, 5))
    return asking.post("/mcp", json=body, headers={**headers, **more.pop("headers", {})})


def test_a_secret_key_opens_it_and_pays_for_it(store):
    reply = post(store, QUERY)
    assert reply.json()["result"]["tools"][0]["name"] == "search_docs"
    assert store.taken == ["ci"]


def test_it_is_counted_as_what_it_is(store):
    post(store, QUERY)
    assert COUNTED[-1] == ("/mcp", 200)


def test_without_a_key_the_reply_says_what_is_missing(store):
    reply = post(store)
    assert reply.status_code == 401
    challenge = reply.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer realm="raydex"')
    assert "raydex keys create NAME" in challenge
    assert "error=" not in challenge.replace("error_description=", "")


def test_a_wrong_key_is_named_as_wrong(store):
    reply = post(store, "rdx_" + "z" * 43)
    assert reply.status_code == 401
    assert 'error="invalid_token"' in reply.headers["WWW-Authenticate"]


def test_a_publishable_key_and_the_sessions_of_pages_are_refused(store):
    assert post(store, PUBLISHABLE).status_code == 403
    assert "secret API key" in post(store, "rds_anything").json()["error"]["message"]


def test_an_empty_bucket_is_a_429_with_the_seconds(store):
    store.empty = True
    reply = post(store, QUERY)
    assert (reply.status_code, reply.headers["Retry-After"]) == (429, "7")


def test_a_large_request_is_refused(store):
    assert post(store, QUERY, body={"x": "y" * 2_000}, policy={"max_body_bytes": 1_000}).status_code == 413


LOCAL: dict[str, Any] = {"client": "127.0.0.1", "base": "http://127.0.0.1:8000", "policy": {"host": "127.0.0.1"}}


def test_on_this_machine_no_key_is_needed(store):
    assert post(store, **LOCAL).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.test"}, 401),  # DNS rebinding: the name of a page that leads here
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}, 403),  # a page needs a session
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_no_page_of_a_browser_gets_in_on_this_machine(store, headers, status):
    assert post(store, **LOCAL, headers=headers).status_code == status


def test_a_page_that_has_a_secret_key_is_refused(store):
    assert post(store, QUERY, headers={"Origin": "https://evil.test"}).status_code == 403


def test_a_public_service_answers_its_readers_agents(store):
    assert post(store, policy={"public": True}).status_code == 200
    assert store.taken


def test_nothing_hides_where_clients_look_for_a_way_to_sign_in(store):
    app = protect(create_app(FakeEngine(store), store), store, Policy(host="0.0.0.0"), SilentMetrics())
    asking = TestClient(app, base_url="http://docs.test", client=("203.0.113.9", 5))
    assert asking.get("/.well-known/oauth-protected-resource/mcp").status_code == 404
