"""Opens pages in Chromium, extracts their visible content, and caches it, because rendering takes most of the time."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

SCRIPT = Path(__file__).with_name("shown.js")
BINARY = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-headless-shell"))), None)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio"),
    *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--blink-settings=imagesEnabled=false"),
)
AT_ONCE, START_S, LOAD_S, SETTLE_MS = 3, 120.0, 60.0, 50


class Chromium:
    """Renders pages in one browser, which starts at the first page that is not cached.

    A page's content is stored in `cache`, and reused while the file and the script are unchanged.
    """

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.script = SCRIPT.read_text("utf-8")
        self._loop = asyncio.new_event_loop()
        self._playwright: Any = None
        self._pages: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        if self._playwright:
            self._loop.run_until_complete(self._playwright.stop())
        self._loop.close()

    def shown(self, pages: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
        """Return the visible content at each URL of `pages`, given their files, or `error` if there is none."""
        keys = {url: self._key(file) for url, file in pages.items()}
        todo = [url for url, key in keys.items() if not (self.cache / key).exists()]
        if todo:
            self.cache.mkdir(parents=True, exist_ok=True)
            self._loop.run_until_complete(self._render(todo, keys))
        return {url: json.loads((self.cache / key).read_text("utf-8")) for url, key in keys.items()}

    def _key(self, file: Path) -> str:
        known = hashlib.sha256(self.script.encode() + str(file).encode() + file.read_bytes())
        return known.hexdigest()[:24] + ".json"

    async def _render(self, urls: list[str], keys: Mapping[str, str]) -> None:
        if not self._pages:
            await self._start()
        queue = list(reversed(urls))

        async def work(page: Any) -> None:
            while queue:
                url = queue.pop()
                found = await self._ask(page, url)
                found["base"] = "/".join(url.split("/")[:3])
                (self.cache / keys[url]).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")

        await asyncio.gather(*map(work, self._pages))

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        browser = await self._playwright.chromium.launch(executable_path=BINARY, args=FLAGS, timeout=START_S * 1000)
        context = await browser.new_context(viewport={"width": 1280, "height": 900})
        self._pages = [await context.new_page() for _ in range(AT_ONCE)]

    async def _ask(self, page: Any, url: str) -> dict[str, Any]:
        from playwright.async_api import Error

        try:
            await page.goto(url, wait_until="load", timeout=LOAD_S * 1000)
            await page.wait_for_timeout(SETTLE_MS)
            found: dict[str, Any] = await asyncio.wait_for(page.evaluate(self.script), LOAD_S)
            return found if page.url.partition("#")[0] == url else {"error": f"forwards to {page.url}"}
        except (Error, TimeoutError) as error:
            return {"error": str(error).splitlines()[0][:200] if str(error) else f"no answer in {LOAD_S:.0f} s"}
