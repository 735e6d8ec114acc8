"""Wraps the application in its protection: headers, CORS, keys, rates, sizes, concurrency."""

from dataclasses import dataclass

from starlette.types import ASGIApp

from pipelines.store import Store
from serve.guard.bodies import MOST_BODY_BYTES, BodyLimit
from serve.guard.cors import BoundOrigins, CrossOrigin
from serve.guard.headers import SecurityHeaders
from serve.guard.keys import KeyCache, KeyCheck
from serve.guard.limits import QuestionLimit, RateLimit, Rates
from serve.guard.origin import is_loopback, parse_networks
from serve.guard.sessions import ServiceSecret, SessionTokens
from serve.telemetry import Metrics, Telemetry
from serve.threads import DatabaseThreads

# Ten questions a second, from however many addresses: what strangers may cost at most.
PUBLIC_RATE = 600


class UnsafePolicy(ValueError):
    """The policy would let any web page, on any machine, read answers."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may ask, and how much.

    `host` is the address that the service listens on. `keys_required` None means: unless that is loopback. `public`
    lets readers ask without a key; the rest then needs one. `rate` holds for keys without a rate of their own,
    `anonymous_rate` for all requests without a key together (None: PUBLIC_RATE for a public service, else no limit),
    `address_rate` for each address of readers; all are requests per minute, 0 is unlimited. `trusted_proxies` are the
    addresses and CIDR ranges of proxies whose X-Forwarded-For says who asks. `at_once` is the number of questions in
    progress in one replica. `cors_origins` are the origins (scheme://host:port) whose pages may do what the service's
    own may, `frame_ancestors` those whose pages may show it in a frame (`self`: its own). `reply_id` is False where a
    proxy in front puts the request's id on the reply (see Telemetry).
    """

    host: str = "127.0.0.1"
    keys_required: bool | None = None
    public: bool = False
    rate: int = 0
    anonymous_rate: int | None = None
    # A person reads longer than three seconds; the rest is for several behind one address.
    address_rate: int = 20
    trusted_proxies: tuple[str, ...] = ()
    at_once: int = 64
    max_body_bytes: int = MOST_BODY_BYTES
    cors_origins: tuple[str, ...] = ()
    frame_ancestors: tuple[str, ...] = ()
    reply_id: bool = True

    @property
    def required(self) -> bool:
        """Whether every request needs a key."""
        by_default = self.public or not is_loopback(self.host)
        return by_default if self.keys_required is None else self.keys_required

    @property
    def rates(self) -> Rates:
        """The rates of all who may ask. Raises ValueError for a proxy that is no network."""
        together = self.anonymous_rate
        if together is None:
            together = PUBLIC_RATE if self.public else 0
        return Rates(self.rate, PUBLIC_RATE, together, self.address_rate, parse_networks(self.trusted_proxies))


def protect(app: ASGIApp, store: Store, policy: Policy, metrics: Metrics | None = None) -> ASGIApp:
    """Wrap `app` in all the protection. Raises UnsafePolicy.

    From the outside in: security headers and CORS, so that refusals carry them too; the request's id, log line and
    count; its key; its rate; its body, which is read whole before a slot is taken, so that a slow sender holds none;
    its slot.
    """
    if "*" in policy.cors_origins:
        raise UnsafePolicy("cors_origins is `*`: name the origins, or give their pages publishable keys")
    threads = DatabaseThreads()
    app = QuestionLimit(app, policy.at_once)
    app = BodyLimit(app, policy.max_body_bytes)
    app = RateLimit(app, store, threads, policy.rates)
    app = KeyCheck(
        app,
        KeyCache(store, threads),
        policy.required,
        sessions=SessionTokens(ServiceSecret(store, threads)),
        public=policy.public,
        bound=policy.host,
        trusted=policy.cors_origins,
    )
    app = Telemetry(app, metrics, policy.reply_id)
    app = CrossOrigin(app, BoundOrigins(store, threads), policy.cors_origins)
    return SecurityHeaders(app, policy.frame_ancestors)
