"""What answers are made with, as data.

The service and the jobs read it each from their own environment, and get the same answers. Knows no environment, and
not how the steps are made that it describes (composition).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

EXTRACTIVE = "extractive"
MOST_HITS = 100


class AgentSettings(BaseModel):
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
    def _name_is_free(self) -> "AgentSettings":
        if self.name == EXTRACTIVE:
            raise ValueError(f"the name {EXTRACTIVE!r} belongs to the built-in agent")
        return self


class RuleSettings(BaseModel):
    """Questions that match `pattern`, or hold a word of `topics`, go to `agent`."""

    model_config = ConfigDict(extra="forbid")

    agent: str
    pattern: str = ""
    topics: list[str] = []


class AnswerSettings(BaseModel):
    """What answers are made with. The defaults answer without any language model."""

    collection: str = ""  # what a question means that names none; "": the only collection there is
    home: Path = Path()  # where BM25 folders and downloaded models lie

    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = 5  # hits an answer is made from, where the question names no number
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

    agents: list[AgentSettings] = []  # language models, in the order in which they stand in for each other
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
    router_rules: list[RuleSettings] = []
    router_model: Path = Path()  # folder of a trained classifier
    # P(the easy agent will do) from which it is asked; None: the one at which the classifier was judged
    router_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    router_easy: str = ""
    router_hard: str = ""

    @model_validator(mode="after")
    def _names_are_known(self) -> "AnswerSettings":
        names = [agent.name for agent in all_agents(self)]
        if len(set(names)) < len(names):
            raise ValueError(f"agents share a name: {', '.join(names)}")
        for setting, name in self._named_agents():
            if name not in (*names, EXTRACTIVE):
                raise ValueError(f"{setting} names the agent {name!r}; there are: {', '.join([*names, EXTRACTIVE])}")
        return self

    @model_validator(mode="after")
    def _choices_are_whole(self) -> "AnswerSettings":
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


def describe_errors(error: ValidationError) -> str:
    """What is wrong with a configuration, setting by setting; no values, since some are keys."""
    said = [(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in error.errors()]
    return "; ".join(f"setting {where}: {what}" if where else what for where, what in said)


def all_agents(settings: AnswerSettings) -> list[AgentSettings]:
    """The configured agents; the shortcut `llm_model` comes first, as "llm"."""
    if not settings.llm_model:
        return settings.agents
    short = {"name": "llm", "model": settings.llm_model, "api_key": settings.llm_key}
    url = {"base_url": settings.llm_url} if settings.llm_url else {}
    return [AgentSettings.model_validate({**short, **url}), *settings.agents]
