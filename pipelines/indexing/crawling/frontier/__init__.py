"""Decides which URLs of a site to visit, in which order, and how many."""
