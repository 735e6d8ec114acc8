"""Synthesis: turns hits into the text of an answer.

For language models, `modes` has the synthesis modes, `prompts` their texts, and `packing` fits passages into the
context window. `extractive` quotes without a model: `passages` splits sections, `candidates` ranks the passages, and
`quotes` writes them.
"""
