"""Synthesis: hits become the text of an answer.

modes has the synthesis modes of language models, prompts their texts, packing fits passages to the window; extractive
quotes without a model what passages finds in a section.
"""
