"""Forwards the protocol's requests to a Raydex service elsewhere, each as a separate request.

The tools are listed even while the service is unavailable; an agent that calls one gets the reason.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types.version import LATEST_MODERN_VERSION

from pipelines.proxies import is_near
from serve.failure import MCP_PATH
from serve.mcp.server import Context, list_tools, tool_error

# A model may write for minutes; the service sends a heartbeat every 15 s.
CONNECT_S, SILENCE_S = 10.0, 60.0


log = logging.getLogger(__name__)


class ServiceAway(ConnectionError):
    """The service can't be reached, or did not answer in the protocol."""


class Forwarder:
    """Answers the protocol's requests by asking the service at `url`, with the API key `key` if given."""

    def __init__(self, url: str, key: str = "") -> None:
        self._url = url.rstrip("/").removesuffix(MCP_PATH)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        try:
            async with self._client() as client:
                return await client.list_tools()
        except (ServiceAway, MCPError) as error:
            log.warning("%s", error)
            return list_tools()

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Return the result of the service's tool, and report its progress; cancelling it cancels the work there."""
        try:
            async with self._client() as client:
                return await client.call_tool(
                    params.name, params.arguments or {}, progress_callback=context.session.report_progress
                )
        except ServiceAway as error:
            return tool_error(f"{params.name}: {error}")
        except MCPError as error:
            if error.code == types.INVALID_PARAMS:
                raise
            return tool_error(f"{params.name}: {self._url} refused: {error.message}{self._advice(error)}")

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        async with self._translated() as client:
            return await client.list_resources(cursor=params.cursor if params else None)

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        async with self._translated() as client:
            return await client.read_resource(str(params.uri))

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[Client]:
        try:
            async with self._client() as client:
                yield client
        except ServiceAway as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        """Yield a client of the service. Raises ServiceAway and MCPError."""
        timeout, proxies = httpx2.Timeout(CONNECT_S, read=SILENCE_S), not is_near(self._url)
        try:
            async with httpx2.AsyncClient(headers=self._headers, timeout=timeout, trust_env=proxies) as http:
                transport = streamable_http_client(f"{self._url}{MCP_PATH}", http_client=http)
                async with Client(transport, mode=LATEST_MODERN_VERSION) as client:
                    yield client
        except Exception as error:
            first = _first(error)
            if isinstance(first, MCPError):
                raise first from None
            if isinstance(first, httpx2.HTTPError | httpx2.InvalidURL | OSError | ValueError):
                why = str(first) or type(first).__name__
                raise ServiceAway(f"no answer from {self._url}: {why}; is `raydex serve` running there?") from None
            raise

    def _advice(self, error: MCPError) -> str:
        kind = error.data.get("kind") if isinstance(error.data, dict) else None
        if kind not in ("no_key", "bad_key"):
            return ""
        return "; give it to `raydex mcp` with `--key` or RAYDEX_KEY"


def _first(error: BaseException) -> BaseException:
    """Return the first error in nested groups, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
