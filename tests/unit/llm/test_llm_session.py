"""The model calls of one question: messages, counts, and records of interrupted calls."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kit.queued_model import QueuedModel, Says

from pipelines.llm.client import FRAMING
from pipelines.llm.errors import LLMBusy
from pipelines.llm.session import LLMSession
from pipelines.llm.tokens import TokenizerNotFound, estimate, make_counter
from pipelines.records import Exchange, Message, Usage


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(work())  # type: ignore[arg-type]


HISTORY = (Message("user", "before"), Message("assistant", "said before"))


def test_prompt_is_sent_between_history_and_answer_prefix_or_by_itself() -> None:
    model = QueuedModel("yes")
    calls = LLMSession(model, system="be brief", assistant="Well,", history=HISTORY)
    assert run(lambda: calls.complete("and now?")) == "yes"
    expected = (Message("system", "be brief"), *HISTORY, Message("user", "and now?"), Message("assistant", "Well,"))
    assert model.asked == [[*expected]]
    assert calls.exchanges == [Exchange("judge", expected, "yes")]
    assert calls.overhead() == 2 + 1 + 2 + 1 + 5 * FRAMING
    calls = LLMSession(model)
    run(lambda: calls.complete("now?"))
    assert model.asked[1:] == [[Message("user", "now?")]]
    assert calls.overhead() == FRAMING


def test_usage_is_the_sum_over_completions_and_streams() -> None:
    calls = LLMSession(Says("one", "two"))

    async def work() -> list[str]:
        await calls.complete("a")
        return [delta async for delta in calls.stream("b")]

    assert run(work) == ["one", "two"]
    assert calls.usage == Usage(20, 10, 2, 1.0)
    assert [exchange.completion for exchange in calls.exchanges] == ["onetwo", "onetwo"]


def test_concurrent_calls_stay_within_the_limit() -> None:
    model = QueuedModel("yes", pause=0.005)
    calls = LLMSession(model, at_once=3)

    async def work() -> None:
        await asyncio.gather(*(calls.complete(str(n)) for n in range(9)))

    run(work)
    assert model.most == 3
    assert calls.usage.calls == len(calls.exchanges) == 9


def test_failed_call_is_recorded_and_raises() -> None:
    calls = LLMSession(QueuedModel(LLMBusy("no", Usage(7, 0, 1, 0.1)), ValueError("a fake's own"), "after"))

    async def work() -> str:
        with pytest.raises(LLMBusy):
            await calls.complete("a")
        with pytest.raises(ValueError, match="own"):
            await calls.complete("b")
        return await calls.complete("c")

    assert run(work) == "after"
    assert [exchange.completion for exchange in calls.exchanges] == ["", "", "after"]
    assert calls.usage == Usage(7 + 0 + 100, 0 + 0 + 10, 3, 0.1 + 0 + 0.25)


def test_cancelled_completion_is_recorded_with_its_prompt() -> None:
    calls = LLMSession(Says(hangs=True), at_once=1)

    async def work() -> None:
        task = asyncio.create_task(calls.complete("three words here"))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work)
    assert calls.usage == Usage(3 + FRAMING, 0, 1)
    assert calls.exchanges[0].messages == (Message("user", "three words here"),)


def test_call_that_never_started_is_not_recorded() -> None:
    calls = LLMSession(Says(hangs=True), at_once=1)

    async def work() -> None:
        tasks = [asyncio.create_task(calls.complete(name)) for name in "ab"]
        await asyncio.sleep(0.02)
        tasks[1].cancel()
        await asyncio.sleep(0)
        assert calls.exchanges == []
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(work)
    assert [exchange.messages[0].content for exchange in calls.exchanges] == ["a"]


def test_stream_closed_midway_is_recorded_with_its_partial_text() -> None:
    calls = LLMSession(Says("one", "two", "three"), at_once=1)

    async def work() -> None:
        stream = calls.stream("go on")
        assert [await anext(stream), await anext(stream)] == ["one", "two"]
        await stream.aclose()

    run(work)
    assert calls.exchanges[0].completion == "onetwo"
    assert calls.usage == Usage(2 + FRAMING, 1, 1)


def test_broken_stream_is_recorded_and_frees_its_slot() -> None:
    model = Says("one", error=LLMBusy("broken", Usage(5, 1, 1, 0.25)))
    calls = LLMSession(model, at_once=1)

    async def work() -> str:
        with pytest.raises(LLMBusy):
            [delta async for delta in calls.stream("go on")]
        assert (calls.exchanges[0].completion, calls.usage) == ("one", Usage(5, 1, 1, 0.25))
        model.error = None
        async with asyncio.timeout(2):
            return await calls.complete("b")

    assert run(work) == "one"


# ---------------------------------------------------------------------------------------------- tokens


@pytest.fixture(scope="module")
def tokenizer() -> str:
    from pipelines.embedding.tokens import model_folder

    return str(model_folder("all-MiniLM-L6-v2"))


def test_local_tokenizer_counts_exactly_without_a_limit(tokenizer: str) -> None:
    count = make_counter(tokenizer)
    assert count("hello world") == 2
    assert count("word " * 2000) == 2000
    assert count("") == 0
    assert make_counter(tokenizer + "/tokenizer.json")("hello world") == 2


def test_no_text_breaks_a_counter(tokenizer: str) -> None:
    for text in ("\ud800 lone", "\x00", "🦄" * 50, "日本語のテキスト", "\n\n\t"):
        assert make_counter(tokenizer)(text) >= 0
        assert estimate(text) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Ray Data scales preprocessing and batch inference to a cluster of machines.",
        "def train_func(config: dict) -> None:\n    for batch in ds.iter_batches(batch_size=32):\n        step()\n",
        "| num_cpus | 0.25 | 1,000,000 |\n" * 5,
        "https://docs.ray.io/en/master/serve/configure-serve-deployment.html#autoscaling_config",
        "分散コンピューティングのためのフレームワーク",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90",
    ],
)
def test_estimate_is_never_below_the_tokenizer_count(tokenizer: str, text: str) -> None:
    assert make_counter(tokenizer)(text) <= estimate(text) <= 4 * make_counter(tokenizer)(text)


@pytest.mark.parametrize("name", ["absent.json", "readme.txt"])
def test_file_that_is_no_tokenizer_is_named(tmp_path: Any, name: str) -> None:
    (tmp_path / "readme.txt").write_text("{}")
    with pytest.raises(TokenizerNotFound, match=name):
        make_counter(str(tmp_path / name))
