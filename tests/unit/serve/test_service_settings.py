"""Each default and limit of the service is declared once; its docs, requests and config file agree."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from pipelines.answering.settings import flatten
from pipelines.answering.settings.names import SettingsGroup
from pipelines.store import Store
from serve.api.inquiry import TURNS
from serve.api.openai.schemas import RaydexOptions
from serve.api.requests import MOST_MESSAGES, QueryIn, SearchIn
from serve.recorder import Recorder
from serve.settings import Settings


def as_data(value: Any) -> Any:
    return dict(value) if isinstance(value, SettingsGroup) else value


ROOT = Path(__file__).parents[3]
DEFAULTS = flatten(
    {name: as_data(field.get_default(call_default_factory=True)) for name, field in Settings.model_fields.items()},
    Settings,
)


def parameter(function: Any, name: str) -> Any:
    return inspect.signature(function).parameters[name].default


def test_settings_share_defaults_with_the_objects_they_configure() -> None:
    assert DEFAULTS["recording.retention_days"] == parameter(Recorder, "retention_days")
    assert DEFAULTS["recording.enabled"] == parameter(Recorder, "enabled")
    assert DEFAULTS["database_connections"] == parameter(Store, "pool_size")


def test_question_without_options_uses_all_settings() -> None:
    ask = QueryIn(question="How?").to_question()
    assert (ask.k, ask.mode, ask.collection, ask.variables) == (None, None, None, {})


@pytest.mark.parametrize("k", [0, 1, 100, 101])
def test_question_has_the_same_limits_for_k_as_the_service(k: int) -> None:
    def takes(make: Any) -> bool:
        try:
            make()
        except ValidationError:
            return False
        return True

    of_service = takes(lambda: Settings(retrieval={"k": k}))
    assert takes(lambda: SearchIn(question="How?", k=k)) == takes(lambda: RaydexOptions(k=k)) == of_service


def test_config_file_listens_at_the_address_in_the_settings() -> None:
    http = yaml.safe_load((ROOT / "serve" / "config.yaml").read_text())["http_options"]
    assert (http["host"], http["port"]) == (DEFAULTS["host"], DEFAULTS["port"])


def test_docs_state_the_request_limits() -> None:
    api = (ROOT / "docs" / "api.md").read_text()
    assert "up to 8,000 characters" in api and f"at most {MOST_MESSAGES}" in api
    assert f"its last {TURNS} turns" in api and f"`{DEFAULTS['synthesis.mode']}` (default)" in api


def test_each_node_has_its_own_home_unless_the_settings_name_one(monkeypatch: Any) -> None:
    here, there = {"RAYDEX_HOME": "/srv/here"}, {"RAYDEX_HOME": "/srv/there"}
    monkeypatch.setenv("RAYDEX_HOME", "/srv/here")
    assert Settings().for_any_node(here).on_node(there).home == Path("/srv/there")
    assert Settings(home=Path("/srv/named")).for_any_node(here).on_node(there).home == Path("/srv/named")
    monkeypatch.delenv("RAYDEX_HOME")
    assert Settings().for_any_node({}).on_node(there).home == Path("/srv/there")
