"""Synthesis: hits become the text of an answer.

modes has the synthesis modes of language models, prompts their texts, packing fits passages to the window; extractive
quotes without a model: passages cuts sections, candidates ranks the passages, quotes writes them.
"""
