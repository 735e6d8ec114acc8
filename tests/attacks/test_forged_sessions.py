"""Session tokens that an attacker makes or changes open nothing, and get the answer of an unknown session."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from kit.guarded import DOCS, SITE, GuardedStore, bearer, client, guarded
from kit.reporting import leave_table

from pipelines.store import key_hash
from serve.guard.sessions import AUDIENCE, SESSION_PREFIX, ServiceSecret, SessionTokens
from serve.threads import DatabaseThreads

SECRET = ServiceSecret(GuardedStore(), DatabaseThreads(1))
KEY = asyncio.run(SECRET.sign("session", b""))
TOKEN = asyncio.run(SessionTokens(SECRET).open(key_hash(SITE), DOCS))
CLAIMS = jwt.decode(TOKEN.removeprefix(SESSION_PREFIX), options={"verify_signature": False})
HEAD, BODY, SIGNATURE = TOKEN.removeprefix(SESSION_PREFIX).split(".")


def encoded(value: Any) -> str:
    return _base64(json.dumps(value).encode())


def signed(key: bytes = KEY, headers: dict[str, Any] | None = None, hash: str = "sha256", **claims: Any) -> str:
    """Return a token whose headers and claims differ from a good one's; None removes a claim."""
    merged = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    message = f"{encoded({'alg': 'HS256', 'typ': 'JWT', **(headers or {})})}.{encoded(merged)}"
    return f"{SESSION_PREFIX}{message}.{_base64(hmac.digest(key, message.encode(), hash))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


FORGED: dict[str, Callable[[], str]] = {
    "no algorithm, no signature": lambda: f"{SESSION_PREFIX}{encoded({'alg': 'none'})}.{BODY}.",
    "no algorithm, old signature": lambda: f"{SESSION_PREFIX}{encoded({'alg': 'none'})}.{BODY}.{SIGNATURE}",
    "algorithm nOnE": lambda: f"{SESSION_PREFIX}{encoded({'alg': 'nOnE'})}.{BODY}.{SIGNATURE}",
    "another algorithm, the right key": lambda: signed(headers={"alg": "HS512"}, hash="sha512"),
    "another algorithm, a signature of the usual one": lambda: signed(headers={"alg": "HS384"}),
    "algorithm of a public key": lambda: f"{SESSION_PREFIX}{encoded({'alg': 'RS256'})}.{BODY}.{SIGNATURE}",
    "header without an algorithm": lambda: f"{SESSION_PREFIX}{encoded({'typ': 'JWT'})}.{BODY}.{SIGNATURE}",
    "extension that must be understood": lambda: signed(headers={"crit": ["x"], "x": 1}),
    "payload outside the token": lambda: signed(headers={"crit": ["b64"], "b64": False}),
    "another secret": lambda: signed(b"t" * 32),
    "empty secret": lambda: signed(b""),
    "secret of the service itself": lambda: signed(GuardedStore().service_secret()),
    "key of another purpose": lambda: signed(asyncio.run(SECRET.sign("address", b""))),
    "claims changed, old signature": lambda: (
        f"{SESSION_PREFIX}{HEAD}.{encoded({**CLAIMS, 'exp': CLAIMS['exp'] + 9})}.{SIGNATURE}"
    ),
    "expired": lambda: signed(exp=int(time.time()) - 1),
    "without expiry": lambda: signed(exp=None),
    "expiry is no number": lambda: signed(exp="never"),
    "for another audience": lambda: signed(aud="share"),
    "without an audience": lambda: signed(aud=None),
    "without a key": lambda: signed(sub=None),
    "not valid yet": lambda: signed(nbf=int(time.time()) + 3600),
    "without its prefix": lambda: TOKEN.removeprefix(SESSION_PREFIX),
    "prefix twice": lambda: SESSION_PREFIX + TOKEN,
    "oversized claims": lambda: signed(more="x" * 10_000),
    "oversized": lambda: SESSION_PREFIX + "A" * 1_000_000,
    "a million dots": lambda: SESSION_PREFIX + "." * 1_000_000,
    "characters that are no base64": lambda: f"{TOKEN[:20]}!{TOKEN[20:]}",
    "new line at the end": lambda: f"{TOKEN}\n",
    "no JSON": lambda: f"{SESSION_PREFIX}{HEAD}.{base64.urlsafe_b64encode(b'[' * 50).decode()}.{SIGNATURE}",
    "signature cut off": lambda: TOKEN[:-4],
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_token_is_no_session(kind: str) -> None:
    assert asyncio.run(SessionTokens(SECRET).read(FORGED[kind]())) is None


def test_good_token_of_the_same_helpers_is_a_session() -> None:
    for token in (TOKEN, signed(), signed(headers={"kid": "../x", "jku": "https://e.test"})):
        session = asyncio.run(SessionTokens(SECRET).read(token))
        assert session is not None and session.id == CLAIMS["jti"]
    assert CLAIMS["aud"] == AUDIENCE


def test_every_forged_token_gets_the_same_answer(pytestconfig: pytest.Config) -> None:
    asking, answers = client(guarded(GuardedStore())), {}
    for kind, forge in FORGED.items():
        token = forge()
        if token.startswith(SESSION_PREFIX) and token.isprintable() and len(token) < 20_000:
            reply = asking.post("/search", json={"question": "x"}, headers=bearer(token, DOCS))
            answers[kind] = (reply.status_code, reply.json()["kind"], reply.json()["error"])
    assert asking.post("/search", json={"question": "x"}, headers=bearer(TOKEN, DOCS)).status_code == 200
    rows = [[kind, f"{one[0]} {one[1]}"] for kind, one in answers.items()]
    leave_table(pytestconfig, "forged session tokens", ["token", "answer"], rows)
    assert len(answers) > 20 and {one[:2] for one in answers.values()} == {(401, "session")}
    assert len({one[2] for one in answers.values()}) == 1
