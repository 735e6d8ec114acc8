"""Trials: how good a language model is for a collection, and how its answers should come about."""
