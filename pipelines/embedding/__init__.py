"""Embedding models: texts become vectors.

load chooses the engine: torch, onnx, openai or hashed words. embedder is what
they share, tokens counts the tokens of a text, adapter maps the vectors of questions.
"""

from pipelines.embedding.embedder import Embedder, EmbeddingFailed
from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.embedding.tokens import ModelNotFound, ModelUnsupported, TokenCounter
