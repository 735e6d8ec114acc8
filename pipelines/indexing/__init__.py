"""Indexing: pages become an index.

`run.reindex` does all of it: crawl or read, cut, embed, store (`build`, a Ray Data chain), publish. Nothing is exported
here, because the steps import parsers, Ray and models.
"""
