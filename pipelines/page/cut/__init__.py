"""Cuts the sections of a page into chunks that fit into the embedding model's input."""
