"""Steps in other deployments: Ray's errors are translated, and a step's own errors arrive unchanged."""

import asyncio
import pickle
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import RayActorError, RayTaskError, TaskCancelledError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

from pipelines.answering.reranking.base import RerankFailed
from pipelines.answering.retrieval.live import CollectionNotNamed, IndexLoading, ModelNotReady
from pipelines.answering.synthesis.base import ModeNeedsModel, Task, UnknownMode
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.writing.agents import AgentResult, StepUnavailable
from pipelines.llm.errors import ContextTooLong, LLMEmpty, LLMFailed
from pipelines.llm.session import Status
from pipelines.records import Usage
from pipelines.store import NoLiveIndex, NoSuchIndex, StoreUnavailable
from serve.api.errors import failure_of
from serve.remote import RemoteAgent, RemoteRetriever, StepDied, call_step, stream_answer

ERRORS = [
    CollectionNotNamed(("docs", "guide")),
    CollectionNotNamed(()),
    NoLiveIndex("nothing is published in `docs`"),
    NoSuchIndex("index 7 was pruned"),
    ModelNotReady("all-MiniLM-L6-v2"),
    IndexLoading("docs"),
    StoreUnavailable("the database can't be reached: connection refused"),
    StepUnavailable("the retriever did not answer in time"),
    UnknownMode("poem", ("compact", "refine")),
    ModeNeedsModel("generation", ("compact",)),
    TemplateError("template `qa` does not use `tone`"),
    LLMFailed("the model gave no answer", Usage(1, 2, 3)),
    LLMEmpty("nothing", Usage(1, 2, 3)),
    ContextTooLong("9,000 tokens"),
    RerankFailed("rerank-endpoint: 500"),
]
TASK = Task("How?")


class Response:
    """The result of a handle's call: a value or an error, in time or never. Counts cancellations."""

    def __init__(self, *parts: Any, hang: bool = False) -> None:
        self.parts, self.hang, self.cancelled = list(parts), hang, 0

    def __await__(self) -> Any:
        return self.__anext__().__await__()

    async def __anext__(self) -> Any:
        if not self.parts:
            if self.hang:
                await asyncio.sleep(60)
            raise StopAsyncIteration
        part = self.parts.pop(0)
        if isinstance(part, Exception):
            raise part
        return part

    def cancel(self) -> None:
        self.cancelled += 1


def in_turn(*responses: Response) -> Callable[..., Response]:
    left = list(responses)
    return lambda *_: left.pop(0)


def died() -> RayActorError:
    return RayActorError(error_msg="The actor died: pid 7 on 10.1.2.3")


def from_step(error: Exception) -> Exception:
    """Return `error` as Ray raises it in the caller."""
    return RayTaskError("aretrieve", "Traceback …", error).as_instanceof_cause()


def ask(*responses: Response, timeout_s: float = 5.0) -> Any:
    return asyncio.run(call_step("the retriever", in_turn(*responses), timeout_s))


def answer_parts(*responses: Response, timeout_s: float = 5.0) -> list[str | AgentResult]:
    """Return the parts of a remote agent's answer whose calls return `responses`."""
    handle: Any = SimpleNamespace(answer=SimpleNamespace(remote=in_turn(*responses)))
    handle.options = lambda **_: handle
    like: Any = SimpleNamespace(name="strong", check=None)

    async def all_parts() -> list[str | AgentResult]:
        return [part async for part in RemoteAgent(handle, like, timeout_s).answer(TASK)]

    return asyncio.run(all_parts())


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_crosses_processes_completely(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        ask(Response(from_step(pickle.loads(pickle.dumps(error)))))
    assert type(raised.value) is type(error)
    assert str(raised.value) == str(error) and vars(raised.value).items() >= vars(error).items()
    if not isinstance(error, LLMFailed | RerankFailed | NoSuchIndex):  # these three degrade the answer inside
        assert failure_of(raised.value) == failure_of(error)


def test_remote_index_is_waited_for_while_it_loads() -> None:
    loading = [Response(IndexLoading("docs")), Response(from_step(IndexLoading("docs")))]
    handle: Any = SimpleNamespace(aready=SimpleNamespace(remote=in_turn(*loading, Response("index"))))
    retriever = RemoteRetriever(handle, 5.0)
    assert not retriever.has_loaded("docs")
    asyncio.run(retriever.aload("docs"))
    assert retriever.has_loaded("docs")


def test_remote_model_that_fails_to_load_is_not_waited_for() -> None:
    handle: Any = SimpleNamespace(aready=SimpleNamespace(remote=in_turn(Response(ModelNotReady("m", "docs")))))
    asyncio.run(RemoteRetriever(handle, 5.0).aload("docs"))


def test_another_replica_is_tried_once() -> None:
    assert ask(Response(died()), Response("found")) == "found"
    with pytest.raises(StepDied):
        ask(Response(died()), Response(died()), Response("found"))


def test_client_sees_no_process_ids_or_addresses() -> None:
    with pytest.raises(StepUnavailable) as raised:
        ask(Response(died()), Response(died()))
    failure = failure_of(raised.value)
    assert failure.status == 503 and failure.retry_after and "10.1.2.3" not in failure.error


@pytest.mark.parametrize(
    "error",
    [
        BackPressureError(num_queued_requests=9, max_queued_requests=9),
        DeploymentUnavailableError(SimpleNamespace(name="Retriever", app_name="raydex")),
        TaskCancelledError(),
        from_step(TimeoutError("a leg")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_refusing_replica_is_not_asked_again(error: Exception) -> None:
    with pytest.raises(StepUnavailable):
        ask(Response(error), Response("found"))


def test_silent_step_is_given_up_and_its_call_cancelled() -> None:
    silent = Response(hang=True)
    with pytest.raises(StepUnavailable, match="in time"):
        ask(silent, timeout_s=0.05)
    assert silent.cancelled == 1


def test_agent_that_dies_before_its_first_word_is_retried_once() -> None:
    assert answer_parts(Response(died()), Response("", "Call it.", AgentResult())) == ["Call it.", AgentResult()]
    reads = Status("reading", "strong")
    assert answer_parts(Response("", reads, died()), Response("", reads, "Call it.")) == [reads, reads, "Call it."]
    assert answer_parts(Response("", died()), Response("", "Call it.", AgentResult())) == ["Call it.", AgentResult()]


def test_agent_that_dies_midway_is_not_silently_restarted() -> None:
    with pytest.raises(StepDied):
        answer_parts(Response("", "Call ", died()), Response("", "Call it.", AgentResult()))


def test_agent_without_a_replica_in_time_is_unavailable() -> None:
    absent = Response(hang=True)
    with pytest.raises(StepUnavailable, match="in time"):
        answer_parts(absent, timeout_s=0.05)
    assert absent.cancelled == 1


def test_running_agent_can_think_longer_than_the_wait_for_a_replica() -> None:
    class Thinking(Response):
        async def __anext__(self) -> Any:
            if self.parts[:1] == ["Call it."]:
                await asyncio.sleep(0.3)
            return await super().__anext__()

    assert answer_parts(Thinking("", "Call it.", AgentResult()), timeout_s=0.1) == ["Call it.", AgentResult()]


async def test_agent_first_confirms_that_it_has_the_task() -> None:
    class Speaks:
        async def answer(self, task: Task) -> AsyncGenerator[str | AgentResult, None]:
            yield task.question
            yield AgentResult()

    found = [part async for part in stream_answer(Speaks(), TASK)]  # type: ignore[arg-type]
    assert found == ["", "How?", AgentResult()]
