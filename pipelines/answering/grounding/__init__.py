"""Grounding: is there support for an answer, and for each claim in it?

answerable decides before a model is asked, citations checks the answer after.
"""
