"""What the service can be told, from the environment (RAYDEX_…, DATABASE_URL) or as values in serve/config.yaml."""

from pathlib import Path
from typing import Annotated

from platformdirs import user_data_path
from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of the service. A value given to the constructor beats the environment.

    Read once, at the entry point; everything behind it gets values.
    """

    model_config = SettingsConfigDict(env_prefix="RAYDEX_", populate_by_name=True, extra="forbid")

    database_url: Annotated[str, Field(validation_alias=AliasChoices("database_url", "DATABASE_URL"), repr=False)] = ""
    collection: str = ""  # what a question means that names none; "": the only collection there is
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    home: Path = Field(default_factory=lambda: user_data_path("raydex"))
    k: Annotated[int, Field(ge=1, le=100)] = 5  # hits an answer is made from, where the question names no number
    candidates: Annotated[int, Field(ge=1, le=1_000)] = 50  # hits that each leg brings to the fusion
    patience_s: Annotated[float, Field(ge=0)] = 2.0  # how long a question waits for BM25 or a new index
    database_connections: Annotated[int, Field(ge=1)] = 8
    embedding_url: Annotated[str, Field(validation_alias=AliasChoices("embedding_url", "OPENAI_BASE_URL"))] = ""
    embedding_key: Annotated[
        str, Field(validation_alias=AliasChoices("embedding_key", "OPENAI_API_KEY"), repr=False)
    ] = ""
    embedding_device: str = "cpu"  # "cuda" where the replicas have a GPU
    embedding_threads: Annotated[int, Field(ge=0)] = 0  # of the embedding model; 0: as many as it likes
    replicas: Annotated[int, Field(ge=1)] = 1
    cpus: Annotated[float, Field(ge=0)] = 0.5  # that Ray reserves for a replica
