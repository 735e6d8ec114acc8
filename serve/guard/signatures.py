"""ASGI middleware that checks the signature of requests that are signed instead of sent with a key.

It runs before anything parses the body, so that unsigned requests cause no work. Pure ASGI, like keys.py.
"""

import time
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, is_signed
from pipelines.store import Store, StoreUnavailable
from serve.failure import RETRY_AFTER_S, Failure, path_of
from serve.guard.bodies import replay
from serve.guard.keys import SIGNED, key_of
from serve.threads import DatabaseThreads

MOST_NAME = 200


class SignatureCheck:
    """Passes a correctly signed request as one with a key for its collection; answers 401 otherwise.

    The body has been read completely (see BodyLimit).
    """

    def __init__(self, app: ASGIApp, store: Store, threads: DatabaseThreads) -> None:
        self._app, self._store, self._threads = app, store, threads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and key_of(scope) is SIGNED:
            body, name = (await receive()).get("body", b""), path_of(scope).split("/")[3]
            if failure := await self._check(scope, name, body):
                await failure.response(scope)(scope, receive, send)
                return
            scope["state"]["key"] = replace(SIGNED, collections=(name,))
            receive = replay(body, receive)
        await self._app(scope, receive, send)

    async def _check(self, scope: Scope, name: str, body: bytes) -> Failure | None:
        headers, secret = Headers(scope=scope), None
        try:
            if len(name) <= MOST_NAME and "\0" not in name:
                secret = await self._threads.run(self._store.announcing_secret, name)
        except StoreUnavailable as error:
            return Failure(503, f"the signature can't be checked, try again: {error}", retry_after=RETRY_AFTER_S)
        signature, timestamp = (headers.get(header, "") for header in (SIGNATURE_HEADER, TIMESTAMP_HEADER))
        if secret and is_signed(secret, timestamp, body, signature, time.time()):
            return None
        return Failure(
            401,
            f"{SIGNATURE_HEADER} is not `sha256=` and the HMAC-SHA-256 of {TIMESTAMP_HEADER}, a dot and the body, or "
            f"the time is not within 5 minutes of the service's: make a secret with `raydex keys secret {name[:100]}`",
        )
