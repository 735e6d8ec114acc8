"""Refusals by the proxy itself, with the same headers as the service's."""

import uuid
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from serve.failure import Failure
from serve.guard.cors import CrossOrigin
from serve.guard.headers import SecurityHeaders
from serve.guard.origin import origin_of
from serve.telemetry import REQUEST_ID


def id_of(scope: Scope) -> str:
    """Return the id of a request, adding one if it has none, as Ray's proxy does."""
    if REQUEST_ID not in Headers(scope=scope):
        scope["headers"] = [*scope["headers"], (REQUEST_ID.lower().encode(), uuid.uuid4().hex.encode())]
    return Headers(scope=scope)[REQUEST_ID]


async def refuse(failure: Failure, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a refusal that a page of any origin may read; it reveals nothing about the service's data.

    The allowed origins are in the database, which the proxy does not read. A preflight is allowed too, so that its page
    can send the request.
    """
    reply = replace(failure, headers={**failure.headers, REQUEST_ID: id_of(scope)}).response(scope)
    await SecurityHeaders(CrossOrigin(reply, named=[origin_of(scope)]))(scope, receive, send)
