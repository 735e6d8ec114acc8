"""Insights: what recorded questions show about the documentation."""
