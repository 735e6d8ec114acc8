"""Makes the steps that the settings describe, and the engine from them.

This module knows nothing about environment variables, HTTP or Ray; the service decides where a step runs.
"""

from collections.abc import Sequence
from pathlib import Path

from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.engine import QueryEngine
from pipelines.answering.forms import FormFinder
from pipelines.answering.grounding.dates import SourceDates
from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking import RERANKERS, Reranker
from pipelines.answering.reranking.tag import TagReranker
from pipelines.answering.retrieval.interface import AsyncRetriever
from pipelines.answering.retrieval.legs import BM25, VECTOR
from pipelines.answering.retrieval.live import QueryEmbedder
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings
from pipelines.answering.routing import router
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.answering.routing.router import ClassifierRouter, FixedRouter, Router
from pipelines.answering.routing.rules import RuleRouter
from pipelines.answering.settings import EXTRACTIVE, NONE, AgentSettings, AnswerSettings, all_agents
from pipelines.answering.synthesis.prompts import Prompts
from pipelines.answering.verified.answer_finder import VerifiedFinder
from pipelines.answering.verified.pinned import PinnedFinder
from pipelines.answering.writing.agents import Agent, LLMAgent, synthesizer_of
from pipelines.embedding.adapter import AdaptedEmbedder, QueryAdapter
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.load import load_embedder
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.llm.client import LLM
from pipelines.records import EmbeddingModel
from pipelines.store import Store


def make_engine(
    settings: AnswerSettings,
    retriever: AsyncRetriever,
    agents: Sequence[Agent] | None = None,
    reranker: Reranker | None = None,
    store: Store | None = None,
) -> QueryEngine:
    """Make the engine over `retriever`; pass `agents` and `reranker` if they run elsewhere.

    Pinned sections and verified answers come from `store`; the settings can switch verified answers off. Raises
    TemplateError, NotAClassifier, OtherCollection, and any error of a model that fails to load.
    """
    if agents is None:
        agents = [make_agent(settings, agent) for agent in all_agents(settings)]
    return QueryEngine(
        retriever,
        agents=agents,
        router=make_router(settings, agents),
        rewriter=make_rewriter(settings),
        reranker=reranker or make_reranker(settings, store),
        pinned=PinnedFinder(store, retriever.aembed, settings.verified.similarity) if store is not None else None,
        verified=make_verified(settings, retriever, store) if store is not None and settings.verified.enabled else None,
        dates=SourceDates(store) if store is not None else None,
        forms=FormFinder(all_agents(settings), store, settings.collection),
        settings=EngineSettings(
            mode=settings.synthesis.mode,
            k=settings.retrieval.k,
            depth=settings.reranker.depth,
            longest_question=settings.longest_question,
            pages_first=settings.retrieval.pages_first,
            max_per_page=settings.retrieval.max_per_page,
            rounds=settings.retrieval.rounds,
            rounds_s=settings.retrieval.rounds_s,
        ),
    )


def make_verified(settings: AnswerSettings, retriever: AsyncRetriever, store: Store) -> VerifiedFinder:
    """Make the finder of the verified answers in `store`."""
    return VerifiedFinder(store, retriever.aembed, settings.collection, settings.verified.similarity)


def make_retriever(settings: AnswerSettings, store: Store) -> Retriever:
    """Make the retriever over `store`. Raises NotAnAdapter."""
    chosen = settings.retrieval.query_adapter
    adapter = QueryAdapter.load(chosen) if chosen != Path() else None

    def embedder(model: EmbeddingModel) -> QueryEmbedder:
        made = make_embedder(settings, model)
        if made.counter.folder:  # a local model: load it now rather than at the first question
            made.embed_query("first")
        return AdaptedEmbedder(made, adapter) if adapter else made

    return Retriever(
        store,
        embedder,
        lambda index: LexicalIndex(lexical_folder(settings.home, store.url, index.id)),
        collection=settings.collection,
        settings=RetrievalSettings(
            leg_depth=settings.retrieval.leg_depth,
            fusion=make_fusion(settings),
            ranking=settings.retrieval.ranking,
            neighbours=settings.retrieval.neighbours,
            spelling=settings.retrieval.spelling,
            patience_s=settings.retrieval.patience_s,
        ),
    )


def make_fusion(settings: AnswerSettings) -> Fusion:
    """Make the fusion of the legs."""
    weights = {VECTOR: settings.retrieval.vector_weight, BM25: settings.retrieval.bm25_weight}
    return Fusion(
        weights={leg: weight for leg, weight in weights.items() if weight != 1},
        kind=settings.fusion.kind,
        rrf_k=settings.retrieval.rrf_k,
        lexical_k=settings.fusion.lexical_k,
        reference_weight=settings.retrieval.reference_weight,
        pages_first=settings.retrieval.pages_first,
    )


def make_embedder(settings: AnswerSettings, model: EmbeddingModel) -> Embedder:
    """Make the embedder of `model`, with the device and endpoint from the settings."""
    return load_embedder(
        model,
        device=settings.embedding.device,
        threads=settings.embedding.threads or None,
        cache=settings.home / "models",
        base_url=settings.embedding.url or None,
        api_key=settings.embedding.key or None,
    )


def make_llm(agent: AgentSettings) -> LLM:
    """Make the client of an agent's language model. Raises KeyUnusable and TokenizerNotFound."""
    return LLM(agent.model, base_url=agent.base_url, api_key=agent.api_key, settings=agent)


def make_agent(settings: AnswerSettings, agent: AgentSettings) -> LLMAgent:
    """Make one agent. Raises TemplateError for a prompt that cannot be used."""
    prompts = Prompts(settings.prompts.templates, settings.prompts.variables)
    return LLMAgent(
        agent.name,
        make_llm(agent),
        by_task=lambda task: synthesizer_of(
            task,
            prompts=prompts,
            structured=settings.synthesis.structured,
            num_children=settings.synthesis.num_children or None,
        ),
        prompts=prompts,
        system=agent.system_prompt,
        assistant=agent.assistant_prefix,
        at_once=settings.llm.calls_at_once,
    )


def make_rewriter(settings: AnswerSettings) -> Rewriter | None:
    """Make the rewriter; return None if no language model is configured for it."""
    agent = next((each for each in all_agents(settings) if settings.rewriting.agent in ("", each.name)), None)
    if agent is None:
        return None
    return Rewriter(
        make_llm(agent),
        num_queries=settings.rewriting.num_queries,
        hyde=settings.rewriting.hyde,
        timeout_s=settings.rewriting.timeout_s,
    )


def make_reranker(settings: AnswerSettings, store: Store | None = None) -> Reranker | None:
    """Make the reranker; return None for the kind "none".

    A tag reranker must have been trained for the settings' collection, or for one in `store` if the settings name none.
    Raises NotAClassifier, OtherCollection, and any error of a model that fails to load.
    """
    if settings.reranker.kind == NONE:
        return None
    _, make = RERANKERS[settings.reranker.kind]
    reranker = make(settings.reranker)
    if isinstance(reranker, TagReranker):
        stored = [row["name"] for row in store.collections()] if store is not None and not settings.collection else []
        reranker.check_collection([settings.collection] if settings.collection else stored)
    return reranker


def make_router(settings: AnswerSettings, agents: Sequence[Agent]) -> Router:
    """Make the router. Raises BadRouter and NotAClassifier."""
    default = settings.router.default or next((agent.name for agent in agents), EXTRACTIVE)
    if settings.router.kind == "rules":
        return RuleRouter(settings.router.rules, default)
    if settings.router.kind == "classifier":
        classifier = TextClassifier.load(settings.router.model)
        chosen = settings.router.threshold
        threshold = classifier.threshold(router.THRESHOLD) if chosen is None else chosen
        return ClassifierRouter(classifier, threshold, easy=settings.router.easy, hard=settings.router.hard)
    return FixedRouter(default)
