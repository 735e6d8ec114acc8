"""Announced changes of pages: the routes that accept them, and the runs that index them."""
