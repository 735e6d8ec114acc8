"""Grounding: whether the hits support an answer, and each claim in it.

`answerable` decides before a model is asked, `support` checks each claim of its answer, and `confidence` rates the
whole.
"""
