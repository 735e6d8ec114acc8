"""Reads HTML: finds a page's own content, and converts it to a tree."""
