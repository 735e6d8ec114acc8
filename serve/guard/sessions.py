"""Session tokens: pages use one instead of a key, for an hour.

A token is a JSON web token (RFC 7519) after a prefix. It is signed with the service's secret, which all replicas read
from the database, and is not stored, so there is nothing to look up, fill or clean. It names the key that opened it;
revoking the key ends it.
"""

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

import jwt

from pipelines.store import Store
from serve.threads import DatabaseThreads

SESSION_PREFIX = "rds_"
SESSION_S = 3600
# A reader who returns within a month finds their conversations. A copied token gives access only to these.
RENEW_S = 30 * 86_400
# How long a replica signs with a secret that was deleted.
SECRET_S = 60.0
# IPv4 addresses share a bucket in groups of about 256 (2^32 ÷ 2^24), so someone with the database and its secret can't
# tell which one asked. Among 1,000 active addresses, a given one shares its bucket with probability 0.00006.
ADDRESS_BYTES = 3

# The only algorithm that is read, no matter which one a token names.
ALGORITHM = "HS256"
# Its own tokens have about 300 characters; longer ones are not parsed.
TOKEN = re.compile(rf"{SESSION_PREFIX}[A-Za-z0-9_-]{{1,100}}\.[A-Za-z0-9_-]{{1,400}}\.[A-Za-z0-9_-]{{43}}")
# Expiry, audience (distinguishes sessions from any other token), id, hash of the key, digest of the origin.
CLAIMS = ["exp", "aud", "jti", "sub", "origin"]
AUDIENCE = "session"
NO_KEY = bytes(32)


class ServiceSecret:
    """The secret shared by all replicas, read from the store once a minute."""

    def __init__(self, store: Store, threads: DatabaseThreads) -> None:
        self._store, self._threads = store, threads
        self._value, self._until = b"", -math.inf

    async def sign(self, purpose: str, message: bytes) -> bytes:
        """Return the HMAC-SHA-256 of `message` for one purpose. Raises StoreUnavailable."""
        if time.monotonic() >= self._until:
            self._value = await self._threads.run(self._store.service_secret)
            self._until = time.monotonic() + SECRET_S
        return hmac.digest(self._value, purpose.encode() + b"\0" + message, "sha256")

    async def hide_address(self, network: str) -> str:
        """Return the database's substitute for an address (see ADDRESS_BYTES)."""
        return (await self.sign("address", network.encode()))[:ADDRESS_BYTES].hex()


class Session(NamedTuple):
    """The contents of a token: its id, the hash of its key (NO_KEY without one), its origin's digest, its expiry."""

    id: str
    key: bytes
    origin: bytes
    ends: int

    def is_of(self, origin: str) -> bool:
        """Return whether the session was opened by a page of `origin`."""
        return hmac.compare_digest(self.origin, _digest(origin))


class SessionTokens:
    """Makes and reads the tokens of sessions; `clock` is the Unix time at which they are made."""

    def __init__(self, secret: ServiceSecret, clock: Callable[[], float] = time.time) -> None:
        self._secret, self._clock = secret, clock

    async def open(self, key: bytes, origin: str, renewed: str = "") -> str:
        """Return a token for `key` and pages of `origin`; it keeps the id of the token `renewed`, if that matches both.

        Raises StoreUnavailable.
        """
        before = await self._read(renewed, RENEW_S)
        mine = before is not None and before.key == key and before.is_of(origin)
        claims = {
            "exp": int(self._clock()) + SESSION_S,
            "aud": AUDIENCE,
            "jti": before.id if before and mine else secrets.token_urlsafe(16),
            "sub": key.hex(),
            "origin": _digest(origin).hex(),
        }
        return SESSION_PREFIX + jwt.encode(claims, await self._key(), ALGORITHM)

    async def read(self, token: str) -> Session | None:
        """Return the session of a currently valid token; None for any other. Raises StoreUnavailable."""
        return await self._read(token, 0)

    async def _read(self, token: str, late_s: int) -> Session | None:
        if not TOKEN.fullmatch(token):
            return None
        key = await self._key()
        try:
            claims = jwt.decode(
                token.removeprefix(SESSION_PREFIX),
                key,
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                leeway=late_s,
                options={"require": CLAIMS},
            )
        except jwt.InvalidTokenError:
            return None
        key_hash, origin = bytes.fromhex(claims["sub"]), bytes.fromhex(claims["origin"])
        return Session(claims["jti"], key_hash, origin, claims["exp"])

    async def _key(self) -> bytes:
        return await self._secret.sign("session", b"")


def _digest(origin: str) -> bytes:
    return hashlib.sha256(origin.encode()).digest()[:16]
