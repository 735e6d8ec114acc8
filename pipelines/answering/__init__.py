"""Answering: a question becomes an answer with checked citations.

The work has three stages. `conversation` interprets the question and returns a Reading; `answerers` finds the material
for the answer and returns a Draft; `writing` writes the answer. `engine` composes the stages, `settings` declares every
setting, and `factory` makes the steps from the settings.
"""

from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import EngineSettings, Question
from pipelines.answering.retrieval.fusion_retriever import FusionRetriever
from pipelines.answering.retrieval.interface import Leg
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.routing.classifier import CannotLearn, TextClassifier
from pipelines.answering.routing.router import ClassifierRouter, FixedRouter
from pipelines.answering.settings import AnswerSettings
from pipelines.answering.synthesis.base import Synthesizer, Task
from pipelines.answering.synthesis.modes import make_synthesizer
from pipelines.answering.writing.agents import LLMAgent
