"""Announced changes of pages: the routes that take them, and the runs that index them."""
