"""Steps in other deployments, with the same interfaces as steps in this process.

A call to a replica that dies is repeated once. A step that does not answer in time raises StepUnavailable and never
hangs.
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

from pipelines import tracing
from pipelines.answering.retrieval.live import IndexLoading, ModelNotReady
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.synthesis.base import Task
from pipelines.answering.writing.agents import Agent, AgentPart, StepUnavailable
from pipelines.llm.session import Status
from pipelines.records import Hit, Index
from pipelines.store import Place

log = logging.getLogger(__name__)

Handle = DeploymentHandle[Any]
Headers = dict[str, str]  # continue the trace of the question in the step

# The first part that an agent's replica sends: it has the task, and from then on Ray reports if it dies.
ACCEPTED = ""
LOADING_CHECK_S = 0.2
REFUSALS = (BackPressureError, DeploymentUnavailableError, TaskCancelledError)


class StepDied(StepUnavailable):
    """The replica with the question died; another one can answer it."""


@contextlib.contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise the step's own error instead of Ray's, or StepDied or StepUnavailable; log the details."""
    try:
        yield
    except REFUSALS as error:
        log.warning("%s refused a question: %s", name, error)
        raise StepUnavailable(f"{name} can't answer now: {type(error).__name__}") from error
    except TimeoutError as error:
        raise StepUnavailable(f"{name} did not answer in time") from error
    except RayTaskError as error:
        raise error.cause from error
    except (RayError, ReplicaUnavailableError) as error:
        log.warning("a replica of %s died during a question: %s", name, error)
        raise StepDied(f"{name} died during this question, ask again") from error


async def call_step(name: str, call: Callable[[], Any], timeout_s: float) -> Any:
    """Return `call()`'s result, from a second replica if the first died. Raises the step's error, StepUnavailable."""

    async def once() -> Any:
        with translate_errors(name):
            response = call()
            try:
                return await response
            except asyncio.CancelledError:
                response.cancel()
                raise

    with translate_errors(name):
        async with asyncio.timeout(timeout_s):
            try:
                return await once()
            except StepDied:
                return await once()


class RemoteRetriever:
    """The retriever in another deployment."""

    def __init__(self, handle: Handle, timeout_s: float) -> None:
        self._handle, self._timeout_s = handle, timeout_s
        self._loaded: set[str | None] = set()

    def has_loaded(self, collection: str | None = None) -> bool:
        """Return whether the collection has been loaded at least once."""
        return collection in self._loaded

    async def aload(self, collection: str | None = None) -> None:
        """See `Retriever.aload`."""
        while True:
            try:
                await self.aready(collection)
            except IndexLoading:
                await asyncio.sleep(LOADING_CHECK_S)
                continue
            except ModelNotReady:
                log.info("the model of collection %s is not loaded", collection)
            self._loaded.add(collection)
            return

    async def aretrieve(self, search: Search) -> Retrieval:
        """See `Retriever.aretrieve`."""
        return await self._call(lambda: self._handle.aretrieve.remote(search, tracing.headers()))

    async def aplace(self, url: str, collection: str | None = None) -> Place | None:
        """See `Retriever.aplace`."""
        return await self._call(lambda: self._handle.aplace.remote(url, collection))

    async def aready(self, collection: str | None = None) -> Index:
        """See `Retriever.aready`."""
        return await self._call(lambda: self._handle.aready.remote(collection))

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        """See `Retriever.aembed`."""
        return await self._call(lambda: self._handle.aembed.remote(list(texts), collection))

    async def _call(self, call: Callable[[], Any]) -> Any:
        return await call_step("the retriever", call, self._timeout_s)


class RemoteReranker:
    """The reranker in another deployment."""

    def __init__(self, handle: Handle, name: str, timeout_s: float) -> None:
        self.name = name
        self._handle, self._timeout_s = handle, timeout_s

    async def rerank(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """See `Reranker.rerank`."""
        trace = tracing.headers()
        return await call_step(
            "the reranker", lambda: self._handle.rerank.remote(question, tuple(hits), trace), self._timeout_s
        )


async def stream_answer(agent: Agent, task: Task) -> AsyncGenerator[AgentPart, None]:
    """Yield ACCEPTED, then the parts of `agent`'s answer, for a RemoteAgent."""
    yield ACCEPTED
    async with contextlib.aclosing(agent.answer(task)) as parts:
        async for part in parts:
            yield part


class RemoteAgent:
    """An agent in another deployment (see `stream_answer`); `like` is the same agent in this process.

    Closing its stream cancels the call there. A replica must accept the task within `timeout_s`; after that, the time
    limits of the agent's model apply.
    """

    def __init__(self, handle: Handle, like: Agent, timeout_s: float) -> None:
        self.name, self.check, self.like = like.name, like.check, like
        self._handle, self._timeout_s = handle.options(stream=True), timeout_s

    async def answer(self, task: Task) -> AsyncGenerator[AgentPart, None]:
        """See `Agent.answer`; repeats the call once if a replica dies before its first delta.

        Raises StepUnavailable.
        """
        for attempt in (1, 2):
            started = False
            parts: Any = self._handle.answer.remote(task, tracing.headers())
            try:
                with translate_errors(f"agent {self.name}"):
                    part = await asyncio.wait_for(anext(parts, None), self._timeout_s)
                    while part is not None:
                        if part != ACCEPTED:
                            started = started or not isinstance(part, Status)
                            yield part
                        part = await anext(parts, None)
                return
            except StepDied:
                if started or attempt == 2:
                    raise
            finally:
                with contextlib.suppress(Exception):  # a refused call raises again
                    parts.cancel()
