"""Parses the bytes of a page into sections of text, according to its format.

`read.read_page` reads one page; `read.PageReader` does so in a process that can be killed. Parsers are slow to import,
so this package exports nothing.
"""
