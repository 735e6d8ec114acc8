"""Retrieval: hits for a question from the live index of its collection.

live follows the live index, search asks every leg, fusion makes one list of theirs and has the weights; retriever
composes them. prior weighs reference pages, neighbours widens hits.
"""
