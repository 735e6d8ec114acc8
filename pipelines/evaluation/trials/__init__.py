"""Trials: how well a language model suits a collection, and which form its answers should take."""
