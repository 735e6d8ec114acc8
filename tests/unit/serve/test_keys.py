"""Access: without a key only this machine is allowed, and an unreachable database opens nothing."""

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from pipelines.store import Key, StoreUnavailable, key_hash
from serve.guard.keys import MOST_CACHED, KeyCache, KeyCheck, key_of
from serve.guard.origin import is_local, is_loopback
from serve.threads import DatabaseThreads

TOKEN = "rdx_" + "a" * 43
ADMIN = "rdx_" + "b" * 43
UNKNOWN = "rdx_" + "c" * 43


class Keyring:
    """A store with two keys that counts look-ups and can be unreachable."""

    def __init__(self) -> None:
        self.keys = {key_hash(TOKEN): Key("ci", ("query",)), key_hash(ADMIN): Key("boss", ("admin",))}
        self.asked, self.away = 0, False

    def find_key(self, hash: bytes) -> Key | None:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("gone")
        return self.keys.get(hash)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the key's name."""
    key = key_of(scope)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"open" if key is None else key.name.encode()})


@pytest.fixture
def ring() -> Keyring:
    return Keyring()


def client(
    ring: Keyring, required: bool = True, came_from: str = "127.0.0.1", host: str = "127.0.0.1:8000"
) -> TestClient:
    app = KeyCheck(echo, KeyCache(ring, DatabaseThreads()), required)
    return TestClient(app, base_url=f"http://{host}", client=(came_from, 5))


def auth(token: str, scheme: str = "Bearer") -> dict[str, str]:
    return {"Authorization": f"{scheme} {token}"}


def test_only_open_paths_need_no_key(ring: Keyring) -> None:
    asking = client(ring, came_from="10.0.0.9")
    for path in ("/", "/health", "/health/ready"):
        assert asking.get(path).text == "open", path
    for path in ("/query", "/docs", "/openapi.json", "/nothing", "/v1/models"):
        refused = asking.get(path)
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Bearer"), path
        assert "raydex keys create" in refused.text


@pytest.mark.parametrize("headers", [
    auth(UNKNOWN), auth(TOKEN[:-1]), auth(TOKEN + "a"), auth(""), auth(TOKEN, "Basic"), auth("rdx_" + "ü" * 43),
    {"Authorization": TOKEN}, {"X-API-Key": TOKEN}, auth("sk-other"),
])  # fmt: skip
def test_invalid_key_opens_nothing(ring: Keyring, headers: dict[str, str]) -> None:
    sent = {name: value.encode("utf-8") for name, value in headers.items()}
    assert client(ring).get("/query", headers=sent).status_code == 401  # type: ignore[arg-type]


def test_valid_key_is_known_to_the_application(ring: Keyring) -> None:
    assert client(ring).get("/query", headers=auth(TOKEN)).text == "ci"
    assert client(ring).get("/query", headers=auth(TOKEN, "bearer")).text == "ci"


def test_admin_implies_query_but_query_does_not_imply_admin(ring: Keyring) -> None:
    assert client(ring).get("/query", headers=auth(ADMIN)).text == "boss"
    assert client(ring).get("/admin/keys", headers=auth(ADMIN)).text == "boss"
    refused = client(ring).get("/admin/keys", headers=auth(TOKEN))
    assert refused.status_code == 403 and "admin" in refused.json()["error"]
    assert client(ring, required=False).get("/admin").status_code == 403


def test_unreachable_database_opens_nothing_and_is_not_cached(ring: Keyring) -> None:
    asking, ring.away = client(ring), True
    refused = asking.get("/query", headers=auth(TOKEN))
    assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0 and "gone" in refused.json()["error"]
    assert asking.get("/health").status_code == 200
    ring.away = False
    assert asking.get("/query", headers=auth(TOKEN)).status_code == 200


def test_hanging_database_ends_in_503() -> None:
    go_on = threading.Event()

    class Hanging:
        def find_key(self, hash: bytes) -> Key | None:
            go_on.wait(60)
            return None

    app = KeyCheck(echo, KeyCache(Hanging(), DatabaseThreads(threads=1, timeout_s=0.05)), True)
    try:
        assert TestClient(app).get("/query", headers=auth(TOKEN)).status_code == 503
    finally:
        go_on.set()


async def test_lookup_is_cached_and_a_revoked_key_ends_with_it(ring: Keyring) -> None:
    now = [0.0]
    keys = KeyCache(ring, DatabaseThreads(), keep_s=30, clock=lambda: now[0])
    assert await keys.find(TOKEN) and await keys.find(TOKEN) and ring.asked == 1
    assert await keys.find(UNKNOWN) is None and await keys.find(UNKNOWN) is None and ring.asked == 2
    ring.keys.clear()
    now[0] = 29.9
    assert await keys.find(TOKEN) is not None
    now[0] = 30.0
    assert await keys.find(TOKEN) is None and ring.asked == 3


async def test_guessed_keys_fill_no_memory_and_malformed_ones_are_not_looked_up(ring: Keyring) -> None:
    keys = KeyCache(ring, DatabaseThreads())
    for n in range(MOST_CACHED + 50):
        await keys.find("rdx_" + f"{n:043}")
    assert len(keys._keys) == MOST_CACHED
    before = ring.asked
    await keys.find("rdx_short")
    assert ring.asked == before


# -------------------------------------------------------------------------------- without keys: this machine only


@pytest.mark.parametrize(
    ("came_from", "host", "headers", "status"),
    [
        ("127.0.0.1", "127.0.0.1:8000", {}, 200),
        ("::1", "localhost:1", {}, 200),
        ("127.8.8.8", "[::1]:8000", {}, 200),
        ("127.0.0.1", "127.0.0.1:8000", auth("sk-none"), 200),
        ("127.0.0.1", "127.0.0.1:8000", auth(UNKNOWN), 401),  # an error even where no key is required
        ("10.0.0.9", "127.0.0.1:8000", {}, 401),
        ("10.0.0.9", "127.0.0.1:8000", auth(TOKEN), 200),
        ("127.0.0.1", "evil.example", {}, 401),  # a page whose host name was pointed here
        # A proxy on this machine makes no client local.
        ("127.0.0.1", "127.0.0.1:8000", {"X-Forwarded-For": "10.0.0.9"}, 401),
        ("127.0.0.1", "127.0.0.1:8000", {"X-Forwarded-For": "127.0.0.1, 10.0.0.9"}, 401),
        ("127.0.0.1", "127.0.0.1:8000", {"Forwarded": "for=10.0.0.9"}, 401),
    ],
)
def test_only_this_machine_can_query_without_keys(ring, came_from, host, headers, status):
    reply = client(ring, False, came_from, host).get("/query", headers=headers)
    assert reply.status_code == status
    if status == 200:
        assert reply.text == ("ci" if headers == auth(TOKEN) else "")
    else:
        assert "raydex keys create" in reply.json()["error"]
        assert reply.json()["kind"] == ("bad_key" if headers == auth(UNKNOWN) else "no_key")


def test_loopback_addresses_are_local_but_an_unknown_sender_is_not() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"]))
    others = ["0.0.0.0", "::", "", "10.0.0.1", "localhost.evil", "::ffff:10.0.0.1", "testclient"]
    assert not any(map(is_loopback, others))
    assert not is_local({"type": "http", "headers": [], "client": None})


def test_websocket_is_closed(ring: Keyring) -> None:
    with pytest.raises(WebSocketDisconnect), client(ring).websocket_connect("/query"):
        pass


def test_path_is_taken_below_the_root_of_the_application(ring: Keyring) -> None:
    below = TestClient(KeyCheck(echo, KeyCache(ring, DatabaseThreads()), True), root_path="/docs")
    assert below.get("/docs/health").status_code == 200 and below.get("/docs/query").status_code == 401
