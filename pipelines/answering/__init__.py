"""Answering: a question becomes an answer with checked citations.

engine composes the steps and chain the agents; settings declares every setting and factory makes the steps that they
describe. Each step has a folder: routing, retrieval, reranking, synthesis, grounding, sanitizing; rewriting is a file.
"""

from pipelines.answering.engine import EngineSettings, QueryEngine, Question
from pipelines.answering.retrieval.fusion import Fusion
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.synthesis.base import Synthesizer
from pipelines.answering.synthesis.modes import make_synthesizer

__all__ = [
    "EngineSettings",
    "Fusion",
    "QueryEngine",
    "Question",
    "RetrievalSettings",
    "Retriever",
    "Search",
    "Synthesizer",
    "make_synthesizer",
]
