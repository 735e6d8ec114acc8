"""Settings of the service, from the environment (RAYDEX_…) or from config.yaml."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, PrivateAttr, ValidationError
from pydantic_settings import SettingsConfigDict, SettingsError

from pipelines.answering.settings import AnswerSettings, Home, describe_errors
from pipelines.answering.settings.names import SettingsGroup
from pipelines.answering.settings.variables import FromVariables, explain_not_json
from pipelines.embedded import EmbeddedPostgresFailed
from pipelines.store import StoreUnavailable, UnusableDatabase
from serve.api.openai.sources import SourcesPlace
from serve.bots import BotSettings
from serve.guard.policy import Policy
from serve.recorder import RETENTION_DAYS

Placement = Literal["ingress", "deployment"]
HOME_OF_NODE = Path()  # as a home folder, this means each node's own: see `Settings.for_any_node`


# Errors of the settings and the database that prevent a service from starting.
CANNOT_START = (ValidationError, SettingsError, StoreUnavailable, UnusableDatabase, EmbeddedPostgresFailed)


def explain_start(error: Exception) -> tuple[str, int]:
    """Return why a service does not start, and its exit code: 2 for an invalid setting, else 1."""
    if isinstance(error, SettingsError):
        return explain_not_json(error, os.environ), 2
    return (describe_errors(error, Settings), 2) if isinstance(error, ValidationError) else (str(error), 1)


class PlacementSettings(SettingsGroup):
    """Where steps run: in the ingress process, or in separate deployments."""

    retriever: Placement = "ingress"
    reranker: Placement = "ingress"
    agents: Placement = "ingress"  # "deployment": one per language model


class RecordingSettings(SettingsGroup):
    """Whether questions and answers are stored, and for how many days."""

    enabled: bool = True
    retention_days: Annotated[int, Field(ge=1)] = RETENTION_DAYS


class Settings(FromVariables, AnswerSettings, BotSettings, Policy):
    """Settings of the service: how answers are made, where they are served, and to whom.

    A value passed to the constructor overrides the environment. Settings are read once, at the entry point.
    """

    model_config = SettingsConfigDict(extra="forbid")

    database_url: Annotated[str, Field(validation_alias=AliasChoices("database_url", "DATABASE_URL"), repr=False)] = ""
    home: Home = Field(default_factory=lambda: user_data_path("raydex"))
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    metrics_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    database_connections: Annotated[int, Field(ge=1)] = 8

    placement: PlacementSettings = PlacementSettings()
    replicas: Annotated[int, Field(ge=1)] = 1  # replicas of the ingress
    cpus: Annotated[float, Field(ge=0)] = 0.5  # CPUs that Ray reserves for a replica of the ingress
    step_timeout_s: Annotated[float, Field(gt=0)] = 30.0  # time limit of a step in another deployment

    v1_sources: SourcesPlace = "key"  # the place of a chat completion's sources, unless its request says
    recording: RecordingSettings = RecordingSettings()

    _tracing: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def tracing(self) -> Mapping[str, str]:
        """The OpenTelemetry variables of the process that built the application; they apply in every replica."""
        return self._tracing

    def for_any_node(self, environ: Mapping[str, str]) -> "Settings":
        """Return the settings for replicas on any node: this node's home stands for each node's own home."""
        settings = self.model_copy(update={"home": HOME_OF_NODE} if self.home == _home_of(environ) else {})
        settings._tracing = {name: value for name, value in environ.items() if name.startswith("OTEL_")}
        return settings

    def on_node(self, environ: Mapping[str, str]) -> "Settings":
        """Return the settings on the node with this environment."""
        return self.model_copy(update={"home": _home_of(environ)}) if self.home == HOME_OF_NODE else self


def _home_of(environ: Mapping[str, str]) -> Path:
    return Path(environ["RAYDEX_HOME"]).expanduser() if environ.get("RAYDEX_HOME") else user_data_path("raydex")
