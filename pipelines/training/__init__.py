"""Training: questions become better models, each judged before it may be used.

Each kind of model has a file (adapter, embedder, cross_encoder, router, tags). card holds the gate, mining and folds
choose what to learn from and what to judge by, ranking and classification score the result.
"""

from pipelines.training.adapter import AdapterPlan, gather_adapter_data, train_adapter
from pipelines.training.card import GateVerdict, ModelFolder, TrainingResult
from pipelines.training.cross_encoder import (
    CrossEncoderPlan,
    RerankerSelection,
    gather_reranker_data,
    train_reranker,
)
from pipelines.training.embedder import EmbedderPlan, EmbedderSelection, gather_embedder_data, train_embedder
from pipelines.training.mining import open_collection
from pipelines.training.router import RouterPlan, train_router
from pipelines.training.tags import TagPlan, gather_tag_hits, train_tags

__all__ = [
    "AdapterPlan",
    "CrossEncoderPlan",
    "EmbedderPlan",
    "EmbedderSelection",
    "GateVerdict",
    "ModelFolder",
    "RerankerSelection",
    "RouterPlan",
    "TagPlan",
    "TrainingResult",
    "gather_adapter_data",
    "gather_embedder_data",
    "gather_reranker_data",
    "gather_tag_hits",
    "open_collection",
    "train_adapter",
    "train_embedder",
    "train_reranker",
    "train_router",
    "train_tags",
]
