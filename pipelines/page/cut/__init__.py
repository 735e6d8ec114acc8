"""Cutting: the sections of a page become chunks that the embedding model reads whole."""
