"""Lists every route of the API, with its handler and its errors.

Knows neither Ray nor the environment, and not who may ask: guard/ stands in front.
"""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import Route

from pipelines.answering.engine import QueryEngine
from pipelines.store import Store
from serve.api.admin import AdminRoutes
from serve.api.answers import AnswerRoutes
from serve.api.errors import handle_errors
from serve.api.head import HeadAsGet
from serve.api.inquiry import Inquiries, Observer, QuestionLog
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
from serve.mcp.endpoint import METHODS, McpEndpoint
from serve.mcp.llms import LlmsRoutes
from serve.mcp.server import Handlers, make_server
from serve.mcp.toolbox import Toolbox
from serve.threads import DatabaseThreads
from serve.web.pages import add_pages

DESCRIPTION = """Ask a documentation site; answers cite their sources.

Errors are `{"error", "kind", "field"?, "choices"?, "retry_after"?}`. A 503 or 429 has `Retry-After` too: the same
request may succeed then."""

ERRORS: dict[int, str] = {
    400: "Something in the request is not valid; `param` names it.",
    401: "The API key is missing, unknown, revoked or expired.",
    403: "The key, or the page that sent it, may not do this.",
    404: "No such collection, or nothing is published in it; no such answer.",
    422: "Something in the request is not valid; `field` names it.",
    429: "Too many requests with this key; try again after `Retry-After` seconds.",
    503: "The database or a model is unavailable or busy; try again after `Retry-After` seconds.",
}
REF = "#/components/schemas/{model}"
EVENT_STREAM = {"schema": {"type": "string"}}
STREAM_EXAMPLE = """event: hits
data: {"hits":[…],"queries":["How do I read a CSV file?"],"index":4,"revision":2}

event: status
data: {"stage":"reading","agent":"llm","passages":5,"tokens":1730,"seconds":9.6}

event: delta
data: {"text":"Call ray.data.read_csv [1]."}

event: citation
data: {"n":1,"source":"https://docs.example/data#csv","title":"Data › CSV",…}

event: answer
data: {"id":"…","answer":"Call ray.data.read_csv [1].",…}
"""


def create_app(
    engine: QueryEngine,
    store: Store,
    *,
    recorder: QuestionLog | None = None,
    observer: Observer | None = None,
    collection: str = "",
    v1_sources: SourcesPlace = "key",
    heartbeat_s: float = HEARTBEAT_S,
    announced: Callable[[], object] = lambda: None,
) -> FastAPI:
    """Return the HTTP application around `engine`; `store` has collections, conversations and feedback.

    `recorder` records questions, `observer` counts answers. `collection` is the engine's own default. `v1_sources` is
    where the sources of a chat completion stand if its request does not say. An open stream is silent for at most
    `heartbeat_s` seconds. `announced` hears of announced changes, to index them.
    """
    app = FastAPI(title="Raydex", description=DESCRIPTION, docs_url=None, redoc_url=None)
    threads = DatabaseThreads()
    inquiries = Inquiries(engine, store, threads, recorder, observer)
    collections = AskedCollections(store, threads, collection)
    _add_question_routes(app, QuestionRoutes(engine, store, threads, inquiries, collections, heartbeat_s))
    _add_answer_routes(app, AnswerRoutes(store, threads))
    _add_session_routes(app, SessionRoutes(store, threads))
    _add_state_routes(app, StateRoutes(engine, store, threads, collection))
    openai = OpenAIRoutes(engine, store, threads, inquiries, v1_sources, heartbeat_s)
    _add_openai_routes(app, openai)
    _add_llms_routes(app, LlmsRoutes(store, threads, collection))
    _add_admin_routes(app, AdminRoutes(engine, store, threads))
    _add_changes_routes(app, ChangesRoutes(store, threads, announced))
    toolbox = Toolbox(engine, store, threads, inquiries, collection)
    app.router.routes.append(
        Route(MCP_PATH, McpEndpoint(make_server(Handlers(toolbox))), methods=METHODS, include_in_schema=False)
    )
    add_pages(app)
    _describe_errors(app)
    handle_errors(app)
    app.add_middleware(HeadAsGet)
    return app


def _add_question_routes(app: FastAPI, routes: QuestionRoutes) -> None:
    app.post(
        "/query",
        summary="Answer a question with citations",
        response_model_exclude_unset=True,
        responses=_errors(401, 404, 422, 429, 503),
    )(routes.query)
    app.post(
        "/query/stream",
        summary="Answer a question with citations, as server-sent events",
        response_class=StreamedAnswer,
        status_code=200,
        responses={
            200: {
                "description": "Events `hits`, `status`, `delta`, `citation`, `answer` (the reply of /query) or "
                "`error`, and `heartbeat` in silences. A delta with `reset` voids the deltas before it.",
                "content": {"text/event-stream": {**EVENT_STREAM, "example": STREAM_EXAMPLE}},
            },
            **_errors(401, 404, 422, 429, 503),
        },
    )(routes.stream)
    app.post("/search", summary="Search without an answer", responses=_errors(401, 404, 422, 429, 503))(routes.search)


def _add_answer_routes(app: FastAPI, routes: AnswerRoutes) -> None:
    app.post("/feedback", summary="Rate an answer", responses=_errors(401, 404, 422, 429, 503))(routes.rate)
    app.get(
        "/answers/{id}",
        summary="Read a recorded answer again: your own, or one that was shared",
        response_model_exclude_unset=True,
        responses=_errors(401, 404, 422, 429, 503),
    )(routes.answer)
    app.post(
        "/answers/{id}/share",
        summary="Let everyone who may ask read your answer",
        responses=_errors(401, 404, 422, 429, 503),
    )(routes.share)
    app.delete(
        "/answers/{id}/share",
        summary="Let nobody else read your answer any longer",
        responses=_errors(401, 404, 422, 429, 503),
    )(routes.unshare)


def _add_session_routes(app: FastAPI, routes: SessionRoutes) -> None:
    app.post(
        "/session",
        summary="Open a session of a page, with a publishable key or, where readers need none, without a key",
        responses=_errors(401, 403, 429, 503),
    )(routes.open)


def _add_state_routes(app: FastAPI, routes: StateRoutes) -> None:
    app.get("/collections", summary="List the collections", responses=_errors(401, 429, 503))(routes.collections)
    app.get(
        "/collections/{name}",
        summary="Show what a collection is about: its versions, languages and example questions",
        responses=_errors(401, 404, 422, 429, 503),
    )(routes.collection)
    app.get("/health", summary="Check that the process is alive")(routes.health)
    app.get(
        "/health/ready",
        summary="Check that questions can be answered: the database is reachable and the models are loaded",
        responses=_errors(401, 404, 422, 429, 503),
    )(routes.ready)


def _add_llms_routes(app: FastAPI, routes: LlmsRoutes) -> None:
    text: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
    errors = {**text, **_errors(401, 404, 422, 429, 503)}
    links, full = "List all pages as links, for language models (llmstxt.org)", "Get all pages as one text"
    for path, summary, handler in (
        ("/llms.txt", links, routes.links),
        ("/llms-full.txt", full, routes.full),
        ("/collections/{name}/llms.txt", links, routes.links_of),
        ("/collections/{name}/llms-full.txt", full, routes.full_of),
    ):
        app.get(path, summary=summary, response_class=PlainTextResponse, responses=errors)(handler)


def _add_openai_routes(app: FastAPI, routes: OpenAIRoutes) -> None:
    # FastAPI describes a 422 for every route with a body or a parameter: here an invalid request is a 400.
    unused: dict[int | str, dict[str, Any]] = {
        422: {"description": "Not used: an invalid request is a 400 here.", **_body_of(OpenAIErrorOut)}
    }
    app.post(
        "/v1/chat/completions",
        summary="Answer a question with citations, in OpenAI's format, whole or streamed",
        response_model=ChatOut,
        responses={
            200: {"content": {"text/event-stream": EVENT_STREAM}},
            **_openai_errors(400, 401, 404, 429, 503),
            **unused,
        },
    )(routes.chat)
    app.get("/v1/models", summary="List the collections as models", responses=_openai_errors(503))(routes.models)
    app.get("/v1/models/{model:path}", summary="Get one model", responses={**_openai_errors(404, 503), **unused})(
        routes.model
    )
    app.post(
        "/v1/embeddings",
        summary="Embed texts with the embedding model of a collection",
        responses={**_openai_errors(400, 401, 404, 429, 503), **unused},
    )(routes.embeddings)


def _add_admin_routes(app: FastAPI, routes: AdminRoutes) -> None:
    app.get(
        "/admin/questions",
        summary="List recorded questions with their answers and ratings, the newest first",
        responses=_errors(401, 403, 422, 429, 503),
    )(routes.questions)
    app.get(
        "/admin/insights",
        summary="Show what the recorded questions teach, as `raydex insights` does",
        responses=_errors(401, 403, 404, 422, 429, 503),
    )(routes.insights)
    app.get(
        "/admin/status",
        summary="Show indexes, pages by state, last runs and failed pages of collections, as `raydex status` does",
        responses=_errors(401, 403, 404, 422, 429, 503),
    )(routes.status)


def _add_changes_routes(app: FastAPI, routes: ChangesRoutes) -> None:
    app.post(
        "/v1/collections/{name}/changes",
        summary="Announce pages that changed or were deleted, to have them indexed at once",
        status_code=202,
        responses=_errors(401, 403, 404, 422, 429, 503),
    )(routes.announce)
    app.get(
        "/v1/collections/{name}/changes/{id}",
        summary="Show how far announced changes are",
        responses=_errors(401, 403, 404, 422, 429, 503),
    )(routes.announcement)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": ERRORS[status], **_body_of(ErrorOut)} for status in statuses}


def _openai_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": ERRORS[status], **_body_of(OpenAIErrorOut)} for status in statuses}


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": REF.format(model=model.__name__)}}}}


def _describe_errors(app: FastAPI) -> None:
    """Add the errors to what the API says of itself. Routes refer to them: FastAPI would read them for each of 110."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        described = describe()
        _, models = models_json_schema(
            [(ErrorOut, "serialization"), (OpenAIErrorOut, "serialization")], ref_template=REF
        )
        described["components"]["schemas"] |= models["$defs"]
        return described

    app.openapi = openapi  # type: ignore[method-assign]
