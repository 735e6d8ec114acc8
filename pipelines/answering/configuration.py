"""What answers are made with, as data, and the steps that it describes.

The service and the jobs read it each from their own environment, and get the same answers. Knows no environment,
no HTTP and no Ray: where a step runs is the service's affair.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipelines.answering.adapter import AdaptedEmbedder, QueryAdapter
from pipelines.answering.agent import LLMAgent
from pipelines.answering.classifier import TextClassifier
from pipelines.answering.engine import QueryEngine, Retrieves
from pipelines.answering.llm import LLM
from pipelines.answering.prompts import Prompts
from pipelines.answering.rerank_endpoint import HTTPReranker
from pipelines.answering.reranked import Reranker
from pipelines.answering.reranker import CrossEncoderReranker, LLMReranker, TagReranker
from pipelines.answering.retriever import Retriever
from pipelines.answering.rewrite import Rewriter
from pipelines.answering.router import ClassifierRouter, FixedRouter, Router, Rule, RuleRouter
from pipelines.answering.serving import QueryEmbedder
from pipelines.answering.synthesize import synthesizer
from pipelines.answering.task import Agent
from pipelines.embed import Embedder, load_embedder
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.store import Store

EXTRACTIVE = "extractive"


class AgentConfiguration(BaseModel):
    """An agent and the language model behind it. Prices are US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key: Annotated[str, Field(repr=False)] = ""
    context_window: Annotated[int, Field(ge=256)] = 8192
    context_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    temperature: Annotated[float, Field(ge=0)] = 0.0
    prompt_price: Annotated[float, Field(ge=0)] = 0.0
    completion_price: Annotated[float, Field(ge=0)] = 0.0
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    retries: Annotated[int, Field(ge=0)] = 2
    tokenizer: str = ""
    system_prompt: str = ""
    assistant_prefix: str = ""

    @model_validator(mode="after")
    def _name_is_free(self) -> "AgentConfiguration":
        if self.name == EXTRACTIVE:
            raise ValueError(f"the name {EXTRACTIVE!r} belongs to the built-in agent")
        return self


class RuleConfiguration(BaseModel):
    """Questions that match `pattern`, or hold a word of `topics`, go to `agent`."""

    model_config = ConfigDict(extra="forbid")

    agent: str
    pattern: str = ""
    topics: list[str] = []


class Configuration(BaseModel):
    """What answers are made with. The defaults answer without any language model."""

    collection: str = ""  # what a question means that names none; "": the only collection there is
    home: Path = Path()  # where BM25 folders and downloaded models lie

    k: Annotated[int, Field(ge=1, le=100)] = 5  # hits an answer is made from, where the question names no number
    candidates: Annotated[int, Field(ge=1, le=1_000)] = 50  # hits that each leg brings to the fusion
    patience_s: Annotated[float, Field(ge=0)] = 2.0  # how long a question waits for BM25 or a new index
    fusion: Literal["rrf", "insert"] = "rrf"  # reciprocal rank fusion, or `lexical_k` BM25 hits after the k-th
    lexical_k: Annotated[int, Field(ge=0)] = 5  # of fusion `insert`
    vector_weight: Annotated[float, Field(ge=0)] = 1.0  # of the fusion; 0 switches the leg off
    bm25_weight: Annotated[float, Field(ge=0)] = 1.0
    rrf_k: Annotated[int, Field(ge=0)] = 30  # a hit of rank r counts weight / (rrf_k + r)
    reference_weight: Annotated[float, Field(gt=0, le=1)] = 0.3  # prior of reference pages not named
    pages_first: bool = True  # the best hit of every page before a second one of any
    max_per_page: Annotated[int, Field(ge=0)] = 0  # most hits of one page; 0: any number
    neighbours: Annotated[int, Field(ge=0, le=10)] = 0  # chunks of the section joined to each side of a hit
    query_adapter: Path = Path()  # folder of a trained map of the questions' vectors
    embedding_url: Annotated[str, Field(validation_alias=AliasChoices("embedding_url", "OPENAI_BASE_URL"))] = ""
    embedding_key: Annotated[
        str, Field(validation_alias=AliasChoices("embedding_key", "OPENAI_API_KEY"), repr=False)
    ] = ""
    embedding_device: str = "cpu"  # "cuda" where the replicas have a GPU
    embedding_threads: Annotated[int, Field(ge=0)] = 0  # of the embedding model; 0: as many as it likes

    agents: list[AgentConfiguration] = []  # language models, in the order in which they stand in for each other
    llm_url: str = ""  # with llm_model and llm_key: a single agent named "llm"
    llm_model: str = ""
    llm_key: Annotated[str, Field(repr=False)] = ""
    mode: Literal[
        "compact", "refine", "tree_summarize", "simple_summarize", "accumulate", "compact_accumulate", "generation",
        "no_text",
    ] = "compact"  # fmt: skip
    structured: bool = False  # refine and compact skip steps that do not satisfy the question
    num_children: Annotated[int, Field(ge=0)] = 0  # of a node of tree_summarize; 0: as many as the window holds
    llm_calls_at_once: Annotated[int, Field(ge=1)] = 4  # of one question
    prompts: dict[str, str] = {}  # templates that replace the built-in ones, by name
    prompt_variables: dict[str, str] = {}  # values of the templates' own variables

    num_queries: Annotated[int, Field(ge=1, le=10)] = 1  # searched for; above 1 a model writes the further ones
    rewrite_agent: str = ""  # whose model rewrites and condenses; "": the first
    rewrite_timeout_s: Annotated[float, Field(gt=0)] = 5.0

    reranker: Literal["none", "cross-encoder", "endpoint", "llm", "tag"] = "none"
    reranker_model: str = ""  # folder or hub name; the endpoint's model; the agent whose model picks
    reranker_url: str = ""
    reranker_key: Annotated[str, Field(repr=False)] = ""
    reranker_device: str = "cpu"
    reranker_threshold: Annotated[float, Field(ge=0, le=1)] | None = None  # of the tag classifier; None: as judged
    depth: Annotated[int, Field(ge=1, le=200)] = 30  # hits that the reranker sees

    router: Literal["fixed", "rules", "classifier"] = "fixed"
    router_default: str = ""  # the agent where no rule matches; "": the first
    router_rules: list[RuleConfiguration] = []
    router_model: Path = Path()  # folder of a trained classifier
    # P(the easy agent will do) from which it is asked; None: the one at which the classifier was judged
    router_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    router_easy: str = ""
    router_hard: str = ""

    @model_validator(mode="after")
    def _names_are_known(self) -> "Configuration":
        names = [agent.name for agent in all_agents(self)]
        if len(set(names)) < len(names):
            raise ValueError(f"agents share a name: {', '.join(names)}")
        for setting, name in self._named_agents():
            if name not in (*names, EXTRACTIVE):
                raise ValueError(f"{setting} names the agent {name!r}; there are: {', '.join([*names, EXTRACTIVE])}")
        return self

    @model_validator(mode="after")
    def _choices_are_whole(self) -> "Configuration":
        needs = {
            ("reranker", "cross-encoder"): ("reranker_model",),
            ("reranker", "tag"): ("reranker_model",),
            ("reranker", "endpoint"): ("reranker_url",),
            ("router", "rules"): ("router_rules",),
            ("router", "classifier"): ("router_model", "router_easy", "router_hard"),
        }
        for (setting, choice), needed in needs.items():
            missing = [name for name in needed if getattr(self, name) in ("", [], Path())]
            if getattr(self, setting) == choice and missing:
                raise ValueError(f"{setting} {choice!r} needs {' and '.join(missing)}")
        if not all_agents(self) and (self.num_queries > 1 or self.reranker == "llm"):
            raise ValueError("num_queries above 1 and reranker 'llm' need a language model: set agents or llm_model")
        return self

    def _named_agents(self) -> Iterator[tuple[str, str]]:
        """Every setting that names an agent, with the name."""
        for setting in ("router_default", "router_easy", "router_hard", "rewrite_agent"):
            if name := getattr(self, setting):
                yield setting, name
        yield from (("router_rules", rule.agent) for rule in self.router_rules)
        if self.reranker == "llm" and self.reranker_model:
            yield "reranker_model", self.reranker_model


def complaint(error: ValidationError) -> str:
    """What is wrong with a configuration, setting by setting; no values, since some are keys."""
    said = [(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in error.errors()]
    return "; ".join(f"setting {where}: {what}" if where else what for where, what in said)


def all_agents(configuration: Configuration) -> list[AgentConfiguration]:
    """The configured agents; the shortcut `llm_model` comes first, as "llm"."""
    if not configuration.llm_model:
        return configuration.agents
    short = {"name": "llm", "model": configuration.llm_model, "api_key": configuration.llm_key}
    url = {"base_url": configuration.llm_url} if configuration.llm_url else {}
    return [AgentConfiguration.model_validate({**short, **url}), *configuration.agents]


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
