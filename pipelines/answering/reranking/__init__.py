"""Reranking: a second look at the hits of a question, by a model that reads both.

A new reranker is a class in a file of its own and a line in RERANKERS, by the name of the setting `reranker`.
"""

from collections.abc import Mapping

from pipelines.answering.reranking.base import OptionalReranker, Reranker, RerankerOptions, RerankFailed
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.reranking.http import HTTPReranker

RERANKERS: Mapping[str, type[OptionalReranker]] = {
    "cross-encoder": CrossEncoderReranker,
    "endpoint": HTTPReranker,
}
