"""Crawling: the pages of a site, fetched politely and recorded in a ledger.

`crawl` runs one host in a process of its own. Scrapy and Twisted are imported in that process only.
"""

from pipelines.indexing.crawling.crawl import (
    CrawlFailed,
    CrawlReport,
    CrawlSettings,
    InvalidCrawlSettings,
    PageLedger,
    crawl,
)

__all__ = ["CrawlFailed", "CrawlReport", "CrawlSettings", "InvalidCrawlSettings", "PageLedger", "crawl"]
