"""robots.txt as RFC 9309 wants it: what may be fetched, how fast, and where the sitemaps are.

Rules are parsed by protego. Knows the fetcher only as a callable.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego

from pipelines.indexing.crawling.reply import Reply, redirect_target
from pipelines.indexing.crawling.scope import origin, site

MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
MAX_BYTES = 512 * 1024  # RFC 9309, 2.5: at least 500 kibibytes are read


@dataclass(frozen=True, slots=True)
class Rules:
    """One origin's rules. `unreachable` says why everything is forbidden for now, "" if it is not."""

    parsed: Protego
    unreachable: str = ""

    def allow(self, url: str, agent: str) -> bool:
        return not self.unreachable and self.parsed.can_fetch(url, agent)

    def crawl_delay(self, agent: str) -> float:
        """Seconds between requests that robots.txt asks for, 0 if none."""
        return self.parsed.crawl_delay(agent) or 0.0

    @property
    def sitemaps(self) -> list[str]:
        return list(self.parsed.sitemaps)


class Robots:
    """The rules of every origin of a crawl, each fetched once; `agent` is the product token they address."""

    def __init__(self, fetch: Callable[[str], Awaitable[Reply]], user_agent: str):
        self._fetch = fetch
        self.agent = user_agent.split("/", 1)[0].strip()
        self._rules: dict[str, asyncio.Task[Rules]] = {}

    async def rules(self, url: str) -> Rules:
        """The rules for the origin of `url`."""
        base = origin(url)
        if base not in self._rules:
            self._rules[base] = asyncio.create_task(self._load(f"{base}/robots.txt"))
        return await self._rules[base]

    async def _load(self, url: str) -> Rules:
        reply = await self._fetch(url)
        for _ in range(MAX_REDIRECTS):
            target = redirect_target(reply)
            if target is None or site(target) != site(url):
                break
            reply = await self._fetch(target)
        return parse(reply)


def parse(reply: Reply) -> Rules:
    """Rules from the reply to robots.txt: 5xx and silence forbid all, anything but 2xx allows all."""
    if reply.status is None:
        return Rules(Protego.parse(""), f"{reply.url} could not be fetched ({reply.error})")
    if reply.status >= 500:
        return Rules(Protego.parse(""), f"{reply.url} answered {reply.status}")
    text = reply.body[:MAX_BYTES].decode("utf-8", "replace") if reply.status < 300 else ""
    return Rules(Protego.parse(text.removeprefix("\ufeff")))
