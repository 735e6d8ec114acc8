"""Retrieval: hits for a question from the live index of its collection.

`live` follows the live index, `searcher` runs every leg, and `ranking` merges their hits into one list; `retriever`
composes them. `search` declares searches and their results, and `neighbours` adds the chunks around a hit.
"""
