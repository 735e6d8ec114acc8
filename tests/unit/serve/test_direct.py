"""Direct requests to a replica: each passes unchanged, or is left to Ray's proxy."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from kit.api import serving
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.proxy.bodies import WholeBodies
from serve.proxy.direct import DirectToReplica
from serve.proxy.replica_loss import AnswerReplicaLoss
from serve.proxy.replicas import RunningReplicas

READER = "203.0.113.9"


class Ports:
    """Replicas at these ports."""

    def __init__(self, *ports: int) -> None:
        self.ports = ports

    def ports_for(self, path: str) -> list[int]:
        return list(self.ports)

    def counted(self, port: int) -> contextlib.AbstractContextManager[None]:
        return nullcontext()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    seen = {
        "method": scope["method"], "target": scope["raw_path"].decode(), "query": scope["query_string"].decode(),
        "headers": [(n.decode(), v.decode()) for n, v in scope["headers"]],
        "client": scope["client"][0], "scheme": scope["scheme"], "body": (await request.body()).decode(),
    }  # fmt: skip
    await JSONResponse(seen, 418, {"X-Request-ID": "r-1"})(scope, receive, send)


async def ray(scope: Scope, receive: Receive, send: Send) -> None:
    """Act as Ray's proxy, and answer with the received body."""
    await Response(await Request(scope, receive).body(), 299)(scope, receive, send)


def asked(body: Sequence[Message] = (), **more: Any) -> tuple[Scope, Receive]:
    """Return a request as the proxy's server passes it on. Its client stays until the reply arrives."""
    messages = iter(body or [{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        if message := next(messages, None):
            return message
        await asyncio.sleep(60)
        raise AssertionError

    scope = {
        "type": "http", "method": "POST", "path": "/a b/c", "raw_path": b"/a%20b/c", "query_string": b"", "headers": [],
        "client": (READER, 1234), "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"}, **more,
    }  # fmt: skip
    return scope, receive


async def reply_of(direct: ASGIApp, scope: Scope, receive: Receive) -> tuple[int, list[tuple[str, str]], bytes]:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    await WholeBodies(direct)(scope, receive, send)
    headers = [(n.decode().lower(), v.decode()) for n, v in messages[0]["headers"]]
    assert not messages[-1].get("more_body")
    return messages[0]["status"], headers, b"".join(m["body"] for m in messages[1:])


@asynccontextmanager
async def direct(app: ASGIApp, ports: Any) -> AsyncIterator[DirectToReplica]:
    made = DirectToReplica(app, ports)
    try:
        yield made
    finally:
        await made.close()


async def echoed(*body: Message, **more: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the request as a replica saw it, and the headers of its reply."""
    async with serving(echo) as port, direct(ray, Ports(port)) as proxy:
        status, headers, seen = await reply_of(proxy, *asked(body, **more))
    assert status == 418, (status, seen)
    return json.loads(seen), headers


def test_replica_sees_the_original_request():
    headers = [
        (b"host", b"docs.example"), (b"x-request-id", b"r-1"), (b"cookie", b"a=b"), (b"content-length", b"5"),
        (b"accept", b"*/*"), (b"accept", b"text/html"), (b"connection", b"keep-alive, x"), (b"te", b"trailers"),
    ]  # fmt: skip
    parts = [{"type": "http.request", "body": part, "more_body": part == b"he"} for part in (b"he", b"llo")]
    seen, reply = asyncio.run(echoed(*parts, headers=headers, raw_path=b"/a%2Fb/../c//d", query_string=b"x=%20&y"))
    assert (seen["method"], seen["target"], seen["query"]) == ("POST", "/a%2Fb/../c//d", "x=%20&y")
    assert seen["body"] == "hello" and seen["client"] == READER
    added = [("x-forwarded-for", READER), ("x-forwarded-proto", "http")]
    kept = [(n.decode(), v.decode()) for n, v in headers if n not in (b"connection", b"te")]
    assert sorted(map(tuple, seen["headers"])) == sorted([*kept, *added])
    assert [v for n, v in reply if n == "x-request-id"] == ["r-1"]
    assert not {"date", "server", "connection"} & {n for n, _ in reply}  # the proxy's server writes its own


async def test_question_that_dies_with_its_replica_is_503_with_its_id():
    heads = list[str]()

    async def dies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.close()

    server = await asyncio.start_server(dies, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, direct(ray, Ports(port)) as proxy:
        status, headers, _ = await reply_of(AnswerReplicaLoss(proxy), *asked())
    assert status == 503 and f"x-request-id: {dict(headers)['x-request-id']}\r\n" in heads[0]


def test_sender_can_forge_neither_address_nor_scheme():
    forged = [(b"x-forwarded-for", b"127.0.0.1"), (b"X-Forwarded-For", b"127.0.0.1"), (b"x-forwarded-proto", b"https")]
    seen, _ = asyncio.run(echoed(headers=[(n.lower(), v) for n, v in forged]))
    assert (seen["client"], seen["scheme"]) == (READER, "http")
    unknown, _ = asyncio.run(echoed(client=None))
    assert unknown["client"] == "unknown"  # not an address of this machine
    over_tls, _ = asyncio.run(echoed(scheme="https"))
    assert over_tls["scheme"] == "https"


async def test_replica_is_told_that_its_client_left():
    ended, came, parts = asyncio.Event(), asyncio.Event(), list[bytes]()

    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async def send(message: Message) -> None:
        if message.get("body"):
            parts.append(message["body"])
            came.set()

    scope, whole = asked()

    async def receive() -> Message:
        if came.is_set() or scope.setdefault("read", False):
            await came.wait()
            return {"type": "http.disconnect"}
        scope["read"] = True
        return await whole()

    async with serving(streaming) as port, direct(ray, Ports(port)) as proxy:
        await WholeBodies(proxy)(scope, receive, send)
        await asyncio.wait_for(ended.wait(), 60)
    assert parts == [b"first"]


@pytest.mark.parametrize("more", [
    {"path": "/-/healthz"}, {"raw_path": b"*"}, {"raw_path": b"/\xc3\xa9"}, {"raw_path": b"/a#b"},
    {"headers": [(b"x-name", b"\xe9")]},
])  # fmt: skip
def test_unusual_requests_go_through_ray(more: dict[str, Any]):
    status, _, _ = asyncio.run(reply_of(DirectToReplica(ray, Ports(1)), *asked(**more)))
    assert status == 299


@pytest.mark.parametrize("path", ["/-/routes", "/-/", "/-/metrics", "/docs/-/routes"])
def test_application_list_of_the_proxy_is_not_exposed(path: str):
    more = {"root_path": "/docs"} if path.startswith("/docs") else {}
    status, _, _ = asyncio.run(reply_of(DirectToReplica(ray, Ports(1)), *asked(path=path, **more)))
    assert status == 404


def test_long_body_is_passed_completely():
    seen, _ = asyncio.run(
        echoed(*({"type": "http.request", "body": b"x" * 40_000, "more_body": n < 3} for n in range(4)))
    )
    assert len(seen["body"]) == 160_000


async def test_unfinished_body_is_not_passed():
    cut = [{"type": "http.request", "body": b"delete all but", "more_body": True}, {"type": "http.disconnect"}]
    async with serving(echo) as port, direct(ray, Ports(port)) as proxy:
        with pytest.raises(IndexError):  # no reply
            await reply_of(proxy, *asked(cut))


def test_body_ends_where_the_proxy_saw_its_end():
    """A Content-Length next to chunks does not count: the rest would become the next request."""
    chunked = [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")]
    seen, _ = asyncio.run(echoed({"type": "http.request", "body": b"hello"}, headers=chunked))
    assert seen["body"] == "hello"


def test_replica_puts_the_root_path_before_the_path():
    seen, _ = asyncio.run(echoed(root_path="/docs", path="/docs/a b", raw_path=b"/docs/a%20b"))
    assert seen["target"] == "/a%20b"


async def test_unreachable_replica_is_skipped():
    async with serving(echo) as port:
        pass
    async with serving(echo) as other, direct(ray, Ports(port, other)) as proxy:
        status, _, _ = await reply_of(proxy, *asked())
    assert status == 418
    async with direct(ray, Ports(port)) as proxy:
        status, _, body = await reply_of(proxy, *asked([{"type": "http.request", "body": b"again"}]))
    assert (status, body) == (299, b"again")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> RunningReplicas:
    """The proxy's knowledge of replicas, set by the test instead of Serve's controller."""
    monkeypatch.setattr(RunningReplicas, "listen", staticmethod(lambda listeners: SimpleNamespace(stop=lambda: None)))
    monkeypatch.setattr("ray.get_runtime_context", lambda: SimpleNamespace(get_node_id=lambda: "here"))
    return RunningReplicas()


def test_least_busy_replica_of_the_longest_prefix_comes_first(known: RunningReplicas):
    assert known.ports_for("/query") == []
    known.take_routes({"docs": SimpleNamespace(route="/"), "llm": SimpleNamespace(route="/llm")})
    known.take("docs", running(("here", 30_000), ("here", None), ("there", 30_001), ("here", 30_002)))
    known.take("llm", running(("here", 30_003)))
    assert known.ports_for("/llm") == known.ports_for("/llm/v1/models") == [30_003]
    assert known.ports_for("/llms.txt") == [30_000, 30_002]
    with known.counted(30_000):
        assert known.ports_for("/query") == [30_002, 30_000]
    known.take("docs", running())
    known.take_routes({"docs": SimpleNamespace(route="/")})
    assert known.ports_for("/query") == known.ports_for("/llm/v1/models") == []


async def test_concurrent_questions_are_spread_over_the_replicas(known: RunningReplicas):
    """All heads arrive before any body."""
    asked_of, all_here = Counter[int](), asyncio.Barrier(8)  # an early end would make room for another
    known.ports_for("/")

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        asked_of[scope["server"][1]] += 1
        await all_here.wait()
        await echo(scope, receive, send)

    async def ask(proxy: DirectToReplica) -> None:
        scope, receive = asked()

        async def later() -> Message:
            await asyncio.sleep(0.01)
            return await receive()

        await reply_of(proxy, scope, later)

    async with serving(counting) as one, serving(counting) as other:
        known.take_routes({"docs": SimpleNamespace(route="/")})
        known.take("docs", running(("here", one), ("here", other)))
        async with direct(ray, known) as proxy:
            await asyncio.gather(*(ask(proxy) for _ in range(8)))
    assert sorted(asked_of.values()) == [4, 4]


def running(*replicas: tuple[str, int | None]) -> SimpleNamespace:
    found = [SimpleNamespace(node_id=node, backend_http_port=port) for node, port in replicas]
    return SimpleNamespace(running_replicas=found)
