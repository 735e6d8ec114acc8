"""Speaks the Model Context Protocol for a toolbox: its tools, and the pages as resources.

Keeps no state between two requests, so any replica can answer any of them.
"""

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, unquote

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from starlette.requests import Request

from pipelines.answering.hits import snippet
from pipelines.page.stored import readable_text
from pipelines.records import Index
from pipelines.text.mistakes import describe_mistakes
from pipelines.text.phrases import read_table
from pipelines.version import raydex_version
from serve.api.errors import failure_of
from serve.mcp import arguments as schemas
from serve.mcp.pages import NoSuchPage
from serve.mcp.quoting import clean
from serve.mcp.results import CitedAnswer, CollectionList, FoundSections, PagePart, ToolResult
from serve.mcp.toolbox import Call, NotThere, Toolbox

NAME = "raydex"
TABLE = read_table(__name__)
INSTRUCTIONS: str = TABLE["instructions"]

READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
PAGES = "raydex://pages/"
TEMPLATE = f"{PAGES}{{collection}}/{{url}}"
_CURSOR = TypeAdapter(tuple[str, str])  # a collection and a URL
MOST_NAMED = 12  # maximum collections in a tool's description
LISTED = 250  # resources per reply: about 15,000 tokens, which clients do not show to their models
Context = ServerRequestContext[Any, Any]

log = logging.getLogger(__name__)
logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs every request


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A tool: its name, which is the key of its texts in the table, the schemas of both ends, and its function."""

    name: str
    arguments: type[schemas.ToolArguments]
    result: type[ToolResult]
    run: Callable[[Toolbox, Any, Call], Awaitable[ToolResult]]

    def to_tool(self, about: str = "") -> types.Tool:
        """Return the tool for the list; `about` names the indexed collections."""
        said = TABLE["tools"][self.name]
        return types.Tool(
            name=self.name,
            title=said["title"],
            description=f"{said['description']} {about}".rstrip(),
            input_schema=_schema(self.arguments),
            output_schema=_schema(self.result),
            annotations=READ_ONLY,
        )


TOOLS = (
    ToolKind("search_docs", schemas.SearchArguments, FoundSections, Toolbox.search_docs),
    ToolKind("ask_docs", schemas.AskArguments, CitedAnswer, Toolbox.ask_docs),
    ToolKind("read_page", schemas.PageArguments, PagePart, Toolbox.read_page),
    ToolKind("list_collections", schemas.NoArguments, CollectionList, Toolbox.list_collections),
)


class RequestHandlers(Protocol):
    """Answers the protocol's requests."""

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None, /) -> types.ListToolsResult: ...

    async def call_tool(self, _: Context, __: types.CallToolRequestParams, /) -> types.CallToolResult: ...

    async def list_resources(
        self, _: Context, __: types.PaginatedRequestParams | None, /
    ) -> types.ListResourcesResult: ...

    async def read_resource(self, _: Context, __: types.ReadResourceRequestParams, /) -> types.ReadResourceResult: ...


def make_server(handlers: RequestHandlers) -> Server[Any]:
    """Return a protocol server that uses `handlers`."""
    return Server(
        NAME,
        title="Raydex: documentation",
        version=raydex_version(),
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=handlers.read_resource,
    )


def list_tools(places: Sequence[tuple[str, str]] = ()) -> types.ListToolsResult:
    """Return the list of tools, with the collections in `places` (name, URL) so that an agent can choose.

    Page titles are not included, so that only the operator describes tools to an agent.
    """
    named = [f"{name} ({url})" if url else name for name, url in places[:MOST_NAMED]]
    more = f", and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    about = f"Indexed here: {', '.join(named)}{more}." if named else ""
    return types.ListToolsResult(tools=[kind.to_tool(about) for kind in TOOLS])


async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    """Return the list of resource templates: one, for pages."""
    template = types.ResourceTemplate(
        uri_template=TEMPLATE,
        name="page",
        title="A page of the documentation",
        description="A page as Markdown; its own URL, percent-encoded, stands for {url}.",
        mime_type="text/markdown",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


def tool_error(message: str) -> types.CallToolResult:
    """Return the result of a failed tool, with a message for the agent."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


class Handlers:
    """Answers the protocol's requests with a toolbox."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """List the tools, even if the database is unavailable."""
        try:
            return list_tools(await self._toolbox.places())
        except Exception as error:
            log.info("the tools are listed without the collections: %s", error)
            return list_tools()

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Return the result of a tool; an error is a result too, so that the agent reads the remedy."""
        kind = next((kind for kind in TOOLS if kind.name == params.name), None)
        if kind is None:
            names = ", ".join(kind.name for kind in TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; there are: {names}")
        try:
            arguments = kind.arguments.model_validate(params.arguments or {})
            result = await kind.run(self._toolbox, arguments, _call_of(context))
        except Exception as error:
            return tool_error(f"{kind.name}: {explain(error, kind.arguments)}")
        text = types.TextContent(type="text", text=result.to_text())
        return types.CallToolResult(content=[text], structured_content=result.model_dump(mode="json"))

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the pages of all collections, LISTED at a time."""
        collection, after = _read_cursor(params.cursor if params else None)
        try:
            indexes = await self._toolbox.indexes()
            found = await self._toolbox.list_pages(indexes, collection, after, LISTED + 1)
        except Exception as error:
            raise MCPError(types.INTERNAL_ERROR, explain(error)) from error
        resources = [_resource(index, page.url, page.title, page.begins) for index, page in found[:LISTED]]
        last = found[LISTED - 1] if len(found) > LISTED else None
        cursor = _write_cursor(last[0].collection, last[1].url) if last else None
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return a page, split like in read_page; the page's own URL also works as its URI."""
        uri = str(params.uri)
        collection, url = _read_uri(uri)
        try:
            arguments = schemas.PageArguments(url=url, collection=collection)
            page = await self._toolbox.read_page(arguments, _call_of(context))
        except Exception as error:
            code = types.INVALID_PARAMS if isinstance(error, LookupError | ValidationError) else types.INTERNAL_ERROR
            raise MCPError(code, explain(error, schemas.PageArguments), {"uri": uri}) from error
        contents = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=page.to_text())
        return types.ReadResourceResult(contents=[contents])


def explain(error: Exception, arguments: type[schemas.ToolArguments] = schemas.NoArguments) -> str:
    """Return the message for an error, with a remedy; for an unexpected error only its id in the log."""
    if isinstance(error, ValidationError):
        return describe_mistakes(error, arguments)
    if isinstance(error, NotThere | NoSuchPage):
        return str(error)
    failure = failure_of(error)
    wait = f" (again in {failure.retry_after} s)" if failure.retry_after else ""
    return f"{failure.error}{wait}"


def _call_of(context: Context) -> Call:
    count = 0

    async def report(message: str) -> None:
        nonlocal count
        count += 1
        await context.session.report_progress(count, None, message)

    request = context.request if isinstance(context.request, Request) else Request({"type": "http", "headers": []})
    return Call(request, report)


def _resource(index: Index, url: str, title: str, begins: str) -> types.Resource:
    return types.Resource(
        uri=f"{PAGES}{quote(index.collection, safe='')}/{quote(url, safe='')}",
        name=url,
        title=clean(title) or url,
        description=snippet(clean(readable_text(begins)), 120),
        mime_type="text/markdown",
    )


def _read_uri(uri: str) -> tuple[str, str]:
    """Return the collection ("" for any) and the URL in a resource's URI. Raises MCPError."""
    if uri.startswith(("http://", "https://")):
        return "", uri
    collection, _, url = uri.removeprefix(PAGES).partition("/")
    if not uri.startswith(PAGES) or not url:
        raise MCPError(types.INVALID_PARAMS, f"{uri!r} is not a page: write {TEMPLATE}", {"uri": uri})
    return unquote(collection), unquote(url)


def _write_cursor(collection: str, url: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([collection, url]).encode()).decode()


def _read_cursor(cursor: str | None) -> tuple[str, str]:
    """Return the collection and the URL before the next resource. Raises MCPError."""
    if not cursor:
        return "", ""
    try:
        return _CURSOR.validate_json(base64.urlsafe_b64decode(cursor))
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, "the cursor is not from this server: list from the beginning") from error


def _schema(model: type[schemas.ToolArguments] | type[ToolResult]) -> dict[str, Any]:
    """Return the JSON Schema of a model, without titles, which only repeat its names."""
    schema = model.model_json_schema(schema_generator=_Untitled)
    for one in (schema, *schema.get("$defs", {}).values()):
        one.pop("title", None)
    return schema


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:
        return False
