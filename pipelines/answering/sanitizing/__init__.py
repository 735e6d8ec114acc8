"""Sanitizing: limits the text that a model may see, and the text of its answer that may leave.

`stream` composes the filters of an answer: invisible characters, and Markdown with its links.
"""
