"""How much may be asked: sizes, rates and places hold whatever a client claims, and every refusal says what to do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from kit.guarded import SilentMetrics
from starlette.testclient import TestClient

from pipelines.store import Key, StoreUnavailable, TokenGrant, key_hash
from serve.guard.bodies import BodyLimit
from serve.guard.limits import QuestionLimit
from serve.guard.policy import Policy, UnsafePolicy, protect

TOKEN = "rdx_" + "a" * 43
FREE = "rdx_" + "b" * 43
SLOW = "rdx_" + "c" * 43


class Guard:
    """A store of three keys whose buckets never refill."""

    def __init__(self) -> None:
        self.keys = {TOKEN: Key("ci", ("query",)), FREE: Key("free", ("query",), 0), SLOW: Key("slow", ("query",), 2)}
        self.left: dict[str, float] = {}
        self.away = False

    def find_key(self, hash: bytes) -> Key | None:
        return next((key for token, key in self.keys.items() if key_hash(token) == hash), None)

    def service_secret(self) -> bytes:
        return b"s" * 32

    def bound_origins(self) -> frozenset[str]:
        return frozenset()

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        if self.away:
            raise StoreUnavailable("gone")
        left = self.left.setdefault(key, burst)
        if left < 1:
            return TokenGrant(False, 29.5, left)
        self.left[key] = left - 1
        return TokenGrant(True, 0.0, left - 1)


def application() -> FastAPI:
    app = FastAPI()

    @app.post("/query")
    async def query(request: Request) -> dict[str, Any]:
        body = await request.body()
        return {"bytes": len(body), "key": request.state.key.name}

    @app.post("/v1/chat/completions")
    async def chat() -> dict[str, str]:
        return {}

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {}

    return app


@pytest.fixture
def guard() -> Guard:
    return Guard()


def client(guard: Guard, **policy: Any) -> TestClient:
    app = protect(application(), guard, Policy(**{"host": "0.0.0.0", **policy}), SilentMetrics())
    return TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5), raise_server_exceptions=False)


def auth(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# ------------------------------------------------------------------------------------------------ policy


@pytest.mark.parametrize(
    ("host", "required", "needed"),
    [
        ("127.0.0.1", None, False), ("::1", None, False), ("localhost", None, False), ("0.0.0.0", None, True),
        ("10.1.2.3", None, True), ("docs.example.com", None, True), ("127.0.0.1", True, True),
        ("0.0.0.0", False, False),
    ],
)  # fmt: skip
def test_keys_are_off_by_default_only_on_loopback(host: str, required: bool | None, needed: bool) -> None:
    assert Policy(host=host, keys_required=required).required is needed


def test_a_protected_application_knows_its_key(guard: Guard) -> None:
    reply = client(guard).post("/query", content=b"{}", headers=auth(TOKEN)).json()
    assert reply["key"] == "ci" and reply["bytes"] == 2
    assert client(guard, host="127.0.0.1").post("/query", content=b"").json()["key"] == ""


def test_a_refusal_under_v1_has_the_shape_that_openais_clients_read(guard: Guard) -> None:
    refused = client(guard).post("/v1/chat/completions")
    assert refused.status_code == 401 and refused.json()["error"]["code"] == "invalid_api_key"


# ------------------------------------------------------------------------------------------------ rate


def test_beyond_its_rate_a_key_is_told_when_to_come_back(guard: Guard) -> None:
    asking = client(guard, rate=2)
    replies = [asking.post("/query", headers=auth(TOKEN)) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert replies[0].headers["RateLimit-Limit"] == "2" and replies[0].headers["RateLimit-Remaining"] == "1"
    assert replies[2].headers["Retry-After"] == "30" and replies[2].headers["RateLimit-Remaining"] == "0"
    assert "2 a minute" in replies[2].json()["error"]
    assert (replies[2].json()["kind"], replies[2].json()["retry_after"]) == ("rate", 30)


def test_a_keys_own_rate_beats_the_services_and_zero_is_no_limit(guard: Guard) -> None:
    asking = client(guard, rate=1)
    assert [asking.post("/query", headers=auth(SLOW)).status_code for _ in range(3)] == [200, 200, 429]
    assert {asking.post("/query", headers=auth(FREE)).status_code for _ in range(5)} == {200}


def test_health_is_never_limited_and_refused_keys_take_nothing(guard: Guard) -> None:
    asking = client(guard, rate=1)
    assert {asking.get("/health").status_code for _ in range(3)} == {200}
    assert asking.post("/query", headers=auth("wrong")).status_code == 401
    assert guard.left == {}


def test_those_without_a_key_have_one_rate_together(guard: Guard) -> None:
    asking = client(guard, host="127.0.0.1", anonymous_rate=1)
    assert [asking.post("/query").status_code for _ in range(2)] == [200, 429]
    assert {client(guard, host="127.0.0.1", rate=1).post("/query").status_code for _ in range(3)} == {200}


def test_a_rate_that_can_not_be_checked_lets_nothing_through(guard: Guard) -> None:
    guard.away = True
    refused = client(guard, rate=1).post("/query", headers=auth(TOKEN))
    assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0


# ------------------------------------------------------------------------------------------------ size


@pytest.mark.parametrize(("size", "status"), [(0, 200), (1000, 200), (1001, 413)])
def test_a_body_may_be_as_large_as_said(guard: Guard, size: int, status: int) -> None:
    reply = client(guard, max_body_bytes=1000).post("/query", content=b"x" * size, headers=auth(TOKEN))
    assert reply.status_code == status
    assert reply.json()["bytes"] == size if status == 200 else "1000 bytes" in reply.json()["error"]


class Connection:
    """A client's end: it sends `messages`, the last one for ever, and keeps what the application sends."""

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
def test_a_body_without_end_is_stopped_at_the_limit_or_unread_if_it_says_its_length(length: Any, read: int) -> None:
    connection = Connection(PIECE)
    headers = [(b"content-length", length)] if length else []
    asyncio.run(BodyLimit(takes_body, 1000)(request(headers=headers), connection.receive, connection.send))
    assert connection.status == 413 and connection.received == read


def test_a_body_in_pieces_comes_whole() -> None:
    connection = Connection(PIECE, PIECE, {"type": "http.request", "body": b"end", "more_body": False})
    asyncio.run(BodyLimit(takes_body, 1000)(request(), connection.receive, connection.send))
    assert connection.sent[1]["body"] == b"x" * 800 + b"end"


def test_a_client_that_leaves_while_sending_reaches_no_application() -> None:
    connection = Connection(PIECE, {"type": "http.disconnect"})
    asyncio.run(BodyLimit(takes_body, 1000)(request(), connection.receive, connection.send))
    assert connection.sent == []


def test_a_body_that_never_ends_is_not_waited_for() -> None:
    async def never() -> Any:
        await asyncio.sleep(60)

    connection = Connection(PIECE)
    asyncio.run(BodyLimit(takes_body, 1000, timeout_s=0.01)(request(), never, connection.send))
    assert connection.status == 408


def test_an_application_hears_that_its_client_has_gone() -> None:
    heard = []

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        heard.extend([await receive(), await receive()])

    connection = Connection({"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"})
    asyncio.run(BodyLimit(listening, 1000)(request(), connection.receive, connection.send))
    assert heard[1] == {"type": "http.disconnect"}


# ------------------------------------------------------------------------------------------------ places


def test_beyond_its_places_a_replica_says_come_back_and_a_place_is_freed_however_a_question_ends() -> None:
    async def scenario() -> None:
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
        waiting = ask(Connection(PIECE), method="GET")  # no question: takes no place
        await asyncio.sleep(0)
        assert places.in_progress == 3
        under_way[0].cancel()  # the client has gone
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert places.in_progress == 2
        go_on.set()
        await asyncio.gather(*under_way, waiting, return_exceptions=True)
        assert places.in_progress == 0

    asyncio.run(scenario())


def test_a_stream_leaves_piece_by_piece(guard: Guard) -> None:
    """Each piece leaves before the next is made: no layer of the protection buffers."""
    made: list[str] = []
    left: list[tuple[bytes, int]] = []
    app = application()

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

    headers = [(b"authorization", b"Bearer " + TOKEN.encode()), (b"origin", b"https://a.test")]
    scope = request(path="/stream", query_string=b"", headers=headers, asgi={"spec_version": "2.4"})
    protected = protect(app, guard, Policy(host="0.0.0.0", rate=5, cors_origins=["https://a.test"]), SilentMetrics())
    asyncio.run(protected(scope, receive, send))  # type: ignore[arg-type]
    assert left == [(b"a", 1), (b"b", 2), (b"c", 3)]


# ------------------------------------------------------------------------------------------------ CORS


def test_pages_on_the_list_may_ask_and_read_refusals_too(guard: Guard) -> None:
    asking = client(guard, cors_origins=["https://docs.test"])
    origin = {"Origin": "https://docs.test"}
    asks = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = asking.options("/query", headers=asks)
    assert preflight.status_code == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == "https://docs.test"
    refused = asking.post("/query", headers=origin)
    assert refused.status_code == 401 and refused.headers["Access-Control-Allow-Origin"] == "https://docs.test"
    assert "Access-Control-Allow-Credentials" not in refused.headers


def test_other_pages_may_not(guard: Guard) -> None:
    for asking in (client(guard, cors_origins=["https://docs.test"]), client(guard)):
        reply = asking.post("/query", headers={"Origin": "https://evil.test", **auth(TOKEN)})
        assert "Access-Control-Allow-Origin" not in reply.headers


def test_a_service_without_keys_is_not_opened_to_every_page(guard: Guard) -> None:
    with pytest.raises(UnsafePolicy, match="name the origins"):
        protect(application(), guard, Policy(host="127.0.0.1", cors_origins=["*"]))
