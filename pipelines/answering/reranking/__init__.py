"""Reranking: a second look at the hits of a question, by a model that reads both.

A new reranker is a class in a file of its own and a line in RERANKERS, by the name of the setting `reranker`.
"""

from collections.abc import Callable, Mapping

from pipelines.answering.reranking.base import Reranker, RerankerOptions, RerankFailed
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.reranking.http import HTTPReranker
from pipelines.answering.reranking.tag import TagReranker

# The option without which it cannot be made, and how it is made.
RERANKERS: Mapping[str, tuple[str, Callable[[RerankerOptions], Reranker]]] = {
    "cross-encoder": ("model", lambda o: CrossEncoderReranker(o.model, device=o.device)),
    "endpoint": ("url", lambda o: HTTPReranker(o.url, o.model, api_key=o.key)),
    "tag": ("model", lambda o: TagReranker.load(o.model, o.threshold, o.device)),
}
