"""Confidence: how far a reader can rely on an answer, from known values without another call."""

import pytest

from pipelines.answering.grounding.confidence import rate_confidence
from pipelines.records import Claims

ALL, HALF, NONE = Claims(4, 4, 4), Claims(4, 2, 2), Claims(4, 0, 0)


@pytest.mark.parametrize(("claims", "first", "likelihood", "more", "expected"), [
    (ALL, 0.8, 0.9, {}, "high"),
    (ALL, 0.8, 0.9, {"whole": False}, "some"),
    (ALL, 0.6, 0.9, {}, "some"),
    (ALL, 0.8, 0.3, {}, "some"),
    (ALL, 0.8, None, {}, "some"),
    (ALL, 0.8, 0.05, {}, "low"),
    (ALL, 0.8, 0.9, {"known": False}, "low"),
    (HALF, 0.8, 0.9, {}, "some"),
    (Claims(4, 4, 1), 0.8, 0.9, {}, "low"),
    (NONE, 0.0, 0.9, {}, "low"),
    (Claims(), 0.0, 0.9, {}, "some"),
    (Claims(), 0.0, 0.9, {"known": False}, "low"),
    (ALL, 0.84, 0.9, {"quoted": True}, "high"),
    (ALL, 0.83, 0.9, {"quoted": True}, "some"),
    (ALL, 0.84, 0.5, {"quoted": True}, "high"),
    (ALL, 0.46, 0.9, {"quoted": True}, "some"),
    (ALL, 0.46, 0.29, {"quoted": True}, "low"),
    (ALL, 0.44, 0.9, {"quoted": True}, "low"),
])  # fmt: skip
def test_confidence_follows_its_definition(claims, first, likelihood, more, expected):
    assert rate_confidence(claims, first, likelihood, **more) == expected
