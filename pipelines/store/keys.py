"""Stores API keys, secret and publishable ones, and the token buckets that limit their rate.

Only hashes of keys are stored. This module knows no HTTP.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from psycopg.rows import DictRow

from pipelines.store.database.connection import Database
from pipelines.text.cleaning import clean_for_storage
from pipelines.text.counts import counted

# The scope of publishable keys, and of readers without a key: it only allows asking.
ASK = "ask"
# The scope of keys that may only announce changes of pages.
CHANGES = "changes"
# The scopes that each scope includes.
GRANTS = {ASK: (ASK,), "query": (ASK, "query"), CHANGES: (CHANGES,), "admin": (ASK, "query", CHANGES, "admin")}
SCOPES = ("query", CHANGES, "admin")
KEY_PREFIX, PUBLISHABLE_PREFIX = "rdx_", "pk_"
PORTS = {"http": 80, "https": 443}
DAY_S = 86_400
MOST_RATE = 999_999_999  # requests a minute
# A bucket has a minute's worth of tokens, so it is full again after a minute.
IDLE_BUCKET_S = 120


class KeyNameTaken(ValueError):
    """A key with that name exists or existed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a key named {name!r} already exists: choose another name "
            "(the name of a revoked key is not reused, so that its records stay unambiguous)"
        )


class NoSuchKey(LookupError):
    """No key has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no key is named {name!r}: `raydex keys list` shows all names")


class BadKey(ValueError):
    """The name, scopes, rate, lifetime, origins or collections of a new key are not valid."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret; if `rate_per_minute` is None, the service's own rate applies.

    `origins` are the origins of pages that may contain the key, none for a secret key. `collections` are the ones that
    it may query, or announce changes of, none for all. `session` is the id of the request's session, "" if it has none.
    """

    name: str
    scopes: tuple[str, ...]
    rate_per_minute: int | None = None
    created: datetime | None = None
    expires: datetime | None = None
    revoked_at: datetime | None = None
    last_used: datetime | None = None
    origins: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    session: str = ""

    @property
    def publishable(self) -> bool:
        """Whether pages contain the key, so that everyone can read it."""
        return bool(self.origins)

    @property
    def owner(self) -> str:
        """The owner of conversations, answers and feedback: the key, or one session of it."""
        return f"{self.name}/{self.session}" if self.session else self.name

    def may(self, scope: str) -> bool:
        """Return whether the key grants `scope`; admin includes all scopes, and query includes ask."""
        return any(scope in GRANTS[own] for own in self.scopes)

    def sees(self, collection: str) -> bool:
        """Return whether the key may query `collection`."""
        return not self.collections or collection in self.collections


class TokenGrant(NamedTuple):
    """Whether a request may pass, in how many seconds the next one may, and how many tokens are left."""

    allowed: bool
    retry_after_s: float
    remaining: float


def key_hash(token: str) -> bytes:
    """Return the hash under which a key is stored.

    It is SHA-256 without salt or stretching: a key is 256 random bits, which nobody can guess even with a fast hash.
    Slow hashes protect passwords that people chose. Here they would slow down every request and stop no attacker.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def normal_origin(text: str) -> str:
    """Return an origin as browsers send it: `https://docs.example.com`. Raises BadKey.

    The scheme and host are lowercase, a non-ASCII host is in punycode, and the scheme's default port is left out (RFC
    6454, section 6.2).
    """
    wrong = BadKey(
        f"the origin is {text[:200]!r}: write it as the browser shows it before the path, as https://docs.example.com"
    )
    try:
        url = urlsplit(text.strip())
        host, port = (url.hostname or "").encode("idna").decode("ascii"), url.port
    except ValueError as error:
        raise wrong from error
    more = url.path.strip("/") or url.query or url.fragment or url.username is not None
    if url.scheme not in PORTS or more or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
        raise wrong
    place = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{place}" + (f":{port}" if port not in (None, PORTS[url.scheme]) else "")


class Keys(Database):
    """API keys, their rate limits, and the secret of the service."""

    def create_key(
        self,
        name: str,
        scopes: Sequence[str] = ("query",),
        rate_per_minute: int | None = None,
        expires_days: float | None = None,
        *,
        origins: Sequence[str] = (),
        collections: Sequence[str] = (),
    ) -> tuple[Key, str]:
        """Create a key; return it and its token, which can't be shown again. Raises KeyNameTaken, BadKey.

        With `origins`, the key is publishable: it may only ask, and only `collections` if any are given. With the scope
        CHANGES, it may only announce page changes of its `collections`.
        """
        _check_key(name, scopes, rate_per_minute, expires_days)
        announces = CHANGES in scopes
        if announces and (len(scopes) > 1 or origins or not collections):
            raise BadKey(
                "a key with the scope changes has no other scope, and `--collection` must name the collections whose "
                "pages change"
            )
        if collections and not (origins or announces):
            raise BadKey("collections are for publishable keys: a secret key may query all of them")
        token = (PUBLISHABLE_PREFIX if origins else KEY_PREFIX) + secrets.token_urlsafe(32)
        row = self._one(
            "create_key",
            {
                "name": name,
                "hash": key_hash(token),
                "scopes": [ASK] if origins else sorted(set(scopes)),
                "rate": rate_per_minute,
                "seconds": None if expires_days is None else expires_days * DAY_S,
                "origins": list(dict.fromkeys(map(normal_origin, origins))),
                "collections": list(dict.fromkeys(collections)),
            },
        )
        if row is None:
            raise KeyNameTaken(name)
        return _key(row), token

    def list_keys(self) -> list[Key]:
        """Return all keys, including revoked and expired ones, oldest first."""
        return [_key(row) for row in self._all("list_keys")]

    def revoke_key(self, name: str) -> Key:
        """Revoke a key; revoking it again changes nothing. Raises NoSuchKey."""
        row = self._one("revoke_key", {"name": name})
        if row is None:
            raise NoSuchKey(name)
        return _key(row)

    def find_key(self, hash: bytes) -> Key | None:
        """Return the key with this hash if it is neither revoked nor expired, and record its use."""
        row = self._one("find_key", {"hash": hash})
        return _key(row) if row else None

    def bound_origins(self) -> frozenset[str]:
        """Return the origins that any valid publishable key is bound to."""
        return frozenset(row["origin"] for row in self._all("bound_origins"))

    def service_secret(self) -> bytes:
        """Return the secret of 32 bytes that all replicas share; it is generated if it is missing."""
        row = self._one("service_secret", {})
        if row is None:
            self._run("make_service_secret", {})
            row = self._one("service_secret", {})
        return bytes((row or {})["value"])

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        """Take one token from the bucket of `key`, which has room for `burst` (≥ 1) and gains `rate_per_minute` (> 0).

        This is a token bucket (RFC 2697 calls its depth the committed burst size): over any time t, at most burst +
        rate · t requests pass, with any number of replicas. A refused request takes nothing.
        """
        per_second = rate_per_minute / 60
        row = self._one("take_token", {"key": key, "burst": burst, "per_second": per_second}) or {}
        missing = max(0.0, 1.0 - row["tokens"])
        return TokenGrant(row["allowed"], 0.0 if row["allowed"] else missing / per_second, max(0.0, row["tokens"]))

    def forget_buckets(self) -> None:
        """Delete the buckets that were not used for IDLE_BUCKET_S; they are full again."""
        self._run("forget_buckets", {"seconds": IDLE_BUCKET_S})


def _key(row: DictRow) -> Key:
    return Key(**(row | {name: tuple(row[name]) for name in ("scopes", "origins", "collections")}))


def _check_key(name: str, scopes: Sequence[str], rate: int | None, days: float | None) -> None:
    if not name.strip() or name != clean_for_storage(name) or len(name) > 100:
        raise BadKey(f"the key's name is {name[:100]!r}: it must have 1 to 100 characters and must not be blank")
    unknown = set(scopes) - set(SCOPES)
    if unknown or not scopes:
        raise BadKey(f"the scopes are {sorted(scopes)}: use one or more of {', '.join(SCOPES)}")
    if rate is not None and not 0 <= rate <= MOST_RATE:
        raise BadKey(f"the rate is {counted(rate, 'request')} a minute: it must be 0 (unlimited) to {MOST_RATE:,}")
    if days is not None and not 0 < days <= 36_500:
        raise BadKey(f"the key would expire in {counted(days, 'day')}: it must be more than 0 and at most 36500 days")
