"""Settings have one name, `group.name`; variables may have one underscore or two."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipelines.answering.settings import AnswerSettings, change, flatten
from pipelines.answering.settings.names import groups_of
from serve.settings import Settings


@pytest.mark.parametrize(("variables", "path", "value"), [
    ({"RAYDEX_RETRIEVAL__LEG_DEPTH": "7"}, "retrieval.leg_depth", 7),
    ({"RAYDEX_RETRIEVAL_LEG_DEPTH": "7"}, "retrieval.leg_depth", 7),
    ({"RAYDEX_RETRIEVAL": '{"leg_depth": 7}'}, "retrieval.leg_depth", 7),
    ({"RAYDEX_FUSION_KIND": "relative_score"}, "fusion.kind", "relative_score"),
    ({"RAYDEX_PROMPTS": '{"variables": {"tone": "dry"}}'}, "prompts.variables", {"tone": "dry"}),
    ({"RAYDEX_LIMITS_ADDRESS_RATE": "3"}, "limits.address_rate", 3),
    ({"RAYDEX_VERIFIED_ENABLED": "false"}, "verified.enabled", False),
    ({"RAYDEX_RECORDING__RETENTION_DAYS": "7"}, "recording.retention_days", 7),
    ({"RAYDEX_RETRIEVAL_K": "4", "RAYDEX_K": "7", "RAYDEX_CANDIDATES": "9"}, "retrieval.k", 4),
    ({"OPENAI_BASE_URL": "http://a/v1"}, "embedding.url", "http://a/v1"),
    ({"OPENAI_BASE_URL": "http://a/v1", "RAYDEX_EMBEDDING_URL": "http://b/v1"}, "embedding.url", "http://b/v1"),
])  # fmt: skip
def test_variable_can_have_any_of_its_names(variables, path, value, monkeypatch):
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    group, _, field = path.partition(".")
    assert getattr(getattr(Settings(), group), field) == value


def test_given_values_override_the_environment_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDEX_RETRIEVAL__LEG_DEPTH", "7")
    monkeypatch.setenv("RAYDEX_RETRIEVAL__RRF_K", "8")
    for given in ({"retrieval_leg_depth": 9}, {"retrieval": {"leg_depth": 9}}, {"retrieval.leg_depth": 9}):
        retrieval = Settings(**given).retrieval  # type: ignore[arg-type]
        assert (retrieval.leg_depth, retrieval.rrf_k) == (9, 8)


@pytest.mark.parametrize("values", [{"retrieval": {"leg_dept": 1}}, {"retrieval.leg_depth": 0}, {"candidates": 1}])
def test_impossible_name_or_value_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**values)


def test_settings_are_changed_and_flattened_by_their_full_names(tmp_path: Path) -> None:
    changed = change(AnswerSettings(home=tmp_path), {"retrieval.k": 3, "retrieval.rrf_k": 4, "collection": "docs"})
    flat = flatten(changed.model_dump(), AnswerSettings)
    assert (flat["retrieval.k"], flat["retrieval.rrf_k"], flat["collection"]) == (3, 4, "docs")
    assert AnswerSettings.model_validate(flat) == changed and AnswerSettings().retrieval.k != 3
    assert not groups_of(AnswerSettings).keys() & flat.keys()
