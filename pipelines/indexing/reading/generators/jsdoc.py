"""JSDoc: the places of definitions in the source."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator("JSDoc", marks="tag-source", hidden="dt[class=tag-source], dd[class=tag-source]")
