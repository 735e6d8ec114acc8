"""Chunking: cuts the sections of a page into chunks that the embedding model reads whole.

`chunker.Chunker` cuts a document, `page_cutter.PageCutter` reads and cuts a page. The splitter is slow to import, so
nothing is exported here.
"""
