"""Indexes documentation, answers questions from it, and measures and improves the answers."""
