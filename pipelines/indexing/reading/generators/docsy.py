"""Docsy, a theme of Hugo."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator("Docsy", noise="td-heading-self-link td-page-meta")
