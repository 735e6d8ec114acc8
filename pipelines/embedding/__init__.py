"""Embedding models: text becomes vectors.

load chooses the engine: torch, onnx, openai or hashed words. embedder is their shared interface, tokens counts tokens,
adapter maps the vectors of questions.
"""

from pipelines.embedding.embedder import Embedder, EmbeddingFailed
from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.embedding.tokens import ModelNotFound, ModelUnsupported, TokenCounter
