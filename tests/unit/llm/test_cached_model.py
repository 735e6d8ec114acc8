"""A model's reply is never paid for twice, whenever and however the process ended."""

import asyncio
import json

import pytest
from kit.queued_model import QueuedModel

from pipelines.llm.cached import CachedModel
from pipelines.llm.errors import LLMBusy
from pipelines.records import Message, Usage


def say(kept: CachedModel, *texts: str, **more):
    return [asyncio.run(kept.complete([Message("user", text)], **more)) for text in texts]


def test_another_process_pays_only_for_new_prompts(tmp_path):
    path = tmp_path / "replies"
    assert [done.text for done in say(CachedModel(QueuedModel("one", "two"), path), "a", "b")] == ["one", "two"]
    model = QueuedModel("three")
    kept = CachedModel(model, path)
    done = say(kept, "a", "b", "c", "c")
    assert [d.text for d in done] == ["one", "two", "three", "three"]
    assert [d.usage.calls for d in done] == [0, 0, 1, 0] and done[0].usage == Usage()
    assert len(model.asked) == 1 and kept.reused == 3


def test_other_model_format_or_length_is_another_question(tmp_path):
    path = tmp_path / "replies"
    say(CachedModel(QueuedModel("x"), path), "a")
    other = QueuedModel("y", model="other")
    assert say(CachedModel(other, path), "a")[0].text == "y"
    same = QueuedModel("z")
    kept = CachedModel(same, path)
    assert say(kept, "a")[0].text == "x"
    assert say(kept, "a", schema={"type": "object"})[0].text == say(kept, "a", max_tokens=7)[0].text == "z"


@pytest.mark.parametrize(
    "torn", [b'{"asked": "0", "sai', b"\xff\xfe", b"[1]\n", b'{"asked": 1, "said": null}\n', b"\n"]
)
def test_torn_line_of_a_killed_process_costs_only_itself(tmp_path, torn):
    path = tmp_path / "replies"
    say(CachedModel(QueuedModel("one"), path), "a")
    path.write_bytes(path.read_bytes() + torn)
    model = QueuedModel("two")
    assert [d.text for d in say(CachedModel(model, path), "a", "b")] == ["one", "two"]
    never = QueuedModel(AssertionError("asked again"))
    assert [d.text for d in say(CachedModel(never, path), "a", "b")] == ["one", "two"]


def test_failed_call_is_not_cached(tmp_path):
    model = QueuedModel(LLMBusy("busy"), "now")
    kept = CachedModel(model, tmp_path / "replies")
    with pytest.raises(LLMBusy):
        say(kept, "a")
    assert not (tmp_path / "replies").exists()
    assert say(kept, "a")[0].text == "now"


def test_texts_in_any_script_survive(tmp_path):
    said = "zwei\nZeilen „ü“ \u2028 \ud83d"
    say(CachedModel(QueuedModel(said), tmp_path / "replies"), "a")
    assert say(CachedModel(QueuedModel("no"), tmp_path / "replies"), "a")[0].text == said
    assert all(json.loads(line) for line in (tmp_path / "replies").read_text().splitlines())
