"""Limits: sizes, rates and places hold for any claim of a client, and every refusal says what to do."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from kit.guarded import SECRET, GuardedStore, SilentMetrics, bearer, client, guarded
from starlette.testclient import TestClient

from pipelines.store import Key, StoreUnavailable, TokenGrant
from serve.guard.bodies import BodyLimit
from serve.guard.limits import QuestionLimit
from serve.guard.policy import Policy, are_keys_required, protect

LISTED = "https://wiki.test"
FREE, SLOW = "rdx_" + "e" * 43, "rdx_" + "f" * 43
QUESTION = {"question": "How do I load csv files?"}


@pytest.fixture
def store() -> GuardedStore:
    """Return a store in which two keys have their own rate: none, and two per minute."""
    store = GuardedStore()
    store.keys |= {FREE: Key("free", ("query",), 0), SLOW: Key("slow", ("query",), 2)}
    return store


def elsewhere(store: GuardedStore, **policy: Any) -> TestClient:
    """Return a client on another machine, which needs a key."""
    return client(guarded(store, **policy))


def here(store: GuardedStore, **policy: Any) -> TestClient:
    return client(guarded(store, host="127.0.0.1", **policy), "127.0.0.1", "127.0.0.1:8000")


def ask(asking: TestClient, token: str = "") -> Any:
    return asking.post("/query", json=QUESTION, headers=bearer(token))


# ------------------------------------------------------------------------------------------------ policy


@pytest.mark.parametrize(("host", "required", "needed"), [
    ("127.0.0.1", None, False), ("::1", None, False), ("localhost", None, False), ("0.0.0.0", None, True),
    ("10.1.2.3", None, True), ("docs.example.com", None, True), ("127.0.0.1", True, True),
    ("0.0.0.0", False, False),
])  # fmt: skip
def test_keys_are_off_by_default_only_on_loopback(host: str, required: bool | None, needed: bool) -> None:
    assert are_keys_required(Policy(host=host, keys_required=required)) is needed


def test_refusal_under_v1_has_the_format_of_openai(store: GuardedStore) -> None:
    refused = elsewhere(store).post("/v1/chat/completions")
    assert refused.status_code == 401 and refused.json()["error"]["code"] == "invalid_api_key"


# ------------------------------------------------------------------------------------------------ rate


def test_key_over_its_rate_is_told_when_to_retry(store, monkeypatch):
    asking = elsewhere(store, rate=2)
    first, second, third = (ask(asking, SECRET) for _ in range(3))
    assert [reply.status_code for reply in (first, second, third)] == [200, 200, 429]
    assert first.headers["RateLimit-Limit"] == "2" and first.headers["RateLimit-Remaining"] == "1"
    monkeypatch.setattr(store, "take_token", lambda *_: TokenGrant(False, 29.5, 0.5))
    refused = ask(asking, SECRET)
    assert refused.headers["Retry-After"] == "30" and refused.headers["RateLimit-Remaining"] == "0"
    assert "2 a minute" in refused.json()["error"]
    assert (refused.json()["kind"], refused.json()["retry_after"]) == ("rate", 30)


def test_rate_of_a_key_wins_over_the_service_and_zero_means_unlimited(store: GuardedStore) -> None:
    asking = elsewhere(store, rate=1)
    assert [ask(asking, SLOW).status_code for _ in range(3)] == [200, 200, 429]
    assert {ask(asking, FREE).status_code for _ in range(5)} == {200}


def test_health_is_never_limited_and_refused_keys_use_up_nothing(store: GuardedStore) -> None:
    asking = elsewhere(store, rate=1)
    assert {asking.get("/health").status_code for _ in range(3)} == {200}
    assert ask(asking, "rdx_" + "z" * 43).status_code == ask(asking, "wrong").status_code == 401
    assert store.left == {}


def test_clients_without_a_key_share_one_rate(store: GuardedStore) -> None:
    asking = here(store, anonymous_rate=1)
    assert [ask(asking).status_code for _ in range(2)] == [200, 429]
    unlimited = here(store, rate=1)
    assert {ask(unlimited).status_code for _ in range(3)} == {200}


def test_unverifiable_rate_lets_nothing_through(store, monkeypatch):
    def gone(*_: Any) -> TokenGrant:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(store, "take_token", gone)
    refused = ask(elsewhere(store, rate=1), SECRET)
    assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0


# ------------------------------------------------------------------------------------------------ size


@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 413)])
def test_body_size_limit_is_exact(store: GuardedStore, size: int, status: int) -> None:
    body, headers = json.dumps(QUESTION).ljust(size), {"Content-Type": "application/json", **bearer(SECRET)}
    reply = elsewhere(store, max_body_bytes=1000).post("/query", content=body, headers=headers)
    assert reply.status_code == status and (status == 200 or "1,000 bytes" in reply.json()["error"])


class Connection:
    """A client's side: it sends `messages`, the last one forever, and records the application's messages."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages = list(messages)
        self.received, self.sent = 0, []  # type: ignore[var-annotated]

    async def receive(self) -> dict[str, Any]:
        self.received += 1
        return self._messages.pop(0) if len(self._messages) > 1 else self._messages[0]

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None


def request(**more: Any) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": "/query", "headers": [], **more}


async def takes_body(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


PIECE = {"type": "http.request", "body": b"x" * 400, "more_body": True}


@pytest.mark.parametrize(("length", "read"), [(None, 3), (b"5", 3), (b"-1", 3), (b"1001", 0)])
def test_oversized_body_is_stopped_at_the_limit_or_not_read_at_all(length: Any, read: int) -> None:
    connection = Connection(PIECE)
    headers = [(b"content-length", length)] if length else []
    asyncio.run(BodyLimit(takes_body, 1000)(request(headers=headers), connection.receive, connection.send))
    assert connection.status == 413 and connection.received == read


def test_chunked_body_arrives_completely() -> None:
    connection = Connection(PIECE, PIECE, {"type": "http.request", "body": b"end", "more_body": False})
    asyncio.run(BodyLimit(takes_body, 1000)(request(), connection.receive, connection.send))
    assert connection.sent[1]["body"] == b"x" * 800 + b"end"


def test_client_that_leaves_while_sending_reaches_no_application() -> None:
    connection = Connection(PIECE, {"type": "http.disconnect"})
    asyncio.run(BodyLimit(takes_body, 1000)(request(), connection.receive, connection.send))
    assert connection.sent == []


def test_endless_body_is_not_waited_for() -> None:
    async def never() -> Any:
        await asyncio.sleep(60)

    connection = Connection(PIECE)
    asyncio.run(BodyLimit(takes_body, 1000, timeout_s=0.01)(request(), never, connection.send))
    assert connection.status == 408


def test_application_is_told_that_its_client_left() -> None:
    heard = []

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        heard.extend([await receive(), await receive()])

    connection = Connection({"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"})
    asyncio.run(BodyLimit(listening, 1000)(request(), connection.receive, connection.send))
    assert heard[1] == {"type": "http.disconnect"}


# ------------------------------------------------------------------------------------------------ places


async def test_full_replica_says_come_back_and_every_end_of_a_question_frees_it() -> None:
    go_on = asyncio.Event()

    async def answering(scope: Any, receive: Any, send: Any) -> None:
        await go_on.wait()
        if scope["path"] == "/broken":
            raise RuntimeError("boom")

    places = QuestionLimit(answering, 3)

    def ask(connection: Connection, **more: Any) -> asyncio.Task[None]:
        return asyncio.ensure_future(places(request(**more), connection.receive, connection.send))

    under_way = [ask(Connection(PIECE)), ask(Connection(PIECE)), ask(Connection(PIECE), path="/broken")]
    await asyncio.sleep(0)
    refused = Connection(PIECE)
    await ask(refused)
    assert refused.status == 503 and (b"retry-after", b"2") in refused.sent[0]["headers"]
    waiting = ask(Connection(PIECE), method="GET")  # not a question: takes no place
    await asyncio.sleep(0)
    assert places.in_progress == 3
    under_way[0].cancel()  # the client left
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert places.in_progress == 2
    go_on.set()
    await asyncio.gather(*under_way, waiting, return_exceptions=True)
    assert places.in_progress == 0


def test_stream_is_sent_piece_by_piece(store: GuardedStore) -> None:
    """Each piece is sent before the next is produced: no layer of the protection buffers."""
    made: list[str] = []
    left: list[tuple[bytes, int]] = []
    app = FastAPI()

    @app.post("/stream")
    async def stream() -> StreamingResponse:
        async def pieces() -> AsyncIterator[str]:
            for piece in "abc":
                made.append(piece)
                yield piece

        return StreamingResponse(pieces())

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            left.append((message["body"], len(made)))

    async def receive() -> dict[str, Any]:
        if not left:
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    headers = [(b"authorization", b"Bearer " + SECRET.encode()), (b"origin", b"https://a.test")]
    scope = request(path="/stream", query_string=b"", headers=headers, asgi={"spec_version": "2.4"})
    protected = protect(
        app, store, Policy(host="0.0.0.0", limits={"rate": 5}, cors_origins=["https://a.test"]), SilentMetrics()
    )
    asyncio.run(protected(scope, receive, send))  # type: ignore[arg-type]
    assert left == [(b"a", 1), (b"b", 2), (b"c", 3)]


# ------------------------------------------------------------------------------------------------ CORS


def test_listed_origins_can_query_and_read_refusals_and_others_cannot(store: GuardedStore) -> None:
    asking, origin = elsewhere(store, cors_origins=[LISTED]), {"Origin": LISTED}
    asks = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = asking.options("/query", headers=asks)
    assert preflight.status_code == 204 and preflight.headers["Access-Control-Allow-Origin"] == LISTED
    refused = asking.post("/query", headers=origin)
    assert refused.status_code == 401 and refused.headers["Access-Control-Allow-Origin"] == LISTED
    assert "Access-Control-Allow-Credentials" not in refused.headers
    other = asking.post("/query", headers={"Origin": "https://other.test", **bearer(SECRET)})
    assert "Access-Control-Allow-Origin" not in other.headers
