"""MediaWiki: links to edit a section."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator("MediaWiki", noise="mw-editsection")
