"""Insights: what the recorded questions teach about the documentation."""
