"""Turns every exception into a reply that says what to do, never into a stack trace."""

import logging
import uuid
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.answering.question import QuestionTooLong
from pipelines.answering.retrieval.live import CollectionNotNamed, NotReady
from pipelines.answering.synthesis.base import ModeNeedsModel, UnknownMode
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.writing.agents import StepUnavailable
from pipelines.insights.insights import BadPeriod
from pipelines.store import NoLiveIndex, NoSuchCollection, StoreUnavailable, UnusableDatabase
from pipelines.text.cleaning import clean_for_storage
from pipelines.text.mistakes import MOST_PROBLEMS, mistakes_of
from serve.failure import RETRY_AFTER_S, Failure, not_served, path_of
from serve.telemetry import CLIENT_LEFT, request_id

log = logging.getLogger(__name__)

# An error names the mistake in the input; it does not echo the whole input.
MOST_MESSAGE_CHARACTERS = 1_000
# Starlette's messages for a path without a route, for example /v1/responses and /v1/completions.
NO_ROUTE = ("Not Found", "Method Not Allowed")

NO_OBJECT = "body: send a JSON object, with the header `content-type: application/json`"


class ClientGone(Exception):
    """The client disconnected before its answer was complete; the work for it has been cancelled."""


def failure_of(error: Exception, model: Any = None) -> Failure:  # noqa: PLR0911
    """Return the reply for `error`. An unexpected error is logged, and the reply has its request id.

    `model` is the expected model of the request's body.
    """
    message = _shorten(str(error))
    match error:
        case StoreUnavailable():
            return Failure(503, f"the database is unavailable, try again: {message}", retry_after=RETRY_AFTER_S)
        case NotReady():
            return Failure(503, message, retry_after=RETRY_AFTER_S, kind="model")
        case StepUnavailable() | UnusableDatabase():
            return Failure(503, message, retry_after=RETRY_AFTER_S)
        case CollectionNotNamed():
            return Failure(422, message, "collection", tuple(error.names), kind="" if error.names else "no_index")
        case NoLiveIndex() | NoSuchCollection():
            return Failure(404, message, "collection", kind="no_index")
        case BadPeriod():
            return Failure(422, message, "since")
        case QuestionTooLong():
            return Failure(413, message, "question", kind="too_long", limit=error.most)
        case ModeNeedsModel():
            return Failure(400, message, "mode", error.choices)
        case UnknownMode():
            return Failure(422, message, "mode", tuple(getattr(error, "choices", ())))
        case TemplateError():
            return Failure(422, message, "variables")
        case RequestValidationError():
            return _invalid(error, model)
        case HTTPException():  # FastAPI's 400 means an unreadable body
            param = "body" if error.status_code == 400 else None
            status, prefix = (422, "body: ") if param else (error.status_code, "")
            wait = RETRY_AFTER_S if status == 503 else None
            return Failure(status, _shorten(f"{prefix}{error.detail}"), param, retry_after=wait)
    request = request_id() or uuid.uuid4().hex
    log.error("request %s failed", request, exc_info=error)
    return Failure(500, f"the service failed: its log shows why, under the request id {request}", request=request)


def handle_errors(app: FastAPI) -> None:
    """Turn every exception of `app` into a reply: FastAPI's own exceptions here, all others in Failsafe."""

    async def reply_failure(request: Request, error: Exception) -> Response:
        body = getattr(request.scope.get("route"), "body_field", None)
        failure, path = failure_of(error, body and body.field_info.annotation), path_of(request.scope)
        if isinstance(error, HTTPException) and error.detail in NO_ROUTE:
            failure = not_served(request.method, path, error.headers, error.status_code)
        return failure.response(request.scope)

    async def reply_nothing(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_LEFT)  # nobody reads it

    app.add_exception_handler(HTTPException, reply_failure)
    app.add_exception_handler(RequestValidationError, reply_failure)
    app.add_exception_handler(ClientGone, reply_nothing)
    app.add_middleware(Failsafe)


class Failsafe:
    """ASGI middleware that turns an exception without a handler into a 500 of the same shape."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            if started or scope["type"] != "http":
                raise
            await failure_of(error).response(scope)(scope, receive, send)


def _invalid(error: RequestValidationError, model: Any) -> Failure:
    """Describe the mistakes in the first fields, once per field, and list the names that are not fields."""
    problems: list[dict[str, Any]] = [
        {**problem, "loc": _in_body(problem["loc"])} for problem in error.errors()[:MOST_PROBLEMS]
    ]
    if any(
        not one["loc"] and one["type"] == "model_attributes_type" for one in problems
    ):  # a form, as curl sends by default
        return Failure(422, NO_OBJECT, "body")
    mistakes = mistakes_of(problems, model)
    first = mistakes[0]
    literal = [one for one in problems if one["type"] == "literal_error" and mistakes_of([one], model) == [first]]
    expected = literal[0].get("ctx", {}).get("expected", "") if literal else ""
    choices = tuple(choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ") if choice)
    said = [one.describe() if one.place else f"body: {one.why}" for one in mistakes]
    return Failure(422, _shorten("; ".join(said)), _shorten(first.path) or "body", choices)


def _in_body(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the location in the body (query, path); () for invalid JSON, whose location is only a position."""
    return () if len(loc) == 2 and isinstance(loc[1], int) else loc[1:]


def _shorten(text: str) -> str:
    text = clean_for_storage(text)
    return text if len(text) <= MOST_MESSAGE_CHARACTERS else f"{text[:MOST_MESSAGE_CHARACTERS]}…"
