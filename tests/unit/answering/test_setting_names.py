"""Settings have one name, `group.name`. Old names still work, and one warning lists the new names."""

import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipelines.answering.settings import AnswerSettings, change, flatten, full_name
from pipelines.answering.settings.names import FORMER_VALUES, GONE, OLD_NAMES, groups_of
from serve.settings import Settings


def test_each_old_name_maps_to_a_current_setting() -> None:
    now = flatten(Settings().model_dump(), Settings) | GONE
    assert {*OLD_NAMES.values(), *FORMER_VALUES.values()} <= now.keys()
    assert {full_name(name, Settings) for name in (*OLD_NAMES, *FORMER_VALUES)} <= now.keys()


@pytest.mark.parametrize(("variables", "path", "value"), [
    ({"RAYDEX_RETRIEVAL__LEG_DEPTH": "7"}, "retrieval.leg_depth", 7),
    ({"RAYDEX_RETRIEVAL_LEG_DEPTH": "7"}, "retrieval.leg_depth", 7),
    ({"RAYDEX_RETRIEVAL": '{"leg_depth": 7}'}, "retrieval.leg_depth", 7),
    ({"RAYDEX_CANDIDATES": "7"}, "retrieval.leg_depth", 7),
    ({"RAYDEX_CANDIDATES": "6", "RAYDEX_K": "2"}, "retrieval.leg_depth", 6),
    ({"RAYDEX_FUSION": "insert", "RAYDEX_LEXICAL_K": "3"}, "fusion.lexical_k", 3),
    ({"RAYDEX_FUSION_KIND": "relative_score"}, "fusion.kind", "relative_score"),
    ({"RAYDEX_VERIFIED": "false"}, "verified.enabled", False),
    ({"RAYDEX_RERANKER": "cross-encoder", "RAYDEX_RERANKER_MODEL": "m"}, "reranker.kind", "cross-encoder"),
    ({"RAYDEX_PROMPTS": '{"qa": "{context} {question}"}'}, "prompts.templates", {"qa": "{context} {question}"}),
    ({"RAYDEX_PROMPTS": '{"variables": {"tone": "dry"}}'}, "prompts.variables", {"tone": "dry"}),
    ({"RAYDEX_NO_LLM": "true"}, "llm.off", True),
    ({"RAYDEX_RETRIEVER_PLACEMENT": "deployment"}, "placement.retriever", "deployment"),
    ({"RAYDEX_ADDRESS_RATE": "3"}, "limits.address_rate", 3),
    ({"RAYDEX_LIMITS_ADDRESS_RATE": "3"}, "limits.address_rate", 3),
    ({"RAYDEX_RATE": "4", "RAYDEX_ANONYMOUS_RATE": "9"}, "limits.rate", 4),
    ({"RAYDEX_RECORD_QUESTIONS": "false"}, "recording.enabled", False),
    ({"RAYDEX_RETENTION_DAYS": "7"}, "recording.retention_days", 7),
    ({"RAYDEX_VERIFIED_LIKENESS": "0.8"}, "verified.similarity", 0.8),
    ({"OPENAI_BASE_URL": "http://a/v1"}, "embedding.url", "http://a/v1"),
    ({"OPENAI_BASE_URL": "http://a/v1", "RAYDEX_EMBEDDING_URL": "http://b/v1"}, "embedding.url", "http://b/v1"),
])  # fmt: skip
def test_variable_can_have_any_of_its_names(variables, path, value, monkeypatch):
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    group, _, field = path.partition(".")
    assert getattr(getattr(Settings(), group), field) == value


@pytest.mark.parametrize(("variable", "value"), [
    ("RAYDEX_PROMPTS", '{"rules": "long"}'),
    ("RAYDEX_PROMPT_MARKS", "tags"),
    ("RAYDEX_PROMPTS_PASSAGE_WORDS", "80"),
])  # fmt: skip
def test_removed_setting_is_reported_under_any_of_its_names(variable, value, monkeypatch, caplog):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValidationError, match=r"(prompts)\.\w+ is gone, as .*\. Unset it"):
        Settings()
    assert not caplog.messages  # no warning about a name that is refused too


def test_given_values_override_the_environment_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDEX_RETRIEVAL__LEG_DEPTH", "7")
    monkeypatch.setenv("RAYDEX_RETRIEVAL__RRF_K", "8")
    for given in ({"candidates": 9}, {"retrieval": {"leg_depth": 9}}, {"retrieval.leg_depth": 9}):
        retrieval = Settings(**given).retrieval  # type: ignore[arg-type]
        assert (retrieval.leg_depth, retrieval.rrf_k) == (9, 8)


def test_old_names_get_a_one_line_hint_and_new_ones_none(caplog, monkeypatch):
    monkeypatch.setenv("RAYDEX_CANDIDATES", "7")
    monkeypatch.setenv("RAYDEX_RERANKER", "none")
    with caplog.at_level(logging.WARNING):
        Settings()
    (line,) = caplog.messages
    assert "candidates is retrieval.leg_depth (RAYDEX_RETRIEVAL__LEG_DEPTH)" in line and "reranker.kind" in line
    caplog.clear()
    monkeypatch.delenv("RAYDEX_CANDIDATES")
    monkeypatch.delenv("RAYDEX_RERANKER")
    monkeypatch.setenv("RAYDEX_LLM_MODEL", "m")
    Settings(retrieval={"k": 3}, router={"kind": "fixed"})  # type: ignore[arg-type]
    assert caplog.messages == []


@pytest.mark.parametrize("values", [{"retrieval": {"leg_dept": 1}}, {"retrieval.leg_depth": 0}, {"candidats": 1}])
def test_impossible_name_or_value_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**values)


def test_settings_are_changed_and_flattened_by_their_full_names(tmp_path: Path) -> None:
    changed = change(AnswerSettings(home=tmp_path), {"retrieval.k": 3, "retrieval.rrf_k": 4, "collection": "docs"})
    flat = flatten(changed.model_dump(), AnswerSettings)
    assert (flat["retrieval.k"], flat["retrieval.rrf_k"], flat["collection"]) == (3, 4, "docs")
    assert AnswerSettings.model_validate(flat) == changed and AnswerSettings().retrieval.k != 3
    assert not groups_of(AnswerSettings).keys() & flat.keys()
