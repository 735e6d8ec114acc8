"""Reads and cuts pages of a run (`page_cutter`); tells tags and versions from URLs (`url_rules`).

`pipelines.page.cut` cuts. The splitter is slow to import, so nothing is exported here.
"""
