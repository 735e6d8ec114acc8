"""Opens pages in Chromium and asks each what a reader sees; keeps the answers, which cost most of the time."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("shown.js")
BINARY = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio")
AT_ONCE, LOAD_S = 3, 30.0


class Chromium:
    """Renders pages; what it found of a file is kept in `cache`, and found again while file and script are the same."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.script = SCRIPT.read_text("utf-8")

    def shown(self, pages: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
        """Return what a reader sees at each URL of `pages`, whose files are these; `error` where none could be had."""
        keys = {url: self._key(file) for url, file in pages.items()}
        todo = [url for url, key in keys.items() if not (self.cache / key).exists()]
        if todo:
            self.cache.mkdir(parents=True, exist_ok=True)
            asyncio.run(self._render(todo, keys))
        return {url: json.loads((self.cache / key).read_text("utf-8")) for url, key in keys.items()}

    def _key(self, file: Path) -> str:
        known = hashlib.sha256(self.script.encode() + str(file).encode() + file.read_bytes())
        return known.hexdigest()[:24] + ".json"

    async def _render(self, urls: list[str], keys: Mapping[str, str]) -> None:
        from playwright.async_api import async_playwright

        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=BINARY, args=FLAGS)
            context = await browser.new_context(viewport={"width": 1280, "height": 900})
            await context.route(lambda url: not url.startswith("http://127.0.0.1"), lambda route: route.abort())
            queue = list(reversed(urls))

            async def work() -> None:
                while queue:
                    url = queue.pop()
                    found = await self._ask(context, url)
                    found["base"] = "/".join(url.split("/")[:3])
                    (self.cache / keys[url]).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")

            await asyncio.gather(*(work() for _ in range(AT_ONCE)))
            await browser.close()

    async def _ask(self, context: Any, url: str) -> dict[str, Any]:
        from playwright.async_api import Error

        page = await context.new_page()
        try:
            await page.goto(url, wait_until="load", timeout=LOAD_S * 1000)
            await page.wait_for_timeout(100)
            found: dict[str, Any] = await asyncio.wait_for(page.evaluate(self.script), LOAD_S)
            return found
        except (Error, TimeoutError) as error:
            return {"error": str(error).splitlines()[0][:200]}
        finally:
            await page.close()
