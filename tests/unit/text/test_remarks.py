"""Every reply that the API can send has its remarks, in every language."""

from itertools import product
from typing import get_args

import pytest

from pipelines.records.answer import Confidence
from pipelines.text.languages import LANGUAGES
from pipelines.text.remarks import make_remarks

LOST = ("truncated", "llm:timeout", "bm25", "a part of tomorrow")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reply_has_its_remarks(language: str) -> None:
    choices = product(get_args(Confidence), ("extractive", "strong"), (None, "person"), (1, 2, 5), ((), LOST))
    for confidence, agent, author, total, lost in choices:
        reply = {"confidence": confidence, "agent": agent, "known": True, "form": "answer", "degraded": lost}
        reply |= {"claims": {"total": total, "supported": total}, "written_by": author}
        assert len(make_remarks(reply, language)) == 1 + len(lost)


def test_only_a_confidence_that_tells_something_is_shown() -> None:
    reply = {"agent": "strong", "known": True, "claims": {"total": 3, "supported": 2}}
    shown = {one: make_remarks(reply | {"confidence": one}, "en")[0] for one in get_args(Confidence)}
    assert shown["high"].startswith("High confidence · ") and shown["low"].startswith("Low confidence · ")
    assert shown["high"] == f"High confidence · {shown['some']}"
