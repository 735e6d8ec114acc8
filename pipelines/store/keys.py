"""API keys and the token buckets that limit their rate.

Only hashes of keys are stored. Knows no HTTP.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from psycopg.rows import DictRow

from pipelines.characters import clean_for_storage
from pipelines.store.connection import Database

SCOPES = ("query", "admin")
KEY_PREFIX = "rdx_"
DAY_S = 86_400
# A bucket holds a minute's worth, so it is full again after a minute.
IDLE_BUCKET_S = 120


class KeyNameTaken(ValueError):
    """A key with that name exists or existed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a key named {name!r} already exists: choose another name "
            "(the name of a revoked key is not reused, so that what was recorded under it stays clear)"
        )


class NoSuchKey(LookupError):
    """No key has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no key is named {name!r}: `raydex keys list` shows all names")


class BadKey(ValueError):
    """The name, scopes, rate or lifetime of a new key is not valid."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret; with `rate_per_minute` None the service's own rate applies."""

    name: str
    scopes: tuple[str, ...]
    rate_per_minute: int | None = None
    created: datetime | None = None
    expires: datetime | None = None
    revoked_at: datetime | None = None
    last_used: datetime | None = None

    def may(self, scope: str) -> bool:
        """Return whether the key grants `scope`; admin includes query."""
        return scope in self.scopes or "admin" in self.scopes


class TokenGrant(NamedTuple):
    """Whether a request may pass, in how many seconds the next one may, and how many tokens are left."""

    allowed: bool
    retry_after_s: float
    remaining: float


def key_hash(token: str) -> bytes:
    """Return the hash under which a key is stored.

    SHA-256 without salt or stretching: a key is 256 random bits, which no one guesses however fast the hash is. Slow
    hashes protect passwords that people chose; here they would slow down every request instead of an attacker.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Keys(Database):
    """API keys and their rate."""

    def create_key(
        self,
        name: str,
        scopes: Sequence[str] = ("query",),
        rate_per_minute: int | None = None,
        expires_days: float | None = None,
    ) -> tuple[Key, str]:
        """Create a key; return it and its token, which can't be shown again. Raises KeyNameTaken, BadKey."""
        _check_key(name, scopes, rate_per_minute, expires_days)
        token = KEY_PREFIX + secrets.token_urlsafe(32)
        row = self._one(
            "create_key",
            {
                "name": name,
                "hash": key_hash(token),
                "scopes": sorted(set(scopes)),
                "rate": rate_per_minute,
                "seconds": None if expires_days is None else expires_days * DAY_S,
            },
        )
        if row is None:
            raise KeyNameTaken(name)
        return _key(row), token

    def list_keys(self) -> list[Key]:
        """Return all keys, revoked and expired ones included, oldest first."""
        return [_key(row) for row in self._all("list_keys")]

    def revoke_key(self, name: str) -> Key:
        """Revoke a key; revoking it again changes nothing. Raises NoSuchKey."""
        row = self._one("revoke_key", {"name": clean_for_storage(name)})
        if row is None:
            raise NoSuchKey(name)
        return _key(row)

    def find_key(self, hash: bytes) -> Key | None:
        """Return the key with this hash if it is neither revoked nor expired, and record that it was used."""
        row = self._one("find_key", {"hash": hash})
        return _key(row) if row else None

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        """Take one token from the bucket of `key`, which holds `burst` (≥ 1) and gains `rate_per_minute` (> 0).

        A token bucket (RFC 2697 calls its depth the committed burst size): over any time t at most burst + rate · t
        requests pass, whatever the number of replicas. A refused request takes nothing.
        """
        per_second = rate_per_minute / 60
        row = self._one("take_token", {"key": key, "burst": burst, "per_second": per_second}) or {}
        missing = max(0.0, 1.0 - row["tokens"])
        return TokenGrant(row["allowed"], 0.0 if row["allowed"] else missing / per_second, max(0.0, row["tokens"]))

    def forget_buckets(self) -> None:
        """Delete the buckets that nothing was taken from for IDLE_BUCKET_S: they are full again."""
        self._run("forget_buckets", {"seconds": IDLE_BUCKET_S})


def _key(row: DictRow) -> Key:
    return Key(**{**row, "scopes": tuple(row["scopes"])})


def _check_key(name: str, scopes: Sequence[str], rate: int | None, days: float | None) -> None:
    if not name.strip() or name != clean_for_storage(name) or len(name) > 100:
        raise BadKey(f"the key's name is {name[:100]!r}: it must have 1 to 100 characters and must not be blank")
    unknown = set(scopes) - set(SCOPES)
    if unknown or not scopes:
        raise BadKey(f"the scopes are {sorted(scopes)}: use one or more of {', '.join(SCOPES)}")
    if rate is not None and not 0 <= rate < 1_000_000_000:
        raise BadKey(f"the rate is {rate} requests a minute: it must be 0 (unlimited) or more")
    if days is not None and not 0 < days <= 36_500:
        raise BadKey(f"the key would expire in {days} days: it must be more than 0 and at most 36500 days")
