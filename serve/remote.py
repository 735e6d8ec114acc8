"""Steps that run in their own deployments, with the faces of those that run here.

A step that has just died is asked once more; what cannot be had in time is StepUnavailable, never a hang.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any

import numpy as np
from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle

from pipelines.answering.agents import Agent, Done, StepUnavailable
from pipelines.answering.reranking.base import Reranked
from pipelines.answering.retrieval.retriever import Retrieval, Search
from pipelines.answering.synthesis.base import Task
from pipelines.records import Hit, Index

log = logging.getLogger(__name__)

Handle = DeploymentHandle[Any]

# Said to an agent's caller as soon as a replica has its task: from then on Ray tells when that replica dies.
TAKEN = ""
REFUSED = (BackPressureError, DeploymentUnavailableError, TaskCancelledError)


class StepDied(StepUnavailable):
    """The replica that had the question is gone; another one can answer it."""


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """What Ray raises becomes what the step itself raised, StepDied or StepUnavailable; details go to the log."""
    try:
        yield
    except REFUSED as error:
        log.warning("%s was refused: %s", name, error)
        raise StepUnavailable(f"{name} can't answer now: {type(error).__name__}") from error
    except TimeoutError as error:
        raise StepUnavailable(f"{name} did not answer in time") from error
    except RayTaskError as error:
        raise error.cause from error
    except (RayError, ReplicaUnavailableError) as error:
        log.warning("a replica of %s died under a question: %s", name, error)
        raise StepDied(f"{name} died under this question") from error


async def asked(name: str, call: Callable[[], Any], timeout_s: float) -> Any:
    """`call()`'s result, from a second replica if the first died. Raises what the step raised, StepUnavailable."""

    async def once() -> Any:
        with translated(name):
            response = call()
            try:
                return await response
            except asyncio.CancelledError:
                response.cancel()
                raise

    with translated(name):
        async with asyncio.timeout(timeout_s):
            try:
                return await once()
            except StepDied:
                return await once()


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
        reranked: Reranked = await asked(
            "the reranker", lambda: self._handle.rerank.remote(question, tuple(hits)), self._timeout_s
        )
        return reranked


async def answered(agent: Agent, task: Task) -> AsyncGenerator[str | Done, None]:
    """What `agent` says, to a RemoteAgent: TAKEN first."""
    yield TAKEN
    async with contextlib.aclosing(agent.answer(task)) as parts:
        async for part in parts:
            yield part


class RemoteAgent:
    """An agent of another deployment (see `answered`), `like` the one that is made here.

    Closing its stream cancels the call there. A replica is waited for `timeout_s`; once one has the task, the time
    limits of the agent's own model hold.
    """

    def __init__(self, handle: Handle, like: Agent, timeout_s: float) -> None:
        self.name, self.secrets, self.check = like.name, like.secrets, like.check
        self._handle, self._timeout_s = handle.options(stream=True), timeout_s

    async def answer(self, task: Task) -> AsyncGenerator[str | Done, None]:
        """As any agent; one that dies before its first word is asked once more. Raises StepUnavailable."""
        for attempt in (1, 2):
            said = False
            try:
                async with contextlib.aclosing(self._parts(task)) as parts:
                    async for part in parts:
                        said = True
                        yield part
                return
            except StepDied:
                if said or attempt == 2:
                    raise

    async def _parts(self, task: Task) -> AsyncGenerator[str | Done, None]:
        """What one replica says."""
        parts: Any = self._handle.answer.remote(task)
        try:
            with translated(f"agent {self.name}"):
                part = await asyncio.wait_for(anext(parts, None), self._timeout_s)
                while part is not None:
                    if part != TAKEN:
                        yield part
                    part = await anext(parts, None)
        finally:
            with contextlib.suppress(Exception):  # a call that was refused says so again
                parts.cancel()
