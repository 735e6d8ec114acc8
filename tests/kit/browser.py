"""Drives a headless Chromium with Playwright: opens pages, runs scripts in them, clicks, types.

    with Browser() as browser:
        browser.open("http://127.0.0.1:8000/", width=400, dark=True)
        browser.type("textarea", "How?")
        browser.evaluate("document.title")
        browser.do(lambda page: page.get_by_role("button", name="Ask").click())

Playwright runs in its own thread, so that a test can have an event loop. `events` are the dialogs, log entries and
requests that the browser reported. Selectors reach into open shadow roots.
"""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources, util
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

# The headless shell is the same engine without a browser around it. It needs a third less CPU time for the widget's
# tests.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
# Without the rasterizer, no CPU emulates a GPU, which took an eighth of the time.
FLAGS = "--no-sandbox --disable-gpu --disable-software-rasterizer --disable-dev-shm-usage --no-first-run --mute-audio"
START_S, ANSWER_S = 60.0, 60.0
REPORTED = ("Page.javascriptDialogOpening", "Log.entryAdded", "Network.requestWillBeSent")


def _missing() -> str:
    """Return why no browser can run here, or "" if one can."""
    if util.find_spec("playwright") is None:
        return "the package playwright is not installed: `make install`"
    return "" if CHROMIUM else "no chromium on this machine: `make chromium` (Debian, as root)"


MISSING = _missing()
needs_browser = pytest.mark.skipif(bool(MISSING), reason=MISSING)
Result = TypeVar("Result")


class Browser:
    """One page in one browser."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._altered = False  # whether the page is unusable for later tests
        self._origins = set[str]()  # of the pages shown so far
        self._thread = ThreadPoolExecutor(1, "browser")

    def __enter__(self) -> Self:
        self._run(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop)
        self._thread.shutdown()

    def open(
        self, url: str, width: int = 1200, height: int = 900, dark: bool = False, reduced_motion: bool = False
    ) -> None:
        """Open a URL and wait until the page has loaded."""
        self.emulate(width, height, dark, reduced_motion)
        self.do(lambda page: page.goto(url))

    def emulate(self, width: int = 1200, height: int = 900, dark: bool = False, reduced_motion: bool = False) -> None:
        """Set the page's size, color scheme or preference for reduced motion."""
        motion = "reduce" if reduced_motion else "no-preference"
        self.do(lambda page: page.set_viewport_size({"width": width, "height": height}))
        self.do(lambda page: page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion=motion))

    def accept(self, languages: str) -> None:
        """Set the browser's preferred languages, such as "de-AT,en", until it is renewed."""
        agent = self.evaluate("navigator.userAgent")
        self.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=languages)
        self._altered = True

    def renew(self) -> None:
        """Close all pages except an empty one, and delete their stored data."""
        self._run(self._renew)
        self.events.clear()

    def do(self, work: "Callable[[Page], Result]") -> Result:
        """Call `work` with Playwright's page in the browser's thread, and return its result."""
        return self._run(lambda: work(self._page))

    def click(self, selector: str) -> None:
        self.do(lambda page: page.click(selector))

    def type(self, selector: str, text: str) -> None:
        """Focus an element and type into it, key by key."""
        self.do(lambda page: page.locator(selector).press_sequentially(text))

    def press(self, *keys: str) -> None:
        """Press keys, such as `Control+k` or `ArrowDown`, in the focused element."""
        for key in keys:
            self.do(lambda page, key=key: page.keyboard.press(key))

    def text(self, selector: str) -> str:
        """Return an element's visible text."""
        return self.do(lambda page: page.inner_text(selector))

    def count(self, selector: str) -> int:
        """Return the number of matching elements."""
        return self.do(lambda page: page.locator(selector).count())

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression, which can be a promise. The page's policy does not block it."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, script: str, seconds: float = ANSWER_S) -> None:
        """Wait until a JavaScript expression is true in the page."""
        until = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < until, f"it did not become true: {script}"
            time.sleep(0.05)

    def violations(self, within: str = "document") -> list[str]:
        """Return axe-core's accessibility violations in the page, or in the element that an expression returns."""
        self.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8") + ";0")
        found = self.evaluate(f"axe.run({within}).then(done => done.violations)")
        return [f"{rule['id']}: {node['html']}\n{node['failureSummary']}" for rule in found for node in rule["nodes"]]

    def named(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of the events with these names."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def requests(self) -> list[str]:
        """Return the URLs that the page requested."""
        return [sent["request"]["url"] for sent in self.named("Network.requestWillBeSent")]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        return self._run(lambda: self._protocol.send(method, params))

    def _start(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS.split(), timeout=START_S * 1000
        )
        self._context = self._browser.new_context()
        self._context.set_default_timeout(ANSWER_S * 1000)
        self._open_page()

    def _renew(self) -> None:
        # A separate context for each test would be simpler. It takes three times as long as a new page, and a new page
        # takes twice as long as emptying the old one, which keeps the process and its compiled code.
        others = [page for page in self._context.pages if page is not self._page or not self._is_emptied()]
        if self._page in others:
            self._open_page()
        for page in others:
            page.close()
        self._protocol.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})
        self._context.clear_cookies()
        self._context.clear_permissions()

    def _is_emptied(self) -> bool:
        """Empty the page if all its data is known. A tab keeps the sessionStorage of each origin."""
        from playwright.sync_api import Error

        if self._altered or len(self._origins) > 1:
            return False
        try:
            self._page.evaluate("sessionStorage.clear()")
            self._page.goto("about:blank")
        except Error:
            return False
        self._page.unroute_all()
        self._page.mouse.move(0, 0)
        return True

    def _open_page(self) -> None:
        self._page, self._altered = self._context.new_page(), False
        self._origins.clear()
        self._protocol = self._context.new_cdp_session(self._page)
        for method in REPORTED:
            self._protocol.on(method, partial(self._note, method))
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._protocol.send(f"{domain}.enable")

    def _note(self, method: str, params: dict[str, Any]) -> None:
        self.events.append({"method": method, "params": params})
        if params.get("type") == "Document":
            self._origins.add("/".join(params["request"]["url"].split("/")[:3]))

    def _stop(self) -> None:
        self._browser.close()
        self._playwright.stop()

    def _run(self, work: Callable[[], Result]) -> Result:
        return self._thread.submit(work).result()
