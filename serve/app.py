"""The composition: settings become a Serve application. One deployment, since a hop costs more than any step.

`serve run serve.app:build`, `serve run serve/config.yaml` and `python -m serve` all end in `build`.
"""

import threading

from fastapi import FastAPI
from ray import serve
from ray.serve import Application

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retriever import Retriever
from pipelines.answering.extractive import ExtractiveSynthesizer
from pipelines.embed import Embedder, load_embedder
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.store import Store
from serve.api import create_app
from serve.settings import Settings


class NoDatabase(ValueError):
    """The service was not told where its database is."""

    def __init__(self) -> None:
        super().__init__("no database: set DATABASE_URL, or start with «python -m serve», which brings its own")


@serve.ingress()
class Raydex:
    """The ingress: API and retriever in one process."""

    def __init__(self, settings: Settings) -> None:
        self._store = Store(settings.database_url, settings.database_connections)
        retriever = Retriever(
            self._store,
            lambda model: _embedder(model, settings),
            lambda index: LexicalIndex(lexical_folder(settings.home, settings.database_url, index.id)),
            collection=settings.collection,
            candidates=settings.candidates,
            patience=settings.patience_s,
        )
        self._engine = QueryEngine(retriever, ExtractiveSynthesizer(), k=settings.k)
        threading.Thread(target=retriever.warm, daemon=True).start()

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_app(self._engine, self._store)


def build(settings: Settings) -> Application:
    """The application for `settings`. Raises NoDatabase."""
    if not settings.database_url:
        raise NoDatabase
    # Answers are made in threads, so many may be under way; beyond the queue a client is told to come back.
    deployment = serve.deployment(
        num_replicas=settings.replicas,
        ray_actor_options={"num_cpus": settings.cpus},
        max_ongoing_requests=64,
        max_queued_requests=256,
    )
    return deployment(Raydex).bind(settings)


def _embedder(model: str, settings: Settings) -> Embedder:
    return load_embedder(
        model,
        device=settings.embedding_device,
        threads=settings.embedding_threads or None,
        cache=settings.home / "models",
        base_url=settings.embedding_url or None,
        api_key=settings.embedding_key or None,
    )
