"""Reads what insights need from the database: anonymous questions, pages and sections of an index."""
