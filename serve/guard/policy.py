"""Wraps the application in its protection: headers, CORS, keys, rates, sizes, concurrency."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from starlette.types import ASGIApp

from pipelines.answering.settings.names import SettingsGroup
from pipelines.store import Store
from pipelines.store.keys import normal_origin
from serve.guard.bodies import MOST_BODY_BYTES, BodyLimit
from serve.guard.cors import BoundOrigins, CrossOrigin
from serve.guard.headers import SecurityHeaders
from serve.guard.keys import KeyCache, KeyCheck
from serve.guard.limits import QuestionLimit, RateLimit, Rates
from serve.guard.origin import UNDELAYED_RATE, is_loopback, parse_networks
from serve.guard.sessions import ServiceSecret, SessionTokens
from serve.guard.shape import ShapeLimit
from serve.guard.signatures import SignatureCheck
from serve.telemetry import Metrics, Telemetry
from serve.threads import DatabaseThreads

# Ten questions per second from all addresses: the maximum that strangers may cost.
PUBLIC_RATE = 600


class UnsafePolicy(ValueError):
    """The policy would let any web page, on any machine, read answers."""


def _check_networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    parse_networks(texts)
    return texts


def _read_origins(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return origins as browsers send them; `self` and `*` stay as they are."""
    return tuple(text if text in ("self", "*") else normal_origin(text) for text in texts)


Origins = Annotated[tuple[str, ...], AfterValidator(_read_origins)]


class LimitSettings(SettingsGroup):
    """Rate limits in requests per minute; 0: no limit.

    `rate` applies to keys without their own rate, `anonymous_rate` to all requests without a key together (None:
    PUBLIC_RATE for a public service, else no limit), `address_rate` to each address of readers.
    """

    rate: Annotated[int, Field(ge=0)] = 0
    anonymous_rate: Annotated[int, Field(ge=0)] | None = None
    # A person reads for longer than three seconds; the rest is for several people behind one address.
    address_rate: Annotated[int, Field(ge=0)] = 20


class Policy(BaseModel):
    """Who may ask, and how much: settings of the service.

    `host` is the address that the service listens on. `keys_required` None means: unless that is loopback. `public`
    lets readers ask without a key; everything else then needs one. `trusted_proxies` are the addresses and CIDR ranges
    of proxies whose X-Forwarded-For is believed. `at_once` is the number of concurrent questions of one replica; above
    it, answers 503. The proxy delays an address's requests above `undelayed_rate` per minute. `cors_origins` are the
    origins (scheme://host:port) whose pages have the same rights as the service's own. `frame_ancestors` are origins
    whose pages may show it in a frame (`self`: its own).
    """

    host: str = "127.0.0.1"
    keys_required: bool | None = None
    public: bool = False
    limits: LimitSettings = LimitSettings()
    trusted_proxies: Annotated[tuple[str, ...], AfterValidator(_check_networks)] = ()
    at_once: Annotated[int, Field(ge=1)] = 64
    max_body_bytes: Annotated[int, Field(ge=1_000)] = MOST_BODY_BYTES
    undelayed_rate: Annotated[int, Field(ge=0)] = UNDELAYED_RATE
    cors_origins: Origins = ()
    frame_ancestors: Origins = ()


def are_keys_required(policy: Policy) -> bool:
    """Return whether every request needs a key."""
    by_default = policy.public or not is_loopback(policy.host)
    return by_default if policy.keys_required is None else policy.keys_required


def rates_of(policy: Policy) -> Rates:
    """Return the rates of all callers."""
    limits, together = policy.limits, policy.limits.anonymous_rate
    if together is None:
        together = PUBLIC_RATE if policy.public else 0
    return Rates(limits.rate, PUBLIC_RATE, together, limits.address_rate, parse_networks(policy.trusted_proxies))


def protect(
    app: ASGIApp, store: Store, policy: Policy, metrics: Metrics | None = None, reply_id: bool = True
) -> ASGIApp:
    """Wrap `app` in all the protection; `reply_id` is as in Telemetry. Raises UnsafePolicy.

    From the outside in: security headers and CORS, so that refusals have them too; the request's id, log line and
    count; its key; its rate; its body, which is read completely before a slot is taken, so that a slow sender occupies
    none; its signature, if it has one instead of a key; the size and depth of its JSON; its slot.
    """
    if "*" in policy.cors_origins:
        raise UnsafePolicy("cors_origins is `*`: name the origins, or give their pages publishable keys")
    threads, routes = DatabaseThreads(), getattr(app, "routes", ())
    app = QuestionLimit(app, policy.at_once)
    app = ShapeLimit(app)
    app = SignatureCheck(app, store, threads)
    app = BodyLimit(app, policy.max_body_bytes)
    app = RateLimit(app, store, threads, rates_of(policy))
    app = KeyCheck(
        app,
        KeyCache(store, threads),
        are_keys_required(policy),
        sessions=SessionTokens(ServiceSecret(store, threads)),
        public=policy.public,
        bound=policy.host,
        trusted=policy.cors_origins,
        routes=routes,
    )
    app = Telemetry(app, metrics, reply_id)
    app = CrossOrigin(app, BoundOrigins(store, threads), policy.cors_origins)
    return SecurityHeaders(app, policy.frame_ancestors)
