"""Drives a headless Chromium over its DevTools protocol: opens pages, runs scripts in them, takes screenshots.

    with Browser() as browser:
        browser.open("http://127.0.0.1:8000/", width=400, dark=True)
        browser.evaluate("document.title")

`events` are what the browser reported: dialogs, log entries, requests.
"""

import asyncio
import base64
import itertools
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio")
START_S, ANSWER_S = 60.0, 60.0


class Browser:
    """One page of one browser."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        assert CHROMIUM
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        flags = [*FLAGS, "--remote-debugging-port=0", f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen([CHROMIUM, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait(self._connect())
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._session.close())
        self._loop.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def open(self, url: str, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Load a page and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page; it may be a promise."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, script: str, seconds: float = ANSWER_S) -> None:
        """Wait until an expression in the page is true."""
        until = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < until, f"it did not become true: {script}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        """Write a PNG of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def named(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of the events with these names."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; events that come meanwhile are kept."""
        return self._wait(self._call(method, params))

    async def _connect(self) -> None:
        told, until = Path(self._folder.name) / "DevToolsActivePort", time.monotonic() + START_S
        while not told.exists() or not re.match(r"\d+\n", told.read_text()):
            assert time.monotonic() < until and self._process.poll() is None, "chromium did not start"
            await asyncio.sleep(0.05)
        port = told.read_text().split()[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as reply:
            page = next(target for target in await reply.json() if target["type"] == "page")
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=ANSWER_S)
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            if "method" in message:
                await self._note(message)

    async def _note(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if event["method"] == "Page.javascriptDialogOpening":  # it would stop the page
            answer = {"id": next(self._numbers), "method": "Page.handleJavaScriptDialog", "params": {"accept": False}}
            await self._socket.send_json(answer)

    def _wait(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)
