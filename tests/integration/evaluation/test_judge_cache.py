"""Judgements survive their run: a second one reads them from the database, and failures are judged anew."""

import asyncio
from typing import Any

from kit.scripted_llm import ScriptedLLM, in_turn

from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.judge import Judge
from pipelines.llm.client import LLM
from pipelines.records import Answer
from pipelines.store import Judgement, Store

EXAMPLE = Example("How many?", ("https://docs.test/a#x",), "Four.")
ANSWER = Answer("How many?", "Four, or so.", "llm", (), (), (), {}, 1, 1)


def judged(store: Store, url: str) -> Judgement:
    judge: Any = Judge(LLM("scripted", base_url=url), cache=store, tries=1)
    return dict(asyncio.run(judge.judge(EXAMPLE, ANSWER)))["quality"]


def test_a_judgement_is_paid_for_once_and_a_failure_never_kept(store: Store) -> None:
    with ScriptedLLM(default=in_turn("No idea.", "Score: 4.5\nNearly.")) as server:
        failed, first, second = (judged(store, server.url) for _ in range(3))
        assert len(server.requests) == 2
    assert failed.score is None and failed.error
    assert (first.score, first.cached, second.score, second.cached) == (4.5, False, 4.5, True)
    assert second.reasoning == first.reasoning == "Nearly." and second.usage.calls == 0
