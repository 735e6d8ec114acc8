"""JSON with too many values or too much nesting is refused before any parser sees it, with a short reason."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.guarded import SECRET, GuardedStore, bearer, client, guarded
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pipelines.signing import sign
from pipelines.text.mistakes import MOST_PROBLEMS, mistakes_of
from serve.api.requests import FeedbackIn
from serve.guard.keys import SIGNED, key_of
from serve.guard.shape import MOST_DEPTH, MOST_FIELDS, MOST_OPEN_VALUES, MOST_VALUES, fault_of, most_values

CHANGED = "/v1/collections/docs/changes"
ROUTES = ["/query", "/query/stream", "/search", "/feedback", "/mcp", "/session", "/v1/chat/completions"]
ROUTES += ["/v1/embeddings", "/admin/verified", "/nowhere"]
MANY = 70_000


def fields(number: int) -> bytes:
    return b"{%s}" % b",".join(b'"f%d":0' % n for n in range(number))


HOSTILE = {
    "unknown fields": fields(MANY),
    "the same field": b"{%s}" % b",".join([b'"question":"a"'] * 60_000),
    "variables": b'{"question":"a","variables":%s}' % fields(MANY),
    "lists in lists": b"[" * MANY + b"]" * MANY,
    "objects in objects": b'{"a":' * MANY + b"0" + b"}" * MANY,
    "lists that never end": b'{"question":' + b"[" * 900_000,
    "a long list": b'{"question":[%s]}' % b",".join([b"0"] * 400_000),
    "objects in a list": b'{"history":[%s]}' % b",".join([b'{"a":0,"b":1}'] * 60_000),
    "strings beside each other": b'""' * 400_000 + b"[" * 50 + b"," * 600,
    "UTF-16": json.dumps({f"f{n}": 0 for n in range(MANY // 2)}).encode("utf-16")[:900_000],
    "UTF-16, signs hidden in letters": '{"\u2222":0}'.encode("utf-16-le"),
}


class Spy:
    """Replaces the body parser and counts bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.keys: list[Any] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append(await Request(scope, receive).body())
        self.keys.append(key_of(scope))
        await Response("{}")(scope, receive, send)


def protected() -> tuple[Any, Spy]:
    store, spy = GuardedStore(), Spy()
    return client(guarded(store, spy, max_body_bytes=2_000_000)), spy


@pytest.mark.parametrize("body", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_json_reaches_no_parser_on_any_route(body: bytes) -> None:
    asking, spy = protected()
    for route in ROUTES:
        secret = {} if route == "/session" else bearer(SECRET)
        reply = asking.post(route, content=body, headers=secret)
        assert 400 <= reply.status_code < 500 and len(reply.content) < 1_000, route
    assert spy.bodies == []


PART = {"type": "text", "text": "a, [b] {c}" * 50}
TOOL = {
    "type": "function",
    "function": {"parameters": {"properties": {f"p{n}": {"type": "string"} for n in range(40)}}},
}
LARGE = {
    "/query": [
        {"question": "a", "context": ["x, y"] * 1_000, "history": [{"role": "user", "content": '[{,\\"'}] * 100},
        {"question": "{[," * 30_000},
    ],
    CHANGED: [{"changed": ["https://d.test/"] * 1_000, "deleted": ["https://d.test/"] * 1_000}],
    "/v1/chat/completions": [
        {"messages": [{"role": "user", "content": "a, b"}] * 2_000},
        {"messages": [{"role": "user", "content": [PART]}] * 500, "tools": [TOOL] * 60},
    ],
    "/v1/embeddings": [{"model": "docs", "input": ["a"] * 2_048}],
}


@pytest.mark.parametrize("path", LARGE)
def test_largest_allowed_requests_pass(path: str) -> None:
    for value in LARGE[path]:
        for indent in (None, 1):
            assert fault_of(json.dumps(value, indent=indent).encode(), most_values(path)) == ""


def test_limit_is_named_and_inclusive() -> None:
    for most in (MOST_VALUES, MOST_OPEN_VALUES):
        assert fault_of(b"[%s]" % b",".join([b"0"] * (most - 1)), most) == ""
        assert f"more than {most:,} values" in fault_of(b"[%s]" % b",".join([b"0"] * (most + 1)), most)
    assert fault_of(fields(MOST_FIELDS), MOST_VALUES) == ""
    assert str(MOST_FIELDS) in fault_of(fields(MOST_FIELDS + 1), MOST_VALUES)
    assert fault_of(b"[" * MOST_DEPTH + b"]" * MOST_DEPTH, MOST_VALUES) == ""
    assert str(MOST_DEPTH) in fault_of(b"[" * (MOST_DEPTH + 1), MOST_VALUES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just('\\"[{,'),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=8),
    max_leaves=60,
)


def count(value: Any) -> int:
    """Count JSON values like `fault_of`, which looks only at punctuation and counts one value in an empty list."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(count(one) for one in inner) if inner else 1 + isinstance(value, list | dict)


@settings(max_examples=40, deadline=None)
@given(JSON, st.booleans())
def test_value_count_ignores_brackets_inside_strings(value: Any, ascii_only: bool) -> None:
    padded = [*["[,{"] * MOST_FIELDS, value]
    body, values = json.dumps(padded, ensure_ascii=ascii_only).encode("utf-8", "replace"), count(padded)
    assert fault_of(body, values) == ""
    assert "values" in fault_of(body, values - MOST_FIELDS // 2)


def test_body_with_an_invalid_signature_is_never_parsed() -> None:
    asking, spy = protected()
    for body in (*HOSTILE.values(), b'{"changed":[]}'):
        for signature in ("sha256=0", sign("other", 1_700_000_000, body)):
            headers = {"X-Raydex-Signature": signature, "X-Raydex-Timestamp": "1700000000"}
            assert asking.post(CHANGED, content=body, headers=headers).status_code == 401
            assert asking.post(f"/v1/collections/{'x' * 500}/changes", content=body, headers=headers).status_code == 401
            assert asking.post("/v1/collections/a%00b/changes", content=body, headers=headers).status_code == 401
    assert spy.bodies == []


def test_signer_announces_changes_of_one_collection() -> None:
    asking, spy = protected()
    body, now = b'{"changed":[]}', int(time.time())
    headers = {"X-Raydex-Signature": sign("rdw_secret", now, body), "X-Raydex-Timestamp": str(now)}
    assert asking.post(CHANGED, content=body, headers=headers).status_code == 200 and spy.bodies == [body]
    assert [key.sees(name) for key in spy.keys for name in ("docs", "other")] == [True, False]
    assert not SIGNED.sees("docs")  # nobody has verified it


def test_only_the_first_of_many_mistakes_are_listed() -> None:
    """Only these take work: each one needs a look at all names."""
    headers = {**bearer(SECRET), "Content-Type": "application/json"}
    reply = client(guarded(GuardedStore())).post("/feedback", content=fields(MOST_FIELDS), headers=headers)
    assert reply.status_code == 422 and reply.json()["error"].startswith("id is missing")
    problems = [{"type": "missing", "loc": (f"f{n}",), "msg": "", "input": {}} for n in range(MOST_FIELDS)]
    assert len(mistakes_of(problems, FeedbackIn)) == MOST_PROBLEMS
