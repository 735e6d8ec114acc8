"""Lists every route of the API with its handler and its errors; routes.yaml has their descriptions.

Knows neither Ray nor the environment nor permissions: guard/ runs in front.
"""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import Route

from pipelines.answering.engine import QueryEngine
from pipelines.store import Store
from pipelines.text.phrases import read_table
from pipelines.version import raydex_version
from serve.api.admin import AdminRoutes
from serve.api.answers import AnswerRoutes
from serve.api.clicks import ClickRoutes, SearchIds
from serve.api.errors import handle_errors
from serve.api.head import HeadAsGet
from serve.api.inquiry import Inquiries
from serve.api.openai.handlers import OpenAIRoutes
from serve.api.openai.schemas import ChatOut, OpenAIErrorOut
from serve.api.openai.sources import SourcesPlace
from serve.api.questions import QuestionRoutes
from serve.api.replies import ErrorOut
from serve.api.sessions import AskedCollections, SessionRoutes
from serve.api.state import StateRoutes
from serve.api.stream import HEARTBEAT_S, StreamedAnswer
from serve.changes.handlers import ChangesRoutes
from serve.failure import MCP_PATH
from serve.guard.origin import Network
from serve.guard.sessions import ServiceSecret
from serve.mcp.endpoint import METHODS, McpEndpoint
from serve.mcp.llms import LlmsRoutes
from serve.mcp.server import Handlers, make_server
from serve.mcp.toolbox import Toolbox
from serve.recorder import Recorder
from serve.telemetry import Metrics
from serve.threads import DatabaseThreads
from serve.web.pages import add_pages

Replies = dict[int | str, dict[str, Any]]

TABLE = read_table(__name__)
REF = "#/components/schemas/{model}"


def _errors(model: type[BaseModel], *statuses: int) -> Replies:
    return {status: {"description": TABLE["errors"][str(status)], **_body_of(model)} for status in statuses}


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": REF.format(model=model.__name__)}}}}


ASKED = _errors(ErrorOut, 401, 404, 422, 429, 503)
LISTED = _errors(ErrorOut, 401, 429, 503)
ADMINISTERED = _errors(ErrorOut, 401, 403, 404, 422, 429, 503)
EVENT_STREAM = {"schema": {"type": "string"}}
STREAMED = {
    "description": TABLE["stream"],
    "content": {"text/event-stream": {**EVENT_STREAM, "example": TABLE["events"]}},
}
PLAIN_TEXT = {"content": {"text/plain": EVENT_STREAM}}
# FastAPI documents a 422 for every route with a body or a parameter, but here an invalid request is a 400.
UNUSED: Replies = {422: {"description": TABLE["unused"], **_body_of(OpenAIErrorOut)}}
COMPLETED = _errors(OpenAIErrorOut, 400, 401, 404, 429, 503) | UNUSED


def create_app(
    engine: QueryEngine,
    store: Store,
    *,
    recorder: Recorder | None = None,
    observer: Metrics | None = None,
    collection: str = "",
    v1_sources: SourcesPlace = "key",
    heartbeat_s: float = HEARTBEAT_S,
    announced: Callable[[], object] = lambda: None,
    trusted: Sequence[Network] = (),
) -> FastAPI:
    """Return the HTTP application around `engine`; `store` has collections, conversations and feedback.

    `recorder` records questions, `observer` counts answers. `collection` is the engine's own default. `v1_sources` is
    the default place for the sources of a chat completion. An open stream is silent for at most `heartbeat_s` seconds.
    `announced` is called when changes are announced, so that they get indexed. `trusted` are the proxies whose
    X-Forwarded-For is believed.
    """
    about = {"title": "Raydex", "version": raydex_version(), "description": TABLE["description"]}
    app = FastAPI(**about, docs_url=None, redoc_url=None)
    threads = DatabaseThreads()
    inquiries = Inquiries(engine, store, threads, recorder, observer)
    collections = AskedCollections(store, threads, collection)
    recorded = recorder is not None and recorder.enabled
    ids = SearchIds(ServiceSecret(store, threads)) if recorded else None
    _add_question_routes(app, QuestionRoutes(engine, inquiries, collections, heartbeat_s, ids))
    _add(app, "POST /clicks", ClickRoutes(store, threads, ids).open, ASKED)
    _add_answer_routes(app, AnswerRoutes(store, threads))
    _add(app, "POST /session", SessionRoutes(store, threads).open, _errors(ErrorOut, 401, 403, 429, 503))
    _add_state_routes(app, StateRoutes(engine, store, threads, collection))
    _add_openai_routes(app, OpenAIRoutes(engine, store, threads, inquiries, v1_sources, heartbeat_s))
    _add_llms_routes(app, LlmsRoutes(store, threads, collections, trusted))
    _add_admin_routes(app, AdminRoutes(engine, store, threads))
    _add_changes_routes(app, ChangesRoutes(store, threads, announced))
    mcp = McpEndpoint(make_server(Handlers(Toolbox(engine, store, threads, inquiries, collection))))
    app.router.routes.append(Route(MCP_PATH, mcp, methods=METHODS, include_in_schema=False))
    add_pages(app)
    _describe_errors(app)
    handle_errors(app)
    app.add_middleware(HeadAsGet)
    return app


def _add(app: FastAPI, route: str, handler: Callable[..., Any], replies: Replies, **more: Any) -> None:
    """Add a route such as "POST /query", with its summary from the table; `replies` documents its replies."""
    method, path = route.split()
    app.api_route(path, methods=[method], summary=TABLE["routes"][route], responses=replies, **more)(handler)


def _add_question_routes(app: FastAPI, routes: QuestionRoutes) -> None:
    _add(app, "POST /query", routes.query, ASKED, response_model_exclude_unset=True)
    replies: Replies = {200: STREAMED, **ASKED}
    for route in ("POST /query/stream", "POST /stream"):
        _add(app, route, routes.stream, replies, response_class=StreamedAnswer, status_code=200)
    _add(app, "POST /search", routes.search, ASKED)


def _add_answer_routes(app: FastAPI, routes: AnswerRoutes) -> None:
    _add(app, "POST /feedback", routes.rate, ASKED)
    _add(app, "GET /answers/{id}", routes.answer, ASKED, response_model_exclude_unset=True)
    _add(app, "POST /answers/{id}/share", routes.share, ASKED)
    _add(app, "DELETE /answers/{id}/share", routes.unshare, ASKED)


def _add_state_routes(app: FastAPI, routes: StateRoutes) -> None:
    _add(app, "GET /collections", routes.collections, LISTED)
    _add(app, "GET /collections/{name}", routes.collection, ASKED)
    _add(app, "GET /health", routes.health, {})
    _add(app, "GET /health/ready", routes.ready, ASKED)


def _add_llms_routes(app: FastAPI, routes: LlmsRoutes) -> None:
    replies: Replies = {200: PLAIN_TEXT, **ASKED}
    for place in ("", "/collections/{collection}"):
        for name, handler in (("llms.txt", routes.links), ("llms-full.txt", routes.full)):
            _add(app, f"GET {place}/{name}", handler, replies, response_class=PlainTextResponse)


def _add_openai_routes(app: FastAPI, routes: OpenAIRoutes) -> None:
    streamed: Replies = {200: {"content": {"text/event-stream": EVENT_STREAM}}, **COMPLETED}
    _add(app, "POST /v1/chat/completions", routes.chat, streamed, response_model=ChatOut)
    _add(app, "GET /v1/models", routes.models, _errors(OpenAIErrorOut, 503))
    _add(app, "GET /v1/models/{model:path}", routes.model, _errors(OpenAIErrorOut, 404, 503) | UNUSED)
    _add(app, "POST /v1/embeddings", routes.embeddings, COMPLETED)


def _add_admin_routes(app: FastAPI, routes: AdminRoutes) -> None:
    _add(app, "GET /admin/questions", routes.questions, ADMINISTERED)
    _add(app, "GET /admin/insights", routes.insights, ADMINISTERED)
    _add(app, "GET /admin/status", routes.status, ADMINISTERED)


def _add_changes_routes(app: FastAPI, routes: ChangesRoutes) -> None:
    _add(app, "POST /v1/collections/{name}/changes", routes.announce, ADMINISTERED, status_code=202)
    _add(app, "GET /v1/collections/{name}/changes/{id}", routes.announcement, ADMINISTERED)


def _describe_errors(app: FastAPI) -> None:
    """Add the error schemas to the OpenAPI document.

    Routes refer to them, so FastAPI need not process them 110 times.
    """
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        described = describe()
        _, models = models_json_schema(
            [(ErrorOut, "serialization"), (OpenAIErrorOut, "serialization")], ref_template=REF
        )
        described["components"]["schemas"] |= models["$defs"]
        return described

    app.openapi = openapi  # pyrefly: ignore[method-assign]
