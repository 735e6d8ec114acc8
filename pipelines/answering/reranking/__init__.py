"""Reranking: a model reads question and hits together and reorders the hits.

A new reranker needs a class in a separate file and a line in RERANKERS, under its name in the setting `reranker`.
"""

from collections.abc import Callable, Mapping

from pipelines.answering.reranking.base import Reranker, RerankerOptions, RerankFailed
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.reranking.http import HTTPReranker
from pipelines.answering.reranking.tag import TagReranker

# The required option of each reranker, and how to make it.
RERANKERS: Mapping[str, tuple[str, Callable[[RerankerOptions], Reranker]]] = {
    "cross-encoder": ("model", lambda o: CrossEncoderReranker(o.model, device=o.device)),
    "endpoint": ("url", lambda o: HTTPReranker(o.url, o.model, api_key=o.key)),
    "tag": ("model", lambda o: TagReranker.load(o.model, o.threshold, o.device)),
}
