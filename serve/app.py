"""Builds the Ray Serve application from settings.

Every step runs in the ingress process, because a hop would cost more than the step, unless the settings give it a
separate deployment. `raydex serve`, `serve run serve.app:build` and `serve run serve/config.yaml` all call `build`.
"""

import asyncio
import itertools
import logging
import os
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError
from pydantic_settings import SettingsError
from ray import serve
from ray.serve import Application
from ray.serve.config import BackpressureConfig
from ray.serve.exceptions import RayServeException
from starlette.types import ASGIApp

from pipelines import ray_internals, tracing
from pipelines.answering.factory import make_agent, make_engine, make_reranker, make_retriever
from pipelines.answering.reranking.base import by_score
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.settings import NONE, AgentSettings, all_agents
from pipelines.answering.settings.variables import warn_of_unread
from pipelines.answering.synthesis.base import Task
from pipelines.answering.writing.agents import Agent, AgentPart
from pipelines.logs import log_as_json
from pipelines.records import Hit, Index
from pipelines.store import Place, Store
from serve.bots import Bot, wanted_bots
from serve.changes.runner import ChangeRunner
from serve.chat.running import BackgroundBot, ChatRefused
from serve.failure import RETRY_AFTER_S
from serve.guard.origin import parse_networks
from serve.guard.policy import protect
from serve.port import url_of
from serve.proxy.listening import keep_ports_on_loopback, running_address
from serve.recorder import Recorder
from serve.remote import Handle, Headers, RemoteAgent, RemoteReranker, RemoteRetriever, stream_answer
from serve.settings import Settings, explain_start
from serve.telemetry import FreshnessGauges, process_metrics

log = logging.getLogger(__name__)

# The maximum time until a dead replica is noticed and replaced. Ray's default of 10 s is a long wait for a question
# whose step has a single replica. The check is an empty call.
HEALTH_CHECK_S = 1.0
# How long a new replica loads models and BM25 before it receives questions. A large index loads faster than that; a
# BM25 folder that takes longer is built in the background.
LOAD_S = 60.0


class NoDatabase(ValueError):
    """The settings name no database."""

    def __init__(self) -> None:
        super().__init__("no database is set: set DATABASE_URL, or start with `raydex serve`, which brings its own")


def prepare_replica(settings: Settings) -> Settings:
    """Set up the process of a replica, and return the settings with the home folder of its node.

    It logs JSON lines and traces questions if a collector is configured; a local Ray is reachable only from this
    machine.
    """
    log_as_json()
    os.environ.update(settings.tracing)
    tracing.start(os.environ)
    keep_ports_on_loopback()
    return settings.on_node(os.environ)


def load_first(retriever: Retriever, patience_s: float = LOAD_S) -> None:
    """Load the live collections of a new replica, which receives questions once its constructor returns.

    Loading that takes longer than `patience_s` continues in the background.
    """
    loading = threading.Thread(target=retriever.warm, daemon=True)
    loading.start()
    loading.join(patience_s)


class TracedStep:
    """A deployment that sends its last spans when it ends."""

    def __del__(self) -> None:
        tracing.stop()


class RetrieverStep(TracedStep):
    """The retriever with its embedding model, as a deployment."""

    def __init__(self, settings: Settings) -> None:
        settings = prepare_replica(settings)
        store = Store(settings.database_url, settings.database_connections)
        self._retriever = make_retriever(settings, store)
        load_first(self._retriever)

    async def aretrieve(self, search: Search, trace: Headers) -> Retrieval:
        with tracing.span("retriever", parent=trace):
            return await self._retriever.aretrieve(search)

    async def aplace(self, url: str, collection: str | None) -> Place | None:
        return await self._retriever.aplace(url, collection)

    async def aready(self, collection: str | None) -> Index:
        return await self._retriever.aready(collection)

    async def aembed(self, texts: Sequence[str], collection: str | None) -> np.ndarray:
        return await self._retriever.aembed(texts, collection)


class RerankerStep(TracedStep):
    """The reranker as a deployment; a cross-encoder scores the questions of several callers in one batch."""

    def __init__(self, settings: Settings) -> None:
        settings = prepare_replica(settings)
        with Store(settings.database_url, settings.database_connections) as store:
            reranker = make_reranker(settings, store)
        assert reranker is not None, "the settings have no reranker"
        self._reranker = reranker

    async def rerank(self, question: str, hits: tuple[Hit, ...], trace: Headers) -> tuple[Hit, ...]:
        with tracing.span("reranker", parent=trace):
            if not isinstance(self._reranker, CrossEncoderReranker):
                return await self._reranker.rerank(question, hits)
            scores = await self._score(self._reranker.pairs(question, hits))
            return by_score(hits, scores, self._reranker.name)

    # Waiting longer than a hop takes would cost a single question more than a fuller batch saves.
    @serve.batch(max_batch_size=16, batch_wait_timeout_s=0.001)
    async def _score(self, questions: list[list[tuple[str, str]]]) -> list[list[float]]:
        """Score the pairs of several questions in one batch of the model."""
        assert isinstance(self._reranker, CrossEncoderReranker)
        pairs = [pair for one in questions for pair in one]
        scores = iter((await asyncio.to_thread(self._reranker.score, pairs)).tolist())
        return [list(itertools.islice(scores, len(one))) for one in questions]


class AgentStep(TracedStep):
    """An agent with its language model, as a deployment."""

    def __init__(self, settings: Settings, agent: AgentSettings) -> None:
        settings = prepare_replica(settings)
        self._agent = make_agent(settings, agent)

    async def answer(self, task: Task, trace: Headers) -> AsyncGenerator[AgentPart, None]:
        with tracing.span("agent", parent=trace):
            async for part in stream_answer(self._agent, task):
                yield part


class BotStep:
    """A chat bot as a deployment with one replica; its successor takes over unanswered messages."""

    def __init__(self, settings: Settings, bot: Bot) -> None:
        settings = prepare_replica(settings)
        folder, service = settings.home / bot.name.lower(), url_of(settings.host, settings.port)
        self._bot = BackgroundBot(bot.name, lambda stop: bot.run(settings, service, folder, stop, log.warning))

    def check_health(self) -> None:
        self._bot.check()

    def __del__(self) -> None:
        if hasattr(self, "_bot"):
            self._bot.close()


@serve.ingress()
class Raydex:
    """The ingress: the API, and every step without a separate deployment.

    `bots` are arguments only so that Serve deploys them with the application: they ask over HTTP.
    """

    def __init__(
        self,
        settings: Settings,
        retriever: Handle | None,
        reranker: Handle | None,
        agents: dict[str, Handle],
        bots: Sequence[Handle] = (),
    ) -> None:
        self._settings = settings = prepare_replica(settings)
        self._store = Store(settings.database_url, settings.database_connections)
        timeout_s = settings.step_timeout_s
        self._engine = make_engine(
            settings,
            RemoteRetriever(retriever, timeout_s) if retriever else self._own_retriever(),
            [self._agent(agent, agents.get(agent.name)) for agent in all_agents(settings)],
            RemoteReranker(reranker, settings.reranker.kind, timeout_s) if reranker else None,
            self._store,
        )
        self._metrics = process_metrics()
        self._recorder = Recorder(self._store, **settings.recording.model_dump())
        self._changes = ChangeRunner(self._store, settings)
        self._freshness = FreshnessGauges(self._store, self._metrics)

    def __del__(self) -> None:
        if hasattr(self, "_recorder"):
            self._recorder.close()
        if hasattr(self, "_freshness"):
            self._freshness.close()
            self._changes.close()
        tracing.stop()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        from serve.routes import (
            create_app,
        )  # imported here because only an ingress needs it, and importing it with MCP takes a second

        app = create_app(
            self._engine,
            self._store,
            recorder=self._recorder,
            observer=self._metrics,
            collection=self._settings.collection,
            v1_sources=self._settings.v1_sources,
            announced=self._changes.wake,
            trusted=parse_networks(self._settings.trusted_proxies),
        )
        running = running_address()
        policy = self._settings.model_copy(update={"host": running.host} if running else {})
        return protect(app, self._store, policy, self._metrics, reply_id=False)  # Ray itself adds the id to the reply

    def _own_retriever(self) -> Retriever:
        retriever = make_retriever(self._settings, self._store)
        load_first(retriever)
        return retriever

    def _agent(self, agent: AgentSettings, handle: Handle | None) -> Agent:
        here = make_agent(self._settings, agent)
        return RemoteAgent(handle, here, self._settings.step_timeout_s) if handle else here


class NotDeployable(RayServeException):
    """The `args` of a Serve config file can't be used. Serve shows only the message of this type of error."""


def build(settings: Settings | dict[str, Any]) -> Application:
    """Return the application for `settings`, or for the `args` of a Serve config file.

    Deployments are named Raydex, Retriever, Reranker, Agent-<name> and Slack. Set the replicas, resources and
    autoscaling of each under `deployments` in serve/config.yaml. Raises NoDatabase and ChatRefused, or NotDeployable
    for `args`.
    """
    if isinstance(settings, Settings):
        return _build(settings)
    try:
        return _build(Settings(**settings))
    except (ValidationError, SettingsError, NoDatabase, ChatRefused) as error:
        raise NotDeployable(explain_start(error)[0]) from None


def deployment_names(settings: Settings) -> list[str]:
    """Return the names of the deployments that `build` makes."""
    place = settings.placement
    return [
        "Raydex",
        *(["Retriever"] if place.retriever == "deployment" else []),
        *(["Reranker"] if place.reranker == "deployment" and settings.reranker.kind != NONE else []),
        *(f"Agent-{agent.name}" for agent in all_agents(settings) if place.agents == "deployment"),
        *(["Slack"] if settings.slack else []),
    ]


def _build(settings: Settings) -> Application:
    warn_of_unread(os.environ)
    if not settings.database_url:
        raise NoDatabase
    ray_internals.warn_of_missing(ray_internals.OF_SERVE)
    settings = settings.for_any_node(os.environ)
    retriever = _step(RetrieverStep, "Retriever", settings) if settings.placement.retriever == "deployment" else None
    own_reranker = settings.reranker.kind != NONE and settings.placement.reranker == "deployment"
    reranker = _step(RerankerStep, "Reranker", settings) if own_reranker else None
    agents = {
        agent.name: _step(AgentStep, f"Agent-{agent.name}", settings, agent)
        for agent in all_agents(settings)
        if settings.placement.agents == "deployment"
    }
    options = _options(settings, num_replicas=settings.replicas, ray_actor_options={"num_cpus": settings.cpus})
    bots = [_bot(bot, settings) for bot in wanted_bots(settings, os.environ)]
    return serve.deployment(name="Raydex", **options)(Raydex).bind(settings, retriever, reranker, agents, bots)


def __getattr__(name: str) -> Application:
    """Build the attribute `app` on first use: `serve build serve.app:app` needs an application, not a builder."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return build(Settings())


def _step(step: type, name: str, settings: Settings, *more: object) -> Application:
    options = _options(settings, ray_actor_options={"num_cpus": 0.1})
    return serve.deployment(name=name, **options)(step).bind(settings, *more)


def _bot(bot: Bot, settings: Settings) -> Application:
    deployment = serve.deployment(
        name=bot.name, num_replicas=1, health_check_period_s=HEALTH_CHECK_S, ray_actor_options={"num_cpus": 0.1}
    )
    return deployment(BotStep).bind(settings, bot)


def _options(settings: Settings, **more: Any) -> dict[str, Any]:
    """Return the options of a deployment. A full queue answers 503; Ray's default is an unlimited queue."""
    return {
        "max_ongoing_requests": 2 * settings.at_once,
        "max_queued_requests": 4 * settings.at_once,
        "backpressure_config": BackpressureConfig(status_code=503, retry_after_s=RETRY_AFTER_S),
        "health_check_period_s": HEALTH_CHECK_S,
        **more,
    }
