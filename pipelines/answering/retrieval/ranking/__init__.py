"""Ranking: what the legs found becomes one list, the best hit first."""
