"""Reranks hits with an HTTP endpoint that implements Cohere's `/v1/rerank`.

The server may be slow, broken or not a reranker at all; each case raises RerankFailed.
"""

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pipelines import tracing
from pipelines.answering.reranking.base import RerankFailed, by_score, document
from pipelines.proxies import direct_mounts
from pipelines.records import Hit
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.counts import counted

if TYPE_CHECKING:
    import httpx

ENDPOINT_TIMEOUT_S = 5.0


class HTTPReranker:
    """A rerank endpoint that implements Cohere's `/v1/rerank` (Cohere, Jina, vLLM, Infinity, llama.cpp).

    `url` is the endpoint, or the server with or without `/v1`. Hits that the endpoint leaves out follow the others with
    their earlier score. Redirects are not followed, because the key is only for `url`.
    """

    name = "rerank-endpoint"

    def __init__(self, url: str, model: str, *, api_key: str = "", timeout_s: float = ENDPOINT_TIMEOUT_S) -> None:
        self.url, self.model, self.timeout_s = endpoint_of(url), model, timeout_s
        self._key = api_key.strip()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def rerank(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return the hits ordered by the endpoint's `relevance_score`. Raises RerankFailed."""
        if not hits:
            return ()
        scores = self._scores(await self._answer(question, hits), len(hits))
        named = sorted(scores)
        first = by_score([hits[place] for place in named], [scores[place] for place in named], self.name)
        return (*first, *(hit for place, hit in enumerate(hits) if place not in scores))

    async def close(self) -> None:
        """Close the running loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    async def _answer(self, question: str, hits: Sequence[Hit]) -> Any:
        import httpx

        request = {
            "model": self.model,
            "query": clean_for_tokenizer(question),
            "documents": [clean_for_tokenizer(document(hit)) for hit in hits],
            "top_n": len(hits),
        }
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._client().post(self.url, json=request, headers=tracing.headers())
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self._error(f"gave no answer within {self.timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._error(f"cannot be reached ({type(error).__name__}: {error})") from error
        if response.status_code != 200:
            raise self._error(f"answered {response.status_code}: {response.text[:200]!r}")
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise self._error(f"answered no JSON: {response.text[:200]!r}") from error

    def _client(self) -> "httpx.AsyncClient":
        """Return the running loop's client, because connections belong to the loop that opened them."""
        import httpx

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            self._clients[loop] = httpx.AsyncClient(
                headers=headers, timeout=self.timeout_s, mounts=direct_mounts(self.url)
            )
        return self._clients[loop]

    def _scores(self, answer: Any, count: int) -> dict[int, float]:
        """Return the relevance scores by the position of the hit."""
        results = answer.get("results") if isinstance(answer, Mapping) else None
        if not isinstance(results, list) or not results:
            raise self._error(f"answered without results: {str(answer)[:200]}")
        scores: dict[int, float] = {}
        for result in results:
            place, score = _place_and_score(result) or (-1, 0.0)
            if not 0 <= place < count or place in scores:
                raise self._error(
                    f"answered {counted(count, 'document')} with the result {str(result)[:200]}: an index from 0 to "
                    f"{count - 1}, each once, and a finite relevance_score are needed"
                )
            scores[place] = score
        return scores

    def _error(self, why: str) -> RerankFailed:
        where = urlsplit(self.url)
        text = f"the rerank endpoint {where.scheme}://{where.netloc.rpartition('@')[2]}{where.path} {why}"
        return RerankFailed(text.replace(self._key, "…") if self._key else text)


def endpoint_of(url: str) -> str:
    """Return the rerank endpoint of `url`: `url` itself, or the endpoint under a server's address or its `/v1`."""
    if not re.match(r"https?://[^/]", url):
        raise RerankFailed(f"the rerank endpoint {url!r} is not an address: write http://… or https://…")
    url = url.rstrip("/")
    if url.endswith("/rerank"):
        return url
    return f"{url}/rerank" if re.search(r"/v\d+$", url) else f"{url}/v1/rerank"


def _place_and_score(result: Any) -> tuple[int, float] | None:
    """Return a result's index and score; None unless the index is an integer and the score is finite."""
    if isinstance(result, Mapping):
        place, score = result.get("index"), result.get("relevance_score")
        if type(place) is int and isinstance(score, int | float) and type(score) is not bool and math.isfinite(score):
            return place, float(score)
    return None
