"""Crawling: fetches the pages of a site politely and records them in a ledger.

`crawl.crawl` runs one host in a process of its own; Scrapy and Twisted are imported in that process only.
"""
