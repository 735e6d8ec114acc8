"""Embedding models: vectors of chunks and of questions, and the tokens that a model reads."""
