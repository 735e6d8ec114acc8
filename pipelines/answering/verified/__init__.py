"""Verified answers: what a person wrote is given to questions that mean the same."""
