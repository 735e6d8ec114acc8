"""Scores answers with a language model, and checks how far that model can be trusted."""
