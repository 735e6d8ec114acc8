"""Only calls that show a model's speed are used to measure it."""

import asyncio
from typing import Any

import pytest
from kit.scripted_llm import Reply, ScriptedLLM, in_turn

from pipelines.llm.client import LLM
from pipelines.llm.pace import WAY_S, Pace, pace_of
from pipelines.records import Message

TOKENS = 600


def read(pace: Pace, prompt: str, tokens_a_second: float, known: float | None = 0.0) -> None:
    new = TOKENS * (1 - (known or 0.0))
    pace.read(prompt, TOKENS, new / tokens_a_second, known)


def test_nothing_is_known_before_the_first_call() -> None:
    assert Pace().reading.per_second is None and Pace().seconds_to_read("b", 100) is None


def test_call_predicts_the_duration_of_the_next_one() -> None:
    pace = Pace()
    read(pace, "a", 60)
    assert pace.seconds_to_read("b", 300) == pytest.approx(5)
    assert pace.seconds_to_read("a", 300) == 0  # the server has it cached


def test_single_call_delayed_by_the_model_does_not_count() -> None:
    pace = Pace()
    for speed in (10, 60, 61, 62, 5):
        read(pace, str(speed), speed)
    assert pace.reading.per_second == pytest.approx(60)


def test_change_of_speed_is_noticed_within_a_few_calls() -> None:
    pace = Pace()
    for n in range(8):
        read(pace, str(n), 500 if n < 5 else 50)
    assert pace.reading.per_second == pytest.approx(50)


def test_tokens_cached_by_the_server_are_excluded() -> None:
    pace = Pace()
    read(pace, "a", 60, known=0.5)
    assert pace.reading.per_second == pytest.approx(60)


def test_unspecified_caching_is_assumed_for_the_start_of_a_recent_prompt() -> None:
    pace = Pace()
    pace.read("rules" + "a" * 5, TOKENS, 10, None)
    pace.read("rules" + "b" * 5, TOKENS, 5, None)  # half of it was cached
    assert pace.reading.per_second == pytest.approx(60)
    pace.read("rules" + "b" * 5, TOKENS, 0, None)  # all of it was cached, so this call shows no speed
    assert pace.reading.per_second == pytest.approx(60)


def test_server_without_a_cache_reads_everything_again() -> None:
    pace = Pace()
    for prompt in ("rules" + "a" * 5, "rules" + "b" * 5):
        pace.read(prompt, TOKENS, 10, 0.0)
    assert pace.unread("rules" + "c" * 5, 100) == 100
    pace.read("rules" + "d" * 5, TOKENS, 10, 0.5)
    assert pace.unread("rules" + "c" * 5, 100) == 50


@pytest.mark.parametrize("test", [1, 2])
def test_speed_of_another_tests_server_is_forgotten(test: int) -> None:
    pace = pace_of("http://127.0.0.1:9/v1", "scripted")  # the system may give two tests the same port
    assert pace.reading.per_second is None
    read(pace, "a", 60)


def test_call_can_end_in_another_thread_while_a_prompt_is_compared() -> None:
    class Prompt(str):
        def __getitem__(self, part: Any) -> str:
            read(pace, "b", 60)
            return super().__getitem__(part)

    pace = Pace()
    for prompt in "ab":
        read(pace, prompt, 60)
    assert pace.unread(Prompt("c"), 100) == 100


# ---------------------------------------------------------------------------------------------- streams

LONG = (Message("user", "word " * 400),)


def measure(*replies: Reply, message: tuple[Message, ...] = LONG) -> Pace:
    async def ask(llm: LLM) -> Pace:
        for _ in replies:
            await llm.complete(message)
        await llm.close()
        return llm.pace

    with ScriptedLLM(default=in_turn(*replies)) as server:
        return asyncio.run(ask(LLM("scripted", base_url=server.url)))


def reported(**fields: Any) -> Reply:
    return Reply("one two three four five six", reading_s=WAY_S + 0.5, delay_s=0.01, reported=fields)


@pytest.fixture(scope="module")
def all_read() -> Pace:
    return measure(reported())


def test_stream_shows_both_speeds(all_read: Pace) -> None:
    tokens = LLM("m", base_url="").count(LONG[0].content)
    assert tokens / 20 < (all_read.reading.per_second or 0) <= 2.1 * tokens  # in half a second, or more under load
    assert 0 < (all_read.writing.per_second or 0) <= 600


@pytest.mark.parametrize(
    "reports",
    [
        {"timings": {"cache_n": 300, "prompt_n": 100}},
        {"usage": {"prompt_tokens": 400, "prompt_tokens_details": {"cached_tokens": 300}}},
    ],
)
def test_cached_prompts_show_no_speed(all_read: Pace, reports: dict[str, Any]) -> None:
    cached = measure(reported(**reports))
    assert (cached.reading.per_second or 0) < 0.6 * (all_read.reading.per_second or 0)


def test_seconds_reported_by_llama_cpp_are_used() -> None:
    pace = measure(reported(timings={"cache_n": 0, "prompt_n": 400, "prompt_ms": 10_000}))
    counted = LLM("m", base_url="").estimate(LONG, "").prompt_tokens
    assert pace.reading.per_second == pytest.approx(counted / 10)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply("Whole."), LONG),  # one delta: the writing time is part of the wait
        (reported(usage={"completion_tokens_details": {"reasoning_tokens": 50}}), LONG),  # it thought before
        (reported(), (Message("user", "Hello."),)),
    ],
)
def test_replies_that_do_not_show_the_reading_time_are_excluded(reply: Reply, message: tuple[Message, ...]) -> None:
    assert measure(reply, message=message).reading.per_second is None
