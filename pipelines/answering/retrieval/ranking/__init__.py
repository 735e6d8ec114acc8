"""Ranking: the hits of all legs become one list, the best hit first."""
