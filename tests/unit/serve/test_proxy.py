"""The proxy's middleware: even if a replica fails, the client gets a reply that says when to retry."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from kit.guarded import DOCS
from ray.serve._private.http_util import validate_http_proxy_callback_return
from starlette.responses import JSONResponse, StreamingResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve import proxy
from serve.failure import MCP_PATH, RETRY_AFTER_S
from serve.proxy import middlewares
from serve.proxy.bodies import WholeBodies
from serve.proxy.direct import DirectToReplica
from serve.proxy.replica_loss import AnswerReplicaLoss

EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]


def start(status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers or []}


def body(text: bytes, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": text, "more_body": more}


def app_sending(*messages: Message, then: Exception | None = None) -> ASGIApp:
    """Return an application that sends `messages` and then dies, silently like Ray's proxy or with an exception."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if then:
            raise then

    return app


async def hangs(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(60)


def messages_of(app: ASGIApp, **more: Any) -> list[Message]:
    """Return the messages that a client of `app` gets."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/query", "headers": [(b"x-request-id", b"r-1")]}
    asyncio.run(app({**scope, "asgi": {"spec_version": "2.4"}, **more}, receive, send))
    return messages


def reply_of(app: ASGIApp, path: str = "/query", **more: Any) -> list[Message]:
    """Return the messages that a client gets from `app` behind the middleware."""
    return messages_of(AnswerReplicaLoss(app, **more), path=path)


def error_of(messages: list[Message]) -> str:
    return str(json.loads(b"".join(m["body"] for m in messages[1:]))["error"])


def is_come_back(messages: list[Message]) -> bool:
    headers = dict(messages[0]["headers"])
    return (
        messages[0]["status"] == 503
        and headers[b"retry-after"].isdigit()
        and headers[b"x-request-id"] == b"r-1"
        and "ask again" in error_of(messages)
    )


DROPPED = (start(503), body(b"Request dropped"))  # by Ray itself


def test_whole_reply_passes_unchanged():
    stream = app_sending(start(200, EVENTS), body(b"event: answer\ndata: {}\n\n", more=True), body(b""))
    for app in (JSONResponse({"a": 1}, 422), StreamingResponse(iter([b"a", b"b"]), headers={"x": "y"}), stream):
        bare = messages_of(app)
        assert reply_of(app_sending(*bare)) == bare


def test_replica_dying_before_the_first_word_is_503_with_retry_after():
    assert is_come_back(reply_of(app_sending()))
    assert is_come_back(reply_of(app_sending(then=RuntimeError("the proxy itself failed"))))
    assert is_come_back(reply_of(app_sending(start(200))))


@pytest.mark.parametrize(
    ("lost", "answered", "said"),
    [
        ((), False, "the service is starting"),
        (DROPPED, False, "the service is starting"),
        ((), True, "the replica that had this question died"),
        (DROPPED, True, "no replica could take this question"),
    ],
)
def test_reply_says_whether_the_service_starts_or_a_replica_died(lost, answered, said):
    turns = [app_sending(start(200, [(b"x-content-type-options", b"nosniff")]), body(b"{}"))] if answered else []
    turns += [app_sending(start(404), body(b"no such route")), app_sending(*lost)]  # Ray's 404 comes from no replica

    async def turn(scope: Scope, receive: Receive, send: Send) -> None:
        await turns.pop(0)(scope, receive, send)

    behind = AnswerReplicaLoss(turn)
    replies = [messages_of(behind) for _ in range(len(turns))]
    assert is_come_back(replies[-1]) and said in error_of(replies[-1])


def test_broken_stream_ends_with_an_error_event():
    messages = reply_of(app_sending(start(200, EVENTS), body(b"event: hits\ndata: {}\n\n", more=True)))
    assert [m["type"] for m in messages] == ["http.response.start", "http.response.body", "http.response.body"]
    name, data = messages[-1]["body"].decode().strip().split("\n")
    assert name == "event: error" and not messages[-1].get("more_body")
    assert json.loads(data.removeprefix("data: "))["retry_after"] == RETRY_AFTER_S


def test_openai_clients_get_errors_in_their_own_format():
    [_, reply] = reply_of(app_sending(), "/v1/chat/completions")
    assert json.loads(reply["body"])["error"]["code"] == "unavailable"
    broken = reply_of(app_sending(start(200, EVENTS), body(b"data: {}\n\n", more=True)), "/v1/chat/completions")
    assert json.loads(broken[-1]["body"].decode().removeprefix("data: "))["error"]["type"] == "server_error"


def test_503_of_ray_is_reported_in_the_words_of_the_service():
    assert is_come_back(reply_of(app_sending(start(503, [(b"retry-after", b"9")]), body(b"Request dropped"))))
    ours = [start(503, [(b"Retry-After", b"9"), (b"x-content-type-options", b"nosniff")]), body(b"saturated")]
    assert reply_of(app_sending(*ours)) == ours


@pytest.mark.parametrize(
    ("path", "size", "status", "shape"),
    [
        ("/query", 10, 503, "kind"),
        ("/query", 2_000, 413, "kind"),
        ("/v1/chat/completions", 10, 503, "error.code"),
        ("/v1/collections/docs/changes", 10, 503, "kind"),
        (MCP_PATH, 10, 503, "jsonrpc"),
        ("/-/routes", 0, 404, "kind"),
    ],
)
def test_refusal_of_the_proxy_has_the_headers_and_format_of_the_service(path, size, status, shape):
    direct = DirectToReplica(app_sending(), SimpleNamespace(ports_for=lambda path: []))
    asking = TestClient(AnswerReplicaLoss(WholeBodies(direct, most_bytes=1_000)), headers={"Origin": DOCS})
    reply = asking.post(path, content=b"x" * size)
    outer, _, inner = shape.partition(".")
    assert reply.status_code == status and (reply.json()[outer][inner] if inner else reply.json()[outer])
    assert reply.headers["access-control-allow-origin"] == DOCS  # the page can read that it may retry
    assert "Retry-After" in reply.headers["access-control-expose-headers"] and len(reply.headers["x-request-id"]) == 32
    assert {"x-content-type-options", "content-security-policy", "referrer-policy"} <= set(reply.headers)
    assert reply.headers["cache-control"] == "no-store"
    preflight = asking.options(path, headers={"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 204 and preflight.headers["access-control-allow-origin"] == DOCS


def test_reply_that_never_starts_is_given_up():
    async def swallows(scope: Scope, receive: Receive, send: Send) -> None:
        """Like Ray's proxy, take a cancellation for a client that left, and just end."""
        try:
            await asyncio.sleep(60)
        except BaseException:
            return

    for app in (hangs, swallows):
        assert is_come_back(reply_of(app, longest_s=0.05))


def test_question_does_not_wait_for_a_starting_replica():
    looks = iter([False, True])
    assert is_come_back(reply_of(hangs, absent=lambda: next(looks), check_s=0.02))


def test_slow_answer_is_waited_for_while_its_replica_runs():
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.2)
        await send(start())
        await send(body(b"a"))

    assert [m.get("body") for m in reply_of(slow, absent=lambda: False, check_s=0.02)] == [None, b"a"]


def test_answer_that_has_started_can_take_its_time():
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start())
        await send(body(b"a", more=True))
        await asyncio.sleep(0.3)
        await send(body(b"b"))

    assert [m["body"] for m in reply_of(slow, longest_s=0.1)[1:]] == [b"a", b"b"]


def test_websockets_are_left_alone():
    assert messages_of(AnswerReplicaLoss(app_sending()), type="websocket") == []


def test_ray_accepts_the_middleware_named_in_the_variable():
    environ = {"RAY_SERVE_ENABLE_DIRECT_INGRESS": "0"}
    proxy.configure(environ)
    assert environ["RAY_SERVE_ENABLE_DIRECT_INGRESS"] == "0"  # set by the operator
    module, name = environ["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"].split(":")
    assert module == proxy.__name__ and getattr(proxy, name) is middlewares
    assert validate_http_proxy_callback_return(middlewares())
