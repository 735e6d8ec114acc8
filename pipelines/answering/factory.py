"""The steps that a configuration describes, made and put together.

Knows no environment, no HTTP and no Ray: where a step runs is the service's affair.
"""

from collections.abc import Sequence
from pathlib import Path

from pipelines.answering.agents import Agent, LLMAgent
from pipelines.answering.engine import QueryEngine, Retrieves
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
from pipelines.answering.settings import EXTRACTIVE, AgentConfiguration, Configuration, all_agents
from pipelines.answering.synthesis.modes import synthesizer
from pipelines.answering.synthesis.prompts import Prompts
from pipelines.embedding.adapter import AdaptedEmbedder, QueryAdapter
from pipelines.embedding.embedder import Embedder, load_embedder
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.llm.client import LLM
from pipelines.store import Store


def make_engine(
    configuration: Configuration,
    retriever: Retrieves,
    agents: Sequence[Agent] | None = None,
    reranker: Reranker | None = None,
) -> QueryEngine:
    """The engine over `retriever`; `agents` and `reranker` are made here unless they run elsewhere.

    Raises TemplateError, NotAClassifier and what a model raises that does not load.
    """
    if agents is None:
        agents = [make_agent(configuration, agent) for agent in all_agents(configuration)]
    return QueryEngine(
        retriever,
        agents=agents,
        router=make_router(configuration, agents),
        rewriter=make_rewriter(configuration),
        reranker=reranker or make_reranker(configuration),
        mode=configuration.mode,
        k=configuration.k,
        depth=configuration.depth,
        pages_first=configuration.pages_first,
        max_per_page=configuration.max_per_page,
    )


def make_retriever(configuration: Configuration, store: Store) -> Retriever:
    """The retriever over `store`. Raises NotAnAdapter."""
    adapter = QueryAdapter.load(configuration.query_adapter) if configuration.query_adapter != Path() else None

    def embedder(model: str) -> QueryEmbedder:
        plain = make_embedder(configuration, model)
        return AdaptedEmbedder(plain, adapter) if adapter else plain

    return Retriever(
        store,
        embedder,
        lambda index: LexicalIndex(lexical_folder(configuration.home, store.url, index.id)),
        collection=configuration.collection,
        candidates=configuration.candidates,
        weights={"vector": configuration.vector_weight, "bm25": configuration.bm25_weight},
        fusion=configuration.fusion,
        lexical_k=configuration.lexical_k,
        rrf_k=configuration.rrf_k,
        reference_weight=configuration.reference_weight,
        pages_first=configuration.pages_first,
        neighbours=configuration.neighbours,
        patience=configuration.patience_s,
    )


def make_embedder(configuration: Configuration, model: str) -> Embedder:
    """The embedder named `model`, with the device and endpoint configured."""
    return load_embedder(
        model,
        device=configuration.embedding_device,
        threads=configuration.embedding_threads or None,
        cache=configuration.home / "models",
        base_url=configuration.embedding_url or None,
        api_key=configuration.embedding_key or None,
    )


def make_llm(agent: AgentConfiguration) -> LLM:
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


def make_agent(configuration: Configuration, agent: AgentConfiguration) -> LLMAgent:
    """One agent. Raises TemplateError for a prompt that can't be used."""
    prompts = Prompts.from_mapping(configuration.prompts, configuration.prompt_variables)
    return LLMAgent(
        agent.name,
        make_llm(agent),
        by_mode=lambda mode: synthesizer(
            mode, prompts=prompts, structured=configuration.structured, num_children=configuration.num_children or None
        ),
        prompts=prompts,
        system=agent.system_prompt,
        assistant=agent.assistant_prefix,
        at_once=configuration.llm_calls_at_once,
    )


def make_rewriter(configuration: Configuration) -> Rewriter | None:
    """The rewriter, where there is a language model: with `num_queries` 1 it condenses follow-ups alone."""
    agent = _agent(configuration, configuration.rewrite_agent)
    if agent is None:
        return None
    return Rewriter(make_llm(agent), num_queries=configuration.num_queries, timeout_s=configuration.rewrite_timeout_s)


def make_reranker(configuration: Configuration) -> Reranker | None:
    """The reranker chosen, None for `none`. Raises NotAClassifier and what a model raises that does not load."""
    c = configuration
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


def make_router(configuration: Configuration, agents: Sequence[Agent]) -> Router:
    """The router chosen. Raises BadRule, BadRouter and NotAClassifier."""
    c = configuration
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


def _agent(configuration: Configuration, name: str) -> AgentConfiguration | None:
    """The agent of that name, the first for "", None where there are none."""
    return next((agent for agent in all_agents(configuration) if name in ("", agent.name)), None)
