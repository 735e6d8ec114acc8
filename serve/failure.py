"""A failed request as an HTTP reply, in the service's own format or in OpenAI's.

A browser that opens an address gets a page. Knows neither routes nor exceptions: guards, routes and the proxy report
failures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from serve.web.failure_page import failure_page, wants_page

# A killed embedded Postgres is back within a second or two.
RETRY_AFTER_S = 2
# The default kind of failure for a status. A page shows each kind differently.
KINDS = {
    401: "no_key", 403: "forbidden", 404: "not_found", 405: "not_found", 429: "rate", 500: "internal",
    503: "unavailable",
}  # fmt: skip
MCP_PATH = "/mcp"
V1_ROUTES = "use POST /v1/chat/completions, POST /v1/embeddings or GET /v1/models"
MOST_PATH = 200  # maximum characters of a path that a message repeats
RPC_CODE = -32_000  # one of the codes that JSON-RPC reserves for servers
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", 503: "unavailable"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed.

    `param` is the field at fault and `choices` its valid values. `retry_after` is the number of seconds to wait,
    `request` the request's id in the log, `headers` are additional headers of the reply. `kind` lets clients tell
    failures apart; its default is the status's kind in KINDS, else "invalid". `limit` is the maximum length of the
    field in characters.
    """

    status: int
    error: str
    param: str | None = None
    choices: tuple[str, ...] = ()
    retry_after: int | None = None
    request: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    limit: int | None = None

    @property
    def body(self) -> dict[str, object]:
        """The reply in the service's own format."""
        more = {
            "field": self.param,
            "choices": list(self.choices),
            "limit": self.limit,
            "retry_after": self.retry_after,
            "request": self.request,
        }
        return {"error": self.error, "kind": self._kind, **{name: value for name, value in more.items() if value}}

    @property
    def _kind(self) -> str:
        return self.kind or KINDS.get(self.status, "invalid")

    @property
    def openai_body(self) -> dict[str, object]:
        """The reply in OpenAI's format."""
        no_model = self.status == 404 and self.param == "collection"
        return {
            "error": {
                "message": self.error,
                "type": "server_error" if self.status >= 500 else "invalid_request_error",
                "code": "model_not_found" if no_model else OPENAI_CODES.get(self.status),
                "param": "model" if self.param == "collection" else self.param,
            }
        }

    @property
    def rpc_body(self) -> dict[str, object]:
        """The reply in JSON-RPC's format; clients of the Model Context Protocol show its message."""
        return {"jsonrpc": "2.0", "id": None, "error": {"code": RPC_CODE, "message": self.error, "data": self.body}}

    def response(self, scope: Scope) -> Response:
        """Return the reply to the request of `scope`: a page for a browser that opens an address, else JSON.

        Under /v1/ an invalid request is 400, as OpenAI's clients expect, and 422 elsewhere.
        """
        wait = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        headers = {**self.headers, **wait}
        if wants_page(scope):
            return failure_page(scope, self.status, self._kind, self.error, headers)
        if path_of(scope) == MCP_PATH:
            return JSONResponse(self.rpc_body, self.status, headers)
        if not is_openai(path_of(scope)):
            return JSONResponse(self.body, self.status, headers)
        return JSONResponse(self.openai_body, 400 if self.status == 422 else self.status, headers)


def not_served(method: str, path: str, headers: Mapping[str, str] | None = None, status: int = 404) -> Failure:
    """Return the failure of a request without a route."""
    served = V1_ROUTES if is_openai(path) else "/docs shows what is"
    return Failure(status, f"{method} {path[:MOST_PATH]} is not served: {served}", headers=headers or {})


def is_openai(path: str) -> bool:
    """Return whether `path` belongs to OpenAI's API."""
    return path.startswith("/v1/") and not path.startswith("/v1/collections/")


def path_of(scope: Scope) -> str:
    """Return the path of a request below the application's root."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root + "/") else path
