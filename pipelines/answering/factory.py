"""The steps that a configuration describes, made and put together.

Knows no environment, no HTTP and no Ray: where a step runs is the service's affair.
"""

from collections.abc import Sequence
from pathlib import Path

from pipelines.answering.agents import Agent, LLMAgent
from pipelines.answering.engine import AsyncRetriever, QueryEngine
from pipelines.answering.reranking.base import Reranker
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.reranking.http import HTTPReranker
from pipelines.answering.reranking.llm import LLMReranker
from pipelines.answering.reranking.tag import TagReranker
from pipelines.answering.retrieval.live import QueryEmbedder
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.rewriting import Rewriter
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.answering.routing.router import ClassifierRouter, FixedRouter, Router
from pipelines.answering.routing.rules import Rule, RuleRouter
from pipelines.answering.settings import EXTRACTIVE, AgentSettings, AnswerSettings, all_agents
from pipelines.answering.synthesis.modes import synthesizer
from pipelines.answering.synthesis.prompts import Prompts
from pipelines.embedding.adapter import AdaptedEmbedder, QueryAdapter
from pipelines.embedding.embedder import Embedder, load_embedder
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.llm.client import LLM
from pipelines.store import Store


def make_engine(
    settings: AnswerSettings,
    retriever: AsyncRetriever,
    agents: Sequence[Agent] | None = None,
    reranker: Reranker | None = None,
) -> QueryEngine:
    """The engine over `retriever`; `agents` and `reranker` are made here unless they run elsewhere.

    Raises TemplateError, NotAClassifier and what a model raises that does not load.
    """
    if agents is None:
        agents = [make_agent(settings, agent) for agent in all_agents(settings)]
    return QueryEngine(
        retriever,
        agents=agents,
        router=make_router(settings, agents),
        rewriter=make_rewriter(settings),
        reranker=reranker or make_reranker(settings),
        mode=settings.mode,
        k=settings.k,
        depth=settings.depth,
        pages_first=settings.pages_first,
        max_per_page=settings.max_per_page,
    )


def make_retriever(settings: AnswerSettings, store: Store) -> Retriever:
    """The retriever over `store`. Raises NotAnAdapter."""
    adapter = QueryAdapter.load(settings.query_adapter) if settings.query_adapter != Path() else None

    def embedder(model: str) -> QueryEmbedder:
        plain = make_embedder(settings, model)
        return AdaptedEmbedder(plain, adapter) if adapter else plain

    return Retriever(
        store,
        embedder,
        lambda index: LexicalIndex(lexical_folder(settings.home, store.url, index.id)),
        collection=settings.collection,
        candidates=settings.candidates,
        weights={"vector": settings.vector_weight, "bm25": settings.bm25_weight},
        fusion=settings.fusion,
        lexical_k=settings.lexical_k,
        rrf_k=settings.rrf_k,
        reference_weight=settings.reference_weight,
        pages_first=settings.pages_first,
        neighbours=settings.neighbours,
        patience=settings.patience_s,
    )


def make_embedder(settings: AnswerSettings, model: str) -> Embedder:
    """The embedder named `model`, with the device and endpoint configured."""
    return load_embedder(
        model,
        device=settings.embedding_device,
        threads=settings.embedding_threads or None,
        cache=settings.home / "models",
        base_url=settings.embedding_url or None,
        api_key=settings.embedding_key or None,
    )


def make_llm(agent: AgentSettings) -> LLM:
    """The client of an agent's language model."""
    return LLM(
        agent.model,
        base_url=agent.base_url,
        api_key=agent.api_key,
        context_window=agent.context_window,
        context_share=agent.context_share,
        max_tokens=agent.max_tokens,
        temperature=agent.temperature,
        prompt_price=agent.prompt_price,
        completion_price=agent.completion_price,
        timeout_s=agent.timeout_s,
        retries=agent.retries,
        tokenizer=agent.tokenizer,
    )


def make_agent(settings: AnswerSettings, agent: AgentSettings) -> LLMAgent:
    """One agent. Raises TemplateError for a prompt that can't be used."""
    prompts = Prompts.from_mapping(settings.prompts, settings.prompt_variables)
    return LLMAgent(
        agent.name,
        make_llm(agent),
        by_mode=lambda mode: synthesizer(
            mode, prompts=prompts, structured=settings.structured, num_children=settings.num_children or None
        ),
        prompts=prompts,
        system=agent.system_prompt,
        assistant=agent.assistant_prefix,
        at_once=settings.llm_calls_at_once,
    )


def make_rewriter(settings: AnswerSettings) -> Rewriter | None:
    """The rewriter, where there is a language model: with `num_queries` 1 it condenses follow-ups alone."""
    agent = _agent(settings, settings.rewrite_agent)
    if agent is None:
        return None
    return Rewriter(make_llm(agent), num_queries=settings.num_queries, timeout_s=settings.rewrite_timeout_s)


def make_reranker(settings: AnswerSettings) -> Reranker | None:
    """The reranker chosen, None for `none`. Raises NotAClassifier and what a model raises that does not load."""
    c = settings
    if c.reranker == "cross-encoder":
        return CrossEncoderReranker(c.reranker_model, device=c.reranker_device)
    if c.reranker == "endpoint":
        return HTTPReranker(c.reranker_url, c.reranker_model, api_key=c.reranker_key)
    if c.reranker == "llm":
        agent = _agent(c, c.reranker_model)
        return LLMReranker(make_llm(agent)) if agent else None
    if c.reranker == "tag":
        classifier = TextClassifier.load(Path(c.reranker_model), "tag")
        return TagReranker(classifier, threshold=_threshold(c.reranker_threshold, classifier, 0.7))
    return None


def make_router(settings: AnswerSettings, agents: Sequence[Agent]) -> Router:
    """The router chosen. Raises BadRule, BadRouter and NotAClassifier."""
    c = settings
    default = c.router_default or next((agent.name for agent in agents), EXTRACTIVE)
    if c.router == "rules":
        return RuleRouter([Rule(rule.agent, rule.pattern, tuple(rule.topics)) for rule in c.router_rules], default)
    if c.router == "classifier":
        classifier = TextClassifier.load(c.router_model, "router")
        threshold = _threshold(c.router_threshold, classifier, 0.5)
        return ClassifierRouter(classifier, threshold, easy=c.router_easy, hard=c.router_hard)
    return FixedRouter(default)


def _threshold(chosen: float | None, classifier: TextClassifier, otherwise: float) -> float:
    return classifier.threshold(otherwise) if chosen is None else chosen


def _agent(settings: AnswerSettings, name: str) -> AgentSettings | None:
    """The agent of that name, the first for "", None where there are none."""
    return next((agent for agent in all_agents(settings) if name in ("", agent.name)), None)
