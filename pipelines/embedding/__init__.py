"""Embedding models: texts become vectors.

embedder chooses the model and engine (torch, onnx, openai, hashed words), tokens counts the tokens of a text, adapter
maps the vectors of questions.
"""

from pipelines.embedding.embedder import Embedder, EmbeddingFailed, load_embedder
from pipelines.embedding.tokens import ModelNotFound, ModelUnsupported, TokenCounter, load_tokenizer

__all__ = [
    "Embedder",
    "EmbeddingFailed",
    "ModelNotFound",
    "ModelUnsupported",
    "TokenCounter",
    "load_embedder",
    "load_tokenizer",
]
