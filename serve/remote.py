"""Steps that run in their own deployments, with the faces of those that run here.

A step that has just died is asked once more; what cannot be had in time is StepUnavailable, never a hang.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle

from pipelines.answering.reranked import Reranked
from pipelines.answering.retriever import Retrieval, Search
from pipelines.answering.task import Agent, Done, StepUnavailable, Task
from pipelines.records import Hit, Index

log = logging.getLogger(__name__)

T = TypeVar("T")
Handle = DeploymentHandle[Any]

# The replica that had the question is gone; another one can answer it.
GONE = (RayActorError, ReplicaUnavailableError)
REFUSED = (BackPressureError, DeploymentUnavailableError)


async def asked(name: str, call: Callable[[], Awaitable[T]], timeout_s: float) -> T:
    """`call()`'s result, from a second replica if the first died. Raises what the step raised, StepUnavailable."""
    try:
        async with asyncio.timeout(timeout_s):
            try:
                return await call()
            except GONE:
                log.warning("a replica of %s died under a question; asking another", name)
                return await call()
    except (*GONE, *REFUSED) as error:
        raise StepUnavailable(f"{name} can't answer now: {error}") from error
    except TimeoutError as error:
        raise StepUnavailable(f"{name} did not answer within {timeout_s:g} s") from error
    except RayTaskError as error:
        raise error.cause from error


class RemoteRetriever:
    """The retriever of another deployment."""

    def __init__(self, handle: Handle, timeout_s: float) -> None:
        self._handle, self._timeout_s = handle, timeout_s

    async def aretrieve(self, search: Search) -> Retrieval:
        """As `Retriever.aretrieve`."""
        found: Retrieval = await self._asked(lambda: self._handle.aretrieve.remote(search))
        return found

    async def aready(self, collection: str | None = None) -> Index:
        """As `Retriever.aready`."""
        index: Index = await self._asked(lambda: self._handle.aready.remote(collection))
        return index

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        """As `Retriever.aembed`."""
        vectors: np.ndarray = await self._asked(lambda: self._handle.aembed.remote(list(texts), collection))
        return vectors

    async def _asked(self, call: Callable[[], Any]) -> Any:
        return await asked("the retriever", call, self._timeout_s)


class RemoteReranker:
    """The reranker of another deployment."""

    def __init__(self, handle: Handle, name: str, timeout_s: float) -> None:
        self.name = name
        self._handle, self._timeout_s = handle, timeout_s

    async def rerank(self, question: str, hits: Sequence[Hit]) -> Reranked:
        """As any reranker."""
        return await asked("the reranker", lambda: self._handle.rerank.remote(question, tuple(hits)), self._timeout_s)


class RemoteAgent:
    """An agent of another deployment, `like` the one that is made here. Closing its stream cancels the call there."""

    def __init__(self, handle: Handle, like: Agent) -> None:
        self.name, self.secrets, self.check = like.name, like.secrets, like.check
        self._handle = handle.options(stream=True)

    async def answer(self, task: Task) -> AsyncGenerator[str | Done, None]:
        """As any agent; one that dies before its first word is asked once more."""
        parts = self._handle.answer.remote(task)
        try:
            try:
                first = await self._next(parts)
            except GONE:
                parts = self._handle.answer.remote(task)
                first = await self._next(parts)
            while first is not None:
                yield first
                first = await self._next(parts)
        except RayTaskError as error:
            raise error.cause from error
        finally:
            parts.cancel()  # type: ignore[no-untyped-call]

    async def _next(self, parts: Any) -> str | Done | None:
        """The next part, None at the end. The model's own time-out lies within the agent."""
        return await anext(parts, None)
