"""The settings of each step, one group a step, with the defaults of what the steps are made with."""

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
    """Return the check that a value is one of `choices`."""

    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is none of the choices: {', '.join(choices)}")
        return value

    return AfterValidator(check)


class RetrievalChoices(SettingsGroup):
    """What is found for a question."""

    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = _ENGINE.k  # hits for an answer, if the question names no number
    leg_depth: Annotated[int, Field(ge=1, le=1_000)] = _RETRIEVAL.leg_depth  # hits that each leg brings to the fusion
    patience_s: Annotated[float, Field(ge=0)] = _RETRIEVAL.patience_s  # a question waits for BM25 or a new index
    vector_weight: Annotated[float, Field(ge=0)] = _FUSION.weights.get(VECTOR, 1.0)  # 0 switches the leg off
    bm25_weight: Annotated[float, Field(ge=0)] = _FUSION.weights.get(BM25, 1.0)
    rrf_k: Annotated[int, Field(ge=0)] = _FUSION.rrf_k  # a hit of rank r counts weight / (rrf_k + r)
    reference_weight: Annotated[float, Field(gt=0, le=1)] = _FUSION.reference_weight  # of reference pages not named
    pages_first: bool = _FUSION.pages_first  # the best hit of every page before a second hit of any
    ranking: Annotated[str, _one_of(RANKINGS)] = _RETRIEVAL.ranking  # by the hits' texts, or as they were fused
    max_per_page: Annotated[int, Field(ge=0)] = _ENGINE.max_per_page  # hits of one page; 0: any number
    neighbours: Annotated[int, Field(ge=0, le=10)] = _RETRIEVAL.neighbours  # chunks joined to each side of a hit
    spelling: bool = _RETRIEVAL.spelling  # correct words that the index does not hold by those that it holds
    query_adapter: Path = Path()  # folder of a trained map of the questions' vectors


class FusionSettings(SettingsGroup):
    """How what the legs find becomes one list. Its order is final with `retrieval.ranking` "fused"."""

    kind: Annotated[str, _one_of(FUSIONS)] = _FUSION.kind  # reciprocal ranks, scaled scores, or BM25 hits inserted
    lexical_k: Annotated[int, Field(ge=0)] = _FUSION.lexical_k  # BM25 hits, and their place, of "insert"


class EmbeddingSettings(SettingsGroup):
    """Where the embedding model runs."""

    url: str = ""
    key: Annotated[str, Field(repr=False)] = ""
    device: str = "cpu"  # "cuda" where the replicas have a GPU
    threads: Annotated[int, Field(ge=0)] = 0  # of the embedding model; 0: as many as it likes


class VerifiedSettings(SettingsGroup):
    """The answers that people wrote (`raydex answers`)."""

    enabled: bool = True
    # From this cosine on a question may mean the same as one that a person answered
    similarity: Annotated[float, Field(ge=0, le=1)] = SIMILAR


class ModelSettings(SettingsGroup):
    """A single agent, named "llm", and what holds for the language models of all agents."""

    url: str = ""
    model: str = ""
    key: Annotated[str, Field(repr=False)] = ""
    context_window: Annotated[int, Field(ge=256)] = _MODEL.context_window
    off: bool = False  # quote, whatever models are set
    form: FormSetting = AUTO  # of answers, unless its agent says it
    # How long a model may read a prompt with passages, unless its agent says it; 0: any time
    context_seconds: Annotated[float, Field(ge=0)] = _MODEL.context_seconds
    calls_at_once: Annotated[int, Field(ge=1)] = AT_ONCE  # of one question


class SynthesisSettings(SettingsGroup):
    """How an answer is made from what was found."""

    mode: Annotated[str, _one_of([mode for mode in (*MODES, NO_TEXT) if mode != CONTEXT_ONLY])] = _ENGINE.mode
    structured: bool = False  # refine and compact skip steps that do not satisfy the question
    num_children: Annotated[int, Field(ge=0)] = 0  # of a node of tree_summarize; 0: as many as the window holds


class PromptSettings(SettingsGroup):
    """What a model is told."""

    templates: dict[str, str] = Field(default_factory=dict)  # that replace the built-in ones, by name
    variables: dict[str, str] = Field(default_factory=dict)  # values of the templates' own variables


class RewritingSettings(SettingsGroup):
    """What is searched for beside the question itself."""

    # Further queries that a model writes, each searched for by every leg; 0: none
    num_queries: Annotated[int, Field(ge=0, le=10)] = rewriting.NUM_QUERIES
    hyde: bool = rewriting.HYDE  # a model imagines a passage that answers, and its vector is searched for too
    agent: str = ""  # whose model rewrites and condenses; "": the first
    timeout_s: Annotated[float, Field(gt=0)] = rewriting.TIMEOUT_S


class RerankerSettings(RerankerOptions, SettingsGroup):
    """What sorts the hits again."""

    kind: Annotated[str, _one_of((NONE, *RERANKERS))] = NONE
    depth: Annotated[int, Field(ge=1, le=200)] = _ENGINE.depth  # hits that the reranker gets


class RouterSettings(SettingsGroup):
    """Which agent answers a question."""

    kind: Literal["fixed", "rules", "classifier"] = "fixed"
    default: str = ""  # the agent if no rule matches; "": the first
    rules: tuple[Rule, ...] = ()
    model: Path = Path()  # folder of a trained classifier
    # The easy agent gets a question from this probability on that it will do; None: the classifier's own
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    easy: str = ""
    hard: str = ""
