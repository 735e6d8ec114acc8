"""Answering: a question becomes an answer with checked citations.

Three stages with values between them: conversation reads what is meant (Reading), answerers find what to answer from
(Draft), writing writes the answer. engine composes them; settings declares every setting, and factory makes the steps
that they describe.
"""

from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import EngineSettings, Question
from pipelines.answering.retrieval.fusion_retriever import FusionRetriever
from pipelines.answering.retrieval.leg import Leg
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.routing.classifier import CannotLearn, TextClassifier
from pipelines.answering.routing.router import ClassifierRouter, FixedRouter
from pipelines.answering.settings import AnswerSettings
from pipelines.answering.synthesis.base import Synthesizer, Task
from pipelines.answering.synthesis.modes import make_synthesizer
from pipelines.answering.writing.agents import LLMAgent
