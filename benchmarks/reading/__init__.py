"""Compares the visible content of documentation pages with Raydex's reading of them."""
