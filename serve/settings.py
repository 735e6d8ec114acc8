"""Settings of the service, from the environment (RAYDEX_…, DATABASE_URL) or from serve/config.yaml."""

from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipelines.answering.settings import Configuration

Placement = Literal["ingress", "deployment"]


class Settings(BaseSettings, Configuration):
    """Settings of the service: how answers are made, where they are served, and to whom.

    A value given to the constructor overrides the environment. Settings are read once, at the entry point.
    """

    model_config = SettingsConfigDict(
        env_prefix="RAYDEX_", populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    database_url: Annotated[str, Field(validation_alias=AliasChoices("database_url", "DATABASE_URL"), repr=False)] = ""
    home: Path = Field(default_factory=lambda: user_data_path("raydex"))
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    database_connections: Annotated[int, Field(ge=1)] = 8

    retriever_placement: Placement = "ingress"  # where it runs: in the ingress process, or as its own deployment
    reranker_placement: Placement = "ingress"
    agents_placement: Placement = "ingress"  # "deployment": one for each language model
    replicas: Annotated[int, Field(ge=1)] = 1  # of the ingress
    cpus: Annotated[float, Field(ge=0)] = 0.5  # that Ray reserves for a replica of it
    at_once: Annotated[int, Field(ge=1)] = 64  # questions under way in a replica; beyond: 503
    step_timeout_s: Annotated[float, Field(gt=0)] = 30.0  # how long a step in another deployment is waited for

    keys_required: bool | None = None  # None: unless the service is bound to this machine alone
    rate: Annotated[int, Field(ge=0)] = 0  # questions a minute with a key that has no rate of its own; 0: any number
    anonymous_rate: Annotated[int, Field(ge=0)] = 0  # of all who ask without a key, together; 0: any number
    max_body_bytes: Annotated[int, Field(ge=1_000)] = 1_000_000
    cors_origins: list[str] = []
    record_questions: bool = True
    retention_days: Annotated[int, Field(ge=1)] = 90  # questions and answers are kept that long
