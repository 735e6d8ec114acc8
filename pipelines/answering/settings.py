"""The settings of answers: every setting with its limits, its default and its checks.

The service and the jobs read them, each from its own environment, and get the same answers. A default that a
constructor has too is declared by the constructor's value object. Knows no environment and makes no step (factory).
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipelines.answering.conversation import rewriting
from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking import RERANKERS, RerankerOptions
from pipelines.answering.retrieval.fusion import FUSIONS
from pipelines.answering.retrieval.search import RetrievalSettings
from pipelines.answering.synthesis.modes import CONTEXT_ONLY, MODES, NO_TEXT
from pipelines.answering.synthesis.styles import DEFAULT_STYLE, MARKS, QUESTIONS, RULES
from pipelines.answering.verified.similarity import SIMILAR
from pipelines.answering.writing.agents import ExtractiveAgent
from pipelines.llm.client import LLMSettings
from pipelines.llm.session import AT_ONCE
from pipelines.records import VERIFIED

EXTRACTIVE = ExtractiveAgent.name
NONE = "none"
MOST_HITS = 100

_LLM, _RETRIEVAL, _ENGINE, _RERANKER = LLMSettings(), RetrievalSettings(), EngineSettings(), RerankerOptions()
_FUSION, _STYLE = _RETRIEVAL.fusion, DEFAULT_STYLE


def _one_of(choices: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is none of the choices: {', '.join(choices)}")
        return value

    return AfterValidator(check)


def _check_home(home: Path) -> Path:
    home = home.expanduser()
    if not home.is_absolute():
        raise ValueError(f"{str(home)!r} is relative, another home in each folder: write {home.absolute()}")
    return home


Home = Annotated[Path, AfterValidator(_check_home)]


class AgentSettings(BaseModel):
    """An agent and the language model behind it. Prices are US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key: Annotated[str, Field(repr=False)] = ""
    context_window: Annotated[int, Field(ge=256)] = _LLM.context_window
    context_share: Annotated[float, Field(gt=0, le=1)] = _LLM.context_share
    context_seconds: Annotated[float, Field(ge=0)] = _LLM.context_seconds
    max_tokens: Annotated[int, Field(ge=1)] = _LLM.max_tokens
    temperature: Annotated[float, Field(ge=0)] = _LLM.temperature
    prompt_price: Annotated[float, Field(ge=0)] = _LLM.prompt_price
    completion_price: Annotated[float, Field(ge=0)] = _LLM.completion_price
    first_token_s: Annotated[float, Field(gt=0)] = _LLM.first_token_s
    between_tokens_s: Annotated[float, Field(gt=0)] = _LLM.between_tokens_s
    retries: Annotated[int, Field(ge=0)] = _LLM.retries
    tokenizer: str = _LLM.tokenizer
    system_prompt: str = ""
    assistant_prefix: str = ""

    @model_validator(mode="before")
    @classmethod
    def _split_timeout(cls, values: Any) -> Any:
        """Read `timeout_s`, the former limit of every wait, as both limits that there are now."""
        if not isinstance(values, dict) or "timeout_s" not in values:
            return values
        both = dict.fromkeys(("first_token_s", "between_tokens_s"), values["timeout_s"])
        return {**both, **{name: value for name, value in values.items() if name != "timeout_s"}}

    @model_validator(mode="after")
    def _check_name(self) -> "AgentSettings":
        if self.name in (EXTRACTIVE, VERIFIED):
            raise ValueError(f"the name {self.name!r} belongs to a built-in agent")
        return self


class RuleSettings(BaseModel):
    """Questions that match `pattern`, or have a word of `topics`, go to `agent`."""

    model_config = ConfigDict(extra="forbid")

    agent: str
    pattern: str = ""
    topics: list[str] = []


class AnswerSettings(BaseModel):
    """How answers are made. The defaults answer without any language model."""

    model_config = ConfigDict(populate_by_name=True)

    collection: str = ""  # for questions that name none; "": the only collection
    home: Home = Path()  # of BM25 folders and downloaded models

    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = _ENGINE.k  # hits for an answer, if the question names no number
    candidates: Annotated[int, Field(ge=1, le=1_000)] = _RETRIEVAL.leg_depth  # hits that each leg brings to the fusion
    patience_s: Annotated[float, Field(ge=0)] = _RETRIEVAL.patience_s  # a question waits for BM25 or a new index
    fusion: Annotated[str, _one_of(FUSIONS)] = _FUSION.method
    lexical_k: Annotated[int, Field(ge=0)] = _FUSION.lexical_k  # BM25 hits, and their place, of fusion `insert`
    vector_weight: Annotated[float, Field(ge=0)] = 1.0  # of the fusion; 0 switches the leg off
    bm25_weight: Annotated[float, Field(ge=0)] = 1.0
    rrf_k: Annotated[int, Field(ge=0)] = _FUSION.rrf_k  # a hit of rank r counts weight / (rrf_k + r)
    reference_weight: Annotated[float, Field(gt=0, le=1)] = _FUSION.reference_weight  # of reference pages not named
    pages_first: bool = _FUSION.pages_first  # the best hit of every page before a second hit of any
    max_per_page: Annotated[int, Field(ge=0)] = _ENGINE.max_per_page  # hits of one page; 0: any number
    neighbours: Annotated[int, Field(ge=0, le=10)] = _RETRIEVAL.neighbours  # chunks joined to each side of a hit
    spelling: bool = _RETRIEVAL.spelling  # correct words that the index does not hold by those that it holds
    verified: bool = True  # give the answers that people wrote (`raydex answers`)
    # From this cosine on a question may mean the same as one that a person answered
    verified_likeness: Annotated[float, Field(ge=0, le=1)] = SIMILAR
    query_adapter: Path = Path()  # folder of a trained map of the questions' vectors
    embedding_url: Annotated[str, Field(validation_alias=AliasChoices("RAYDEX_EMBEDDING_URL", "OPENAI_BASE_URL"))] = ""
    embedding_key: Annotated[
        str, Field(validation_alias=AliasChoices("RAYDEX_EMBEDDING_KEY", "OPENAI_API_KEY"), repr=False)
    ] = ""
    embedding_device: str = "cpu"  # "cuda" where the replicas have a GPU
    embedding_threads: Annotated[int, Field(ge=0)] = 0  # of the embedding model; 0: as many as it likes

    agents: list[AgentSettings] = []  # language models, in the order in which they stand in for each other
    llm_url: str = ""  # with llm_model and llm_key: a single agent named "llm"
    llm_model: str = ""
    llm_key: Annotated[str, Field(repr=False)] = ""
    llm_context_window: Annotated[int, Field(ge=256)] = _LLM.context_window
    no_llm: bool = False  # quote, whatever models are set
    mode: Annotated[str, _one_of([mode for mode in (*MODES, NO_TEXT) if mode != CONTEXT_ONLY])] = _ENGINE.mode
    structured: bool = False  # refine and compact skip steps that do not satisfy the question
    num_children: Annotated[int, Field(ge=0)] = 0  # of a node of tree_summarize; 0: as many as the window holds
    # How long a model may read a prompt with passages, unless its agent says it; 0: any time
    context_seconds: Annotated[float, Field(ge=0)] = _LLM.context_seconds
    llm_calls_at_once: Annotated[int, Field(ge=1)] = AT_ONCE  # of one question
    prompts: dict[str, str] = {}  # templates that replace the built-in ones, by name
    prompt_variables: dict[str, str] = {}  # values of the templates' own variables
    prompt_question: Annotated[str, _one_of(QUESTIONS)] = _STYLE.question  # place of the question: by the passages
    prompt_rules: Annotated[str, _one_of(RULES)] = _STYLE.rules
    prompt_example: bool = _STYLE.example  # show one question with its answer
    prompt_reminder: bool = _STYLE.reminder  # say again at the end how to cite
    prompt_marks: Annotated[str, _one_of(MARKS)] = _STYLE.marks  # what stands around passages
    passage_words: Annotated[int, Field(ge=0)] = _STYLE.words  # of a passage that a model reads; 0: all

    num_queries: Annotated[int, Field(ge=1, le=10)] = rewriting.NUM_QUERIES  # above 1 a model writes the others
    hyde: bool = rewriting.HYDE  # a model imagines a passage that answers, and its vector is searched for too
    rewrite_agent: str = ""  # whose model rewrites and condenses; "": the first
    rewrite_timeout_s: Annotated[float, Field(gt=0)] = rewriting.TIMEOUT_S

    reranker: Annotated[str, _one_of((NONE, *RERANKERS))] = NONE
    reranker_model: str = _RERANKER.model  # folder or hub name; the endpoint's model; the agent whose model picks
    reranker_url: str = _RERANKER.url
    reranker_key: Annotated[str, Field(repr=False)] = _RERANKER.key
    reranker_device: str = _RERANKER.device
    reranker_threshold: Annotated[float, Field(ge=0, le=1)] | None = _RERANKER.threshold  # None: the classifier's own
    depth: Annotated[int, Field(ge=1, le=200)] = _ENGINE.depth  # hits that the reranker gets
    longest_question: Annotated[int, Field(ge=100, le=100_000)] = _ENGINE.longest_question  # characters

    router: Literal["fixed", "rules", "classifier"] = "fixed"
    router_default: str = ""  # the agent if no rule matches; "": the first
    router_rules: list[RuleSettings] = []
    router_model: Path = Path()  # folder of a trained classifier
    # The easy agent gets a question from this probability on that it will do; None: the classifier's own
    router_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    router_easy: str = ""
    router_hard: str = ""

    @model_validator(mode="after")
    def _check_names(self) -> "AnswerSettings":
        names = [agent.name for agent in all_agents(self)]
        if len(set(names)) < len(names):
            raise ValueError(f"agents share a name: {', '.join(names)}")
        for setting, name in self._agent_names():
            if name not in (*names, EXTRACTIVE):
                raise ValueError(f"{setting} names the agent {name!r}; there are: {', '.join([*names, EXTRACTIVE])}")
        return self

    @model_validator(mode="after")
    def _check_needs(self) -> "AnswerSettings":
        needs = {("reranker", name): [f"reranker_{need}" for need in cls.needs] for name, cls in RERANKERS.items()}
        needs["router", "rules"] = ["router_rules"]
        needs["router", "classifier"] = ["router_model", "router_easy", "router_hard"]
        for (setting, choice), needed in needs.items():
            missing = [name for name in needed if getattr(self, name) in ("", [], Path())]
            if getattr(self, setting) == choice and missing:
                raise ValueError(f"{setting} {choice!r} needs {' and '.join(missing)}")
        if not all_agents(self) and (self.num_queries > 1 or self.hyde or self.reranker == "llm"):
            raise ValueError(
                "num_queries above 1, hyde and reranker 'llm' need a language model: set agents or llm_model"
            )
        return self

    def _agent_names(self) -> Iterator[tuple[str, str]]:
        """Yield every setting that names an agent, with the name."""
        for setting in ("router_default", "router_easy", "router_hard", "rewrite_agent"):
            if name := getattr(self, setting):
                yield setting, name
        yield from (("router_rules", rule.agent) for rule in self.router_rules)
        if self.reranker == "llm" and self.reranker_model:
            yield "reranker_model", self.reranker_model


def describe_errors(error: ValidationError) -> str:
    """Describe what is wrong, setting by setting, without values, since some are keys."""
    errors = [(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in error.errors()]
    return "; ".join(f"setting {where}: {what}" if where else what for where, what in errors)


def all_agents(settings: AnswerSettings) -> list[AgentSettings]:
    """Return the agents, none with `no_llm`; the shortcut `llm_model` comes first, as "llm".

    `context_seconds` holds for those that do not set it themselves.
    """
    common = {"context_seconds": settings.context_seconds}
    agents = [] if settings.no_llm else _agents(settings)
    return [agent if agent.model_fields_set & common.keys() else agent.model_copy(update=common) for agent in agents]


def _agents(settings: AnswerSettings) -> list[AgentSettings]:
    if not settings.llm_model:
        return settings.agents
    short = {"name": "llm", "model": settings.llm_model, "api_key": settings.llm_key}
    window = {"context_window": settings.llm_context_window}
    url = {"base_url": settings.llm_url} if settings.llm_url else {}
    return [AgentSettings.model_validate({**short, **window, **url}), *settings.agents]
