"""Verified answers: an answer that a person wrote is given to questions that mean the same."""
