"""Reading: turns the bytes of a page into sections of text, by its format.

`read.read_page` reads one page, `read.PageReader` does so in a process that may be killed. Parsers are slow to import,
so nothing is exported here.
"""
