"""Wraps the application in its protection: CORS, keys, rates, sizes, concurrency."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from serve.guard.keys import KeyCache, KeyCheck
from serve.guard.limits import MOST_BODY_BYTES, BodyLimit, LimitStore, QuestionLimit, RateLimit
from serve.guard.origin import is_loopback
from serve.telemetry import REQUEST_ID, Metrics, Telemetry
from serve.threads import DatabaseThreads


class UnsafePolicy(ValueError):
    """The policy would let any web page, on any machine, ask without a key."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may ask, and how much.

    `host` is the address that the service listens on. `keys_required` None means: unless that is loopback. `rate`
    holds for keys without a rate of their own, `anonymous_rate` for all requests without a key together; both are
    requests per minute, 0 is unlimited. `at_once` is the number of questions in progress in one replica.
    `cors_origins` are the pages (scheme://host:port) whose scripts may ask. `reply_id` is False where a proxy in front
    puts the request's id on the reply (see Telemetry).
    """

    host: str = "127.0.0.1"
    keys_required: bool | None = None
    rate: int = 0
    anonymous_rate: int = 0
    at_once: int = 64
    max_body_bytes: int = MOST_BODY_BYTES
    cors_origins: Sequence[str] = ()
    reply_id: bool = True

    @property
    def required(self) -> bool:
        """Whether every request needs a key."""
        return not is_loopback(self.host) if self.keys_required is None else self.keys_required


def protect(app: ASGIApp, store: LimitStore, policy: Policy, metrics: Metrics | None = None) -> ASGIApp:
    """Wrap `app` in all the protection. Raises UnsafePolicy.

    From the outside in: CORS, so that refusals carry its headers too; the request's id, log line and count; its key;
    its rate; its body, which is read whole before a slot is taken, so that a slow sender holds none; its slot.
    """
    if "*" in policy.cors_origins and not policy.required:
        raise UnsafePolicy("cors_origins is `*` and keys are not required: name the origins, or set keys_required")
    threads = DatabaseThreads()
    app = QuestionLimit(app, policy.at_once)
    app = BodyLimit(app, policy.max_body_bytes)
    app = RateLimit(app, store, threads, policy.rate, policy.anonymous_rate)
    app = KeyCheck(app, KeyCache(store, threads), policy.required, bound=policy.host)
    app = Telemetry(app, metrics, policy.reply_id)
    if not policy.cors_origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(policy.cors_origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", REQUEST_ID],
        allow_credentials=False,  # a key is sent in a header that the page must know: no cookie is ever sent
        expose_headers=[REQUEST_ID, "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
    )
