"""Declares the settings of each step, one group per step; defaults come from the steps' own classes."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pipelines.answering.conversation import rewriting
from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking import RERANKERS, RerankerOptions
from pipelines.answering.retrieval.legs import BM25, VECTOR
from pipelines.answering.retrieval.ranking.fusion import FUSIONS
from pipelines.answering.retrieval.ranking.texts import RANKINGS
from pipelines.answering.retrieval.search import RetrievalSettings
from pipelines.answering.routing.rules import Rule
from pipelines.answering.settings.agents import AUTO, FormSetting
from pipelines.answering.settings.names import SettingsGroup
from pipelines.answering.synthesis.modes import CONTEXT_ONLY, MODES, NO_TEXT
from pipelines.answering.verified.similarity import SIMILAR
from pipelines.llm.client import LLMSettings
from pipelines.llm.session import AT_ONCE

NONE = "none"
MOST_HITS = 100

_MODEL, _RETRIEVAL, _ENGINE = LLMSettings(), RetrievalSettings(), EngineSettings()
_FUSION = _RETRIEVAL.fusion


def _one_of(choices: Collection[str]) -> AfterValidator:
    """Return a validator that a value is one of `choices`."""

    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is not one of the choices: {', '.join(choices)}")
        return value

    return AfterValidator(check)


class RetrievalChoices(SettingsGroup):
    """How hits for a question are found."""

    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = _ENGINE.k  # hits for an answer, unless the question sets k
    leg_depth: Annotated[int, Field(ge=1, le=1_000)] = (
        _RETRIEVAL.leg_depth
    )  # hits that each leg contributes to the fusion
    patience_s: Annotated[float, Field(ge=0)] = _RETRIEVAL.patience_s  # longest wait for BM25 or a new index
    vector_weight: Annotated[float, Field(ge=0)] = _FUSION.weights.get(VECTOR, 1.0)  # 0 switches the leg off
    bm25_weight: Annotated[float, Field(ge=0)] = _FUSION.weights.get(BM25, 1.0)
    rrf_k: Annotated[int, Field(ge=0)] = _FUSION.rrf_k  # a hit of rank r counts weight / (rrf_k + r)
    reference_weight: Annotated[float, Field(gt=0, le=1)] = (
        _FUSION.reference_weight
    )  # for reference pages that the question doesn't name
    pages_first: bool = _FUSION.pages_first  # the best hit of every page comes before a second hit of any
    ranking: Annotated[str, _one_of(RANKINGS)] = _RETRIEVAL.ranking  # by the hits' texts, or in the fused order
    max_per_page: Annotated[int, Field(ge=0)] = _ENGINE.max_per_page  # hits per page; 0: no limit
    neighbours: Annotated[int, Field(ge=0, le=10)] = _RETRIEVAL.neighbours  # chunks joined to each side of a hit
    spelling: bool = _RETRIEVAL.spelling  # correct words missing from the index to similar ones in it
    rounds: Annotated[int, Field(ge=1, le=20)] = _ENGINE.rounds  # rounds of searches by a model in mode "research"
    rounds_s: Annotated[float, Field(gt=0)] = _ENGINE.rounds_s  # time limit for all rounds together
    query_adapter: Path = Path()  # folder of a trained adapter for question vectors


class FusionSettings(SettingsGroup):
    """How the hits of the legs are merged into one list; with `retrieval.ranking` "fused", that order is final."""

    kind: Annotated[str, _one_of(FUSIONS)] = (
        _FUSION.kind
    )  # reciprocal rank fusion, scaled scores, or inserted BM25 hits
    lexical_k: Annotated[int, Field(ge=0)] = (
        _FUSION.lexical_k
    )  # for "insert": the number of BM25 hits, and their position


class EmbeddingSettings(SettingsGroup):
    """Where the embedding model runs."""

    url: str = ""
    key: Annotated[str, Field(repr=False)] = ""
    device: str = "cpu"  # "cuda" where the replicas have a GPU
    threads: Annotated[int, Field(ge=0)] = 0  # threads of the embedding model; 0: its own choice


class VerifiedSettings(SettingsGroup):
    """The answers that people wrote (`raydex answers`)."""

    enabled: bool = True
    # The least cosine at which a question may mean the same as one that a person answered
    similarity: Annotated[float, Field(ge=0, le=1)] = SIMILAR


class ModelSettings(SettingsGroup):
    """A single agent, named "llm", and common settings of all agents' language models."""

    url: str = ""
    model: str = ""
    key: Annotated[str, Field(repr=False)] = ""
    context_window: Annotated[int, Field(ge=256)] = _MODEL.context_window
    off: bool = False  # always quote, even if models are set
    form: FormSetting = AUTO  # of answers, for agents that don't set it
    # How long a model may read a prompt with passages, for agents that don't set it; 0: no limit
    context_seconds: Annotated[float, Field(ge=0)] = _MODEL.context_seconds
    calls_at_once: Annotated[int, Field(ge=1)] = AT_ONCE  # for one question


class SynthesisSettings(SettingsGroup):
    """How an answer is made from the hits."""

    mode: Annotated[str, _one_of([mode for mode in (*MODES, NO_TEXT) if mode != CONTEXT_ONLY])] = _ENGINE.mode
    structured: bool = False  # refine and compact skip replies that do not satisfy the question
    num_children: Annotated[int, Field(ge=0)] = (
        0  # children per node of tree_summarize; 0: as many as fit into the window
    )


class PromptSettings(SettingsGroup):
    """The prompts for the language models."""

    templates: dict[str, str] = Field(default_factory=dict)  # replacements for built-in templates, by name
    variables: dict[str, str] = Field(default_factory=dict)  # values of the templates' own variables


class RewritingSettings(SettingsGroup):
    """Which additional queries are searched."""

    # Further queries that a model writes, each searched by every leg; 0: none
    num_queries: Annotated[int, Field(ge=0, le=10)] = rewriting.NUM_QUERIES
    hyde: bool = rewriting.HYDE  # a model writes a hypothetical passage that answers; its vector is searched too
    agent: str = ""  # the agent whose model rewrites and condenses; "": the first
    timeout_s: Annotated[float, Field(gt=0)] = rewriting.TIMEOUT_S


class RerankerSettings(RerankerOptions, SettingsGroup):
    """How the hits are reranked."""

    kind: Annotated[str, _one_of((NONE, *RERANKERS))] = NONE
    depth: Annotated[int, Field(ge=1, le=200)] = _ENGINE.depth  # hits that the reranker gets


class RouterSettings(SettingsGroup):
    """Which agent answers a question."""

    kind: Literal["fixed", "rules", "classifier"] = "fixed"
    default: str = ""  # the agent if no rule matches; "": the first
    rules: tuple[Rule, ...] = ()
    model: Path = Path()  # folder of a trained classifier
    # The least probability of sufficing at which the easy agent gets a question; None: the classifier's own
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    easy: str = ""
    hard: str = ""
