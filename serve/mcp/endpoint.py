"""The protocol's endpoint over Streamable HTTP: one POST, answered as JSON or as server-sent events.

Each request has its own session that ends with it. So any replica can answer, restarts go unnoticed, and a disconnect
cancels the work. There are no server-initiated streams: GET is answered with 405.
"""

from collections.abc import Mapping
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from serve.failure import MCP_PATH, Failure

METHODS = ("POST", "GET", "DELETE")  # the methods of the transport


class McpEndpoint:
    """The ASGI application at MCP_PATH."""

    path = MCP_PATH

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self  # for metrics and log lines, which use its path; Starlette's own routes do not set this
        if scope["method"] != "POST":
            message = f"{MCP_PATH} is for clients of the Model Context Protocol: they send POST, see docs/mcp.md"
            await Failure(405, message, headers={"Allow": "POST"}).response(scope)(scope, receive, send)
            return
        manager = StreamableHTTPSessionManager(
            self._server, stateless=True, json_response=not _takes_events(Headers(scope=scope))
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def _takes_events(headers: Mapping[str, str]) -> bool:
    """Return whether the client accepts server-sent events; one that accepts only JSON gets JSON."""
    accept = headers.get("accept", "*/*")
    return any(kind in accept for kind in ("text/event-stream", "text/*", "*/*"))
