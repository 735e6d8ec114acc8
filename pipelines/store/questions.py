"""What was asked and who may ask: questions with their answers, feedback, API keys and their rate.

Knows nothing of HTTP and of how an answer is made.
"""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from pipelines.store.connection import Connected, clean

SCOPES = ("query", "admin")
RATINGS = (-1, 0, 1)
KEY_PREFIX = "rdx_"
DAY_S = 86_400


class KeyNameTaken(ValueError):
    """There is, or was, a key of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is a key named {name!r} already: choose another name "
            "(that of a revoked key is not used again, so that what was recorded under it stays clear)"
        )


class NoSuchKey(LookupError):
    """No key has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no key named {name!r}: «python -m jobs.keys list» shows the names")


class BadKey(ValueError):
    """A key can't be made as it was asked for."""


class BadRating(ValueError):
    """A rating is not one of -1, 0 and 1."""


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One row of the table `question`.

    `citations` are objects with n, source, chunk_id, title, snippet, supported, support; `hits` with source, chunk_id,
    title, snippet, score, score_kind, ranks, scores. `error` is why there is no answer, None where there is one.
    """

    id: str
    question: str
    collection: str = ""
    conversation: str = ""
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    standalone: str = ""
    mode: str = ""
    agent: str = ""
    why: str = ""
    answer: str = ""
    known: bool = True
    citations: Sequence[Mapping[str, Any]] = ()
    hits: Sequence[Mapping[str, Any]] = ()
    queries: Sequence[str] = ()
    degraded: Sequence[str] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    index: int | None = None
    revision: int | None = None
    key_name: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A past question of a conversation, its answer and the ids of the chunks that it cited."""

    question: str
    answer: str
    cited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret; `rate_per_minute` None means the service's own rate."""

    name: str
    scopes: tuple[str, ...]
    rate_per_minute: int | None = None
    created: datetime | None = None
    expires: datetime | None = None
    revoked_at: datetime | None = None
    last_used: datetime | None = None

    def may(self, scope: str) -> bool:
        """Whether the key opens what needs `scope`; admin implies query."""
        return scope in self.scopes or "admin" in self.scopes


class Taken(NamedTuple):
    """Whether a request is let through, in how many seconds the next one would be, and how many tokens are left."""

    allowed: bool
    retry_after_s: float
    remaining: float


def key_hash(token: str) -> bytes:
    """What is stored of a key.

    SHA-256 without salt or stretching: a key is 256 random bits, which no one guesses however fast the hash is. Slow
    hashes protect passwords that people chose; here they would cost every request what they should cost an attacker.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Asked(Connected):
    """Questions, feedback and keys."""

    def record_questions(self, rows: Sequence[QuestionRow]) -> None:
        """Write `rows` in one transaction; one whose id is there already is left as it is."""
        if rows:
            self._run("record_questions", {"rows": Jsonb([storable(asdict(row)) for row in rows], dumps=_dumps)})

    def question(self, id: str) -> dict[str, Any] | None:
        """The row of a question by the names of QuestionRow, None where there is none (yet, or no longer)."""
        row = self._one("question", {"id": clean(id)})
        return dict(row) if row else None

    def conversation(self, id: str, most: int = 5, key_name: str = "") -> list[Turn]:
        """The last `most` answered turns of a conversation, newest last.

        Only what was asked with the key `key_name` ("": without one): who guesses an id sees nothing of others.
        """
        rows = self._all("conversation", {"conversation": clean(id), "most": most, "key_name": key_name})
        return [Turn(row["question"], row["answer"], tuple(row["cited"])) for row in reversed(rows)]

    def record_feedback(self, question_id: str, rating: int, comment: str = "", key_name: str = "") -> int:
        """Write what the holder of a key says of an answer; a later word replaces its earlier one. Returns its id.

        The question's row need not be there yet. Raises BadRating.
        """
        if rating not in RATINGS:
            raise BadRating(f"rating is {rating!r}: it must be -1, 0 or 1")
        row = self._one(
            "record_feedback",
            {"question_id": clean(question_id), "rating": rating, "comment": clean(comment), "key_name": key_name},
        )
        return int((row or {})["id"])

    def feedback(self, question_id: str) -> list[dict[str, Any]]:
        """All feedback on an answer (rating, comment, created, key_name), oldest first."""
        return [dict(row) for row in self._all("feedback_of", {"question_id": clean(question_id)})]

    def rated_questions(self, collection: str) -> list[dict[str, Any]]:
        """Return the answered questions to a collection that were rated, oldest first.

        Each has question, standalone, answer, known, citations, hits, asked_at and `rating`, the sum of its ratings.
        """
        return [dict(row) for row in self._all("rated_questions", {"collection": clean(collection)})]

    def forget_questions(self, days: float) -> int:
        """Delete questions asked more than `days` ago; returns how many.

        Their feedback goes with them: a comment is as personal as the question, and says nothing without it. Feedback
        whose question never came goes by its own age.
        """
        row = self._one("forget_questions", {"seconds": days * DAY_S})
        return int((row or {})["forgotten"])

    def create_key(
        self,
        name: str,
        scopes: Sequence[str] = ("query",),
        rate_per_minute: int | None = None,
        expires_days: float | None = None,
    ) -> tuple[Key, str]:
        """Make a key; returns it and its token, which can't be had again. Raises KeyNameTaken, BadKey."""
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
        """All keys, revoked and expired ones too, oldest first."""
        return [_key(row) for row in self._all("list_keys")]

    def revoke_key(self, name: str) -> Key:
        """Let a key open nothing any more; a second time changes nothing. Raises NoSuchKey."""
        row = self._one("revoke_key", {"name": clean(name)})
        if row is None:
            raise NoSuchKey(name)
        return _key(row)

    def find_key(self, hash: bytes) -> Key | None:
        """The key with this hash, if it is neither revoked nor expired; notes that it was used."""
        row = self._one("find_key", {"hash": hash})
        return _key(row) if row else None

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> Taken:
        """Take one token from the bucket of `key`, which holds `burst` (≥ 1) and gains `rate_per_minute` (> 0).

        A token bucket (RFC 2697 calls its depth the committed burst size): over any time t at most burst + rate · t
        requests pass, whatever the number of replicas. A refused request takes nothing.
        """
        per_second = rate_per_minute / 60
        row = self._one("take_token", {"key": key, "burst": burst, "per_second": per_second}) or {}
        missing = max(0.0, 1.0 - row["tokens"])
        return Taken(row["allowed"], 0.0 if row["allowed"] else missing / per_second, max(0.0, row["tokens"]))


def storable(value: Any) -> Any:
    """`value` as Postgres' jsonb takes it: no NUL or lone surrogate in texts and names, null for NaN and infinities."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(str(name)): storable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    return value


def _dumps(value: Any) -> str:
    """JSON of rows; times as ISO 8601, numpy's numbers as numbers."""
    return json.dumps(value, default=lambda v: v.isoformat() if isinstance(v, datetime) else storable(float(v)))


def _key(row: DictRow) -> Key:
    return Key(**{**row, "scopes": tuple(row["scopes"])})


def _check_key(name: str, scopes: Sequence[str], rate: int | None, days: float | None) -> None:
    if not name.strip() or name != clean(name) or len(name) > 100:
        raise BadKey(f"the key's name is {name[:100]!r}: it must have 1 to 100 characters, not all of them blank")
    unknown = set(scopes) - set(SCOPES)
    if unknown or not scopes:
        raise BadKey(f"scopes are {sorted(scopes)}: they must be some of {', '.join(SCOPES)}")
    if rate is not None and not 0 <= rate < 1_000_000_000:
        raise BadKey(f"the rate is {rate} requests a minute: it must be 0 (unlimited) or more")
    if days is not None and not 0 < days <= 36_500:
        raise BadKey(f"the key would expire in {days} days: it must be more than 0 (and at most 36500)")
