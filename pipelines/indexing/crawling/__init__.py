"""Crawling: fetches the pages of a site politely and records them in a ledger.

`crawl.crawl` runs one host in a separate process; only that process imports Scrapy and Twisted.
"""
