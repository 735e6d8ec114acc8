"""Failures become replies of one shape that say what to do; never a stack trace.

Paths under /v1/ answer in OpenAI's shape, all others in the service's own. Knows nothing of the routes.
"""

import logging
import uuid
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.answering.agents import StepUnavailable
from pipelines.answering.retrieval.retriever import CollectionNotNamed, ModelNotReady
from pipelines.answering.synthesis.base import UnknownMode
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.store import NoLiveIndex, StoreUnavailable, clean
from serve.guard.keys import RETRY_AFTER_S, path_of
from serve.telemetry import request_id

log = logging.getLogger(__name__)

# What a client did wrong is named; its whole input is not sent back.
MOST_CHARACTERS = 1000


class ClientGone(Exception):
    """The client went away before its answer was whole; what was under way for it has been cancelled."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer: an HTTP status, a message, the field at fault, its choices, seconds to wait."""

    status: int
    error: str
    field: str | None = None
    choices: tuple[str, ...] = ()
    retry_after: int | None = None
    request: str | None = None

    @property
    def body(self) -> dict[str, object]:
        """In the service's own shape."""
        more = {"field": self.field, "choices": list(self.choices), "request": self.request}
        return {"error": self.error, **{name: value for name, value in more.items() if value}}

    @property
    def openai_body(self) -> dict[str, object]:
        """In OpenAI's shape."""
        missing = self.status == 404 and self.field == "collection"
        return {
            "error": {
                "message": self.error,
                "type": "server_error" if self.status >= 500 else "invalid_request_error",
                "code": "model_not_found" if missing else "unavailable" if self.retry_after else None,
                "param": "model" if self.field == "collection" else self.field,
            }
        }

    def response(self, path: str) -> JSONResponse:
        """The reply to a request for `path`; an invalid one is 422, and 400 where OpenAI's clients expect that."""
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else None
        if not path.startswith("/v1/"):
            return JSONResponse(self.body, self.status, headers)
        return JSONResponse(self.openai_body, 400 if self.status == 422 else self.status, headers)


def failure_of(error: Exception) -> Failure:  # noqa: PLR0911
    """What `error` is to a client. One that nobody expected is logged, and said under the id in the log."""
    message = _short(str(error))
    match error:
        case StoreUnavailable():
            return Failure(503, f"the database is away, try again: {message}", retry_after=RETRY_AFTER_S)
        case ModelNotReady() | StepUnavailable():
            return Failure(503, message, retry_after=RETRY_AFTER_S)
        case CollectionNotNamed():
            return Failure(422, message, "collection", tuple(error.names))
        case NoLiveIndex():
            return Failure(404, message, "collection")
        case UnknownMode():
            return Failure(422, message, "mode", tuple(getattr(error, "choices", ())))
        case TemplateError():
            return Failure(422, message, "variables")
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():  # FastAPI's 400 is a body that can't be read
            field = "body" if error.status_code == 400 else None
            status, prefix = (422, "body: ") if field else (error.status_code, "")
            wait = RETRY_AFTER_S if status == 503 else None
            return Failure(status, _short(f"{prefix}{error.detail}"), field, retry_after=wait)
    request = request_id() or uuid.uuid4().hex
    log.error("request %s failed", request, exc_info=error)
    return Failure(500, f"the service failed; its log says why under {request}", request=request)


EXPECTED = (
    StoreUnavailable,
    ModelNotReady,
    StepUnavailable,
    CollectionNotNamed,
    NoLiveIndex,
    UnknownMode,
    TemplateError,
    RequestValidationError,
    HTTPException,
)


def handle_errors(app: FastAPI) -> None:
    """Make every failure of `app` a reply."""

    async def failed(request: Request, error: Exception) -> Response:
        return failure_of(error).response(path_of(request.scope))

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=499)  # nginx's number for it; nobody reads it

    for kind in EXPECTED:
        app.add_exception_handler(kind, failed)
    app.add_exception_handler(ClientGone, gone)
    app.add_middleware(Failsafe)


class Failsafe:
    """What no handler expected is a 500 in the same shape, and does not reach the server that runs us."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if started or scope["type"] != "http":
                raise
            await failure_of(error).response(path_of(scope))(scope, receive, send)


def _invalid(error: RequestValidationError) -> Failure:
    found = [(_field(e["loc"]), e["msg"]) for e in error.errors()]
    return Failure(422, _short("; ".join(f"{field}: {why}" for field, why in found)), found[0][0])


def _field(loc: tuple[int | str, ...]) -> str:
    """`filters.tags.0`; a body that is no JSON has a position in it instead of a name."""
    return _short(".".join(str(part) for part in loc[1:] if not (len(loc) == 2 and isinstance(part, int)))) or "body"


def _short(text: str) -> str:
    text = clean(text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
