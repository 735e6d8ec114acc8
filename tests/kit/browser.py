"""Drives a headless Chromium by Playwright: opens pages, runs scripts in them, clicks, types.

    with Browser() as browser:
        browser.open("http://127.0.0.1:8000/", width=400, dark=True)
        browser.type("textarea", "How?")
        browser.evaluate("document.title")
        browser.do(lambda page: page.get_by_role("button", name="Ask").click())

Playwright runs in a thread of its own, so that a test may have an event loop. `events` are what the browser reported:
dialogs, log entries, requests. Selectors reach into open shadow roots.
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

# The shell is the same engine without a browser around it: it needs a third less processor time for the widget's tests.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
# Without the rasterizer no processor plays a GPU, which took an eighth of the time.
FLAGS = "--no-sandbox --disable-gpu --disable-software-rasterizer --disable-dev-shm-usage --no-first-run --mute-audio"
START_S, ANSWER_S = 60.0, 60.0
REPORTED = ("Page.javascriptDialogOpening", "Log.entryAdded", "Network.requestWillBeSent")


def _missing() -> str:
    """Return why no browser can be driven here; "" if one can."""
    if util.find_spec("playwright") is None:
        return "the package playwright is not installed: `make install`"
    return "" if CHROMIUM else "no chromium on this machine: `make chromium` (Debian, as root)"


MISSING = _missing()
needs_browser = pytest.mark.skipif(bool(MISSING), reason=MISSING)
Result = TypeVar("Result")


class Browser:
    """One page of one browser."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._altered = False  # a page that no test after this one may have
        self._origins = set[str]()  # of what the page has shown
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
        """Load a page and wait until it is loaded."""
        self.emulate(width, height, dark, reduced_motion)
        self.do(lambda page: page.goto(url))

    def emulate(self, width: int = 1200, height: int = 900, dark: bool = False, reduced_motion: bool = False) -> None:
        """Give the page another size, colour scheme or wish for less motion."""
        motion = "reduce" if reduced_motion else "no-preference"
        self.do(lambda page: page.set_viewport_size({"width": width, "height": height}))
        self.do(lambda page: page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion=motion))

    def accept(self, languages: str) -> None:
        """Let the browser ask for languages, such as "de-AT,en", until it is renewed."""
        agent = self.evaluate("navigator.userAgent")
        self.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=languages)
        self._altered = True

    def renew(self) -> None:
        """Close all pages but an empty one, and forget all that they stored."""
        self._run(self._renew)
        self.events.clear()

    def do(self, work: "Callable[[Page], Result]") -> Result:
        """Return what `work` does with Playwright's page, in the browser's thread."""
        return self._run(lambda: work(self._page))

    def click(self, selector: str) -> None:
        self.do(lambda page: page.click(selector))

    def type(self, selector: str, text: str) -> None:
        """Focus an element and type into it, key by key."""
        self.do(lambda page: page.locator(selector).press_sequentially(text))

    def press(self, *keys: str) -> None:
        """Press keys where the focus is, such as `Control+k` or `ArrowDown`."""
        for key in keys:
            self.do(lambda page, key=key: page.keyboard.press(key))

    def text(self, selector: str) -> str:
        """Return the text of an element as it is shown."""
        return self.do(lambda page: page.inner_text(selector))

    def count(self, selector: str) -> int:
        """Return how many elements there are."""
        return self.do(lambda page: page.locator(selector).count())

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page; it may be a promise. A policy of the page doesn't stop it."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, script: str, seconds: float = ANSWER_S) -> None:
        """Wait until an expression in the page is true."""
        until = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < until, f"it did not become true: {script}"
            time.sleep(0.05)

    def violations(self, within: str = "document") -> list[str]:
        """Return what axe-core finds against the page's accessibility, or against an element's (an expression)."""
        self.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8") + ";0")
        found = self.evaluate(f"axe.run({within}).then(done => done.violations)")
        return [f"{rule['id']}: {node['html']}\n{node['failureSummary']}" for rule in found for node in rule["nodes"]]

    def named(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of the events with these names."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
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
        # A context of its own for each test would be plainer, and costs three times as much as a page of its own, which
        # costs twice as much as an empty one: that keeps its process, and what this has compiled.
        others = [page for page in self._context.pages if page is not self._page or not self._is_emptied()]
        if self._page in others:
            self._open_page()
        for page in others:
            page.close()
        self._protocol.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})
        self._context.clear_cookies()
        self._context.clear_permissions()

    def _is_emptied(self) -> bool:
        """Empty the page, if all that it holds is known; a tab keeps what each origin has put into sessionStorage."""
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
