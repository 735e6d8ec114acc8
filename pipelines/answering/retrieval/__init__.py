"""Retrieval: hits for a question from the live index of its collection.

live follows the live index, searcher asks every leg, ranking makes one list of theirs; retriever composes them.
search has what is searched for and found, neighbours widens hits.
"""
