"""YARD: the source of a method beside its text, the tree of its ancestors."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator("YARD", noise="source_code summary_toggle inheritanceTree")
