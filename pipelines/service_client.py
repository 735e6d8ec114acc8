"""Client of a Raydex service over HTTP: streamed answers, ratings, collections.

The chat bots and `raydex ask` use it. It knows no deployment and no command line.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx

from pipelines.proxies import is_near
from pipelines.text import sse
from pipelines.text.parsing import NotParsed, parse_json

# A model may take any time to write; the service sends a heartbeat every 15 s.
SILENCE_S = 60.0
CONNECT_S = 5.0
UNREACHABLE, CUT = "unreachable", "cut"
# Kinds for refusals that come from in front of the service and therefore name no kind.
KINDS = {401: "no_key", 429: "rate", 503: "unavailable"}


class AskFailed(RuntimeError):
    """The service did not answer. The message is for the log.

    `kind` is the error kind from the service (docs/api.md), UNREACHABLE or CUT. `seconds` is how long to wait before a
    retry, None if a retry won't help. `status` is the HTTP status of a refusal (0: no reply), and `said` its message.
    `limit` is the most characters a question may have, None if the length was not the problem.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        seconds: float | None = None,
        status: int = 0,
        said: str = "",
        limit: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.seconds, self.status, self.said, self.limit = kind, seconds, status, said, limit


class ServiceClient:
    """Talks to the service at `url` with the API key `key`. If the service is `here`, requests bypass any proxy."""

    def __init__(self, url: str, key: str = "", here: bool = False) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        proxies = not (here or is_near(self.url))
        self._http = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=timeout, trust_env=proxies)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def stream(self, question: Mapping[str, Any]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield the name and data of each event of an answer, `answer` last. Raises AskFailed."""
        try:
            async with self._http.stream("POST", "/query/stream", json=question) as response:
                if response.is_error:
                    await response.aread()
                    raise refusal(response)
                async for event in sse.events(response.aiter_bytes()):
                    name, data = event.name, parse_json(event.data)
                    if name == "error":
                        kind, said = data.get("kind", ""), f"{self.url} failed: {data['error']}"
                        raise AskFailed(kind, said, data.get("retry_after"), limit=_limit_in(data))
                    yield name, data
                    if name == "answer":
                        return
        except httpx.ConnectError as error:
            raise AskFailed(UNREACHABLE, f"{self.url}: {error}") from error
        except (httpx.HTTPError, NotParsed, sse.TooLong) as error:
            raise AskFailed(CUT, f"{self.url}: {type(error).__name__}: {error}") from error
        raise AskFailed(CUT, f"{self.url} closed the connection before the answer was complete: ask again")

    async def rate(self, id: str, rating: int, rater: str, comment: str = "", reasons: Sequence[str] = ()) -> None:
        """Rate an answer for `rater`. Raises AskFailed."""
        body = {"id": id, "rating": rating, "comment": comment, "reasons": list(reasons), "rater": rater}
        await self._call("POST", "/feedback", json=body)

    async def collections(self) -> list[dict[str, Any]]:
        """Return the collections of the service. Raises AskFailed."""
        return list((await self._call("GET", "/collections")).json())

    async def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise AskFailed(UNREACHABLE, f"{self.url}: {error}") from error
        if response.is_error:
            raise refusal(response)
        return response


def refusal(response: httpx.Response) -> AskFailed:
    """Return the error for a response with status 400 or above."""
    try:
        body = response.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    said = str(body.get("error") or response.reason_phrase)
    wait = response.headers.get("retry-after", "")
    status, seconds = response.status_code, float(wait) if wait.isdecimal() else None
    hint = "; set RAYDEX_KEY to a key of the service" if status == 401 else ""
    kind = str(body.get("kind") or KINDS.get(status, ""))
    return AskFailed(kind, f"{status}: {said}{hint}", seconds, status, said, _limit_in(body))


def _limit_in(body: Mapping[str, Any]) -> int | None:
    limit = body.get("limit")
    return limit if isinstance(limit, int) else None
