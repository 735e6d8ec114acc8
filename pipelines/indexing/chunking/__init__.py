"""Reads and cuts the pages of a run (`page_cutter`); derives tags and versions by URL (`url_rules`).

The actual cutting is in `pipelines.page.cut`. The splitter is slow to import, so this package exports nothing.
"""
