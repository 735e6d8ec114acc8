"""Sanitizing: what a model may see of a text, and what may leave of its answer.

stream composes the filters of an answer: invisible characters, Markdown and its links.
"""
