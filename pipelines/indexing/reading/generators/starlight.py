"""Starlight, by Astro: listings of Expressive Code."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator("Starlight", code_lines="ec-line")
