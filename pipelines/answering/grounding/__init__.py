"""Grounding: whether the hits support an answer, and each claim in it.

`answerable` decides before a model is asked; `citations` checks the answer afterwards.
"""
