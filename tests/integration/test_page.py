"""The pages in a real browser: what a reader sees, and that they load nothing from elsewhere."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kit.api import TEXT, FakeEngine, FakeStore, run_server
from kit.browser import Browser, needs_browser

from pipelines.answering.chain import Delta
from pipelines.answering.engine import Event, Question
from pipelines.records import Claims
from serve.api.routes import create_app

pytestmark = [pytest.mark.slow, needs_browser]
ASK = "form.question.value = 'How do I load csv files?'; form.requestSubmit()"
ANSWERED = "!document.getElementById('feedback').hidden"
PICKER = "document.querySelector('form').collection"


class Site:
    """A service at `url` with a scripted engine, and a browser."""

    def __init__(self, url: str, store: FakeStore, engine: FakeEngine, browser: Browser) -> None:
        self.url, self.store, self.engine, self.browser = url, store, engine, browser

    def open(self, path: str = "/", **more: Any) -> Browser:
        self.browser.events.clear()
        self.browser.open(self.url + path, **more)
        return self.browser

    def ask(self) -> None:
        self.browser.evaluate(ASK)
        self.browser.wait_for(ANSWERED)


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    store = FakeStore()
    engine = FakeEngine(store)
    with run_server(create_app(engine, store)) as url, Browser() as browser:  # type: ignore[arg-type]
        yield Site(url, store, engine, browser)


@pytest.fixture
def site(running: Site) -> Site:
    running.store.__init__()  # type: ignore[misc]
    running.engine.__init__(running.store)  # type: ignore[misc]
    return running


def test_an_answer_is_shown_with_its_sources(site: Site) -> None:
    page = site.open()
    site.ask()
    assert TEXT.replace("`", "").split("\u2028")[0] in page.evaluate("document.getElementById('answer').textContent")
    assert page.evaluate("document.querySelector('#sources a').href") == "https://d.test/data#csv"
    assert page.evaluate("document.getElementById('cut').hidden")
    assert page.named("Log.entryAdded") == []


def test_what_was_found_is_shown_while_a_model_reads(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = site.engine.stream
    read = threading.Event()

    async def slow(ask: Question) -> AsyncIterator[Event]:
        async for event in answers(ask):
            if isinstance(event, Delta):
                await asyncio.to_thread(read.wait, 20)
            yield event

    monkeypatch.setattr(site.engine, "stream", slow)
    page = site.open()
    page.evaluate(ASK)
    page.wait_for("document.getElementById('note').textContent")
    try:
        assert page.evaluate("document.getElementById('note').textContent") == "Reading 1 page, about 4 s…"
        assert page.evaluate("document.querySelector('#sources a').href") == "https://d.test/data#csv"
        assert page.evaluate("document.getElementById('sources-title').textContent") == "Found"
    finally:
        read.set()
    page.wait_for(ANSWERED)
    assert page.evaluate("document.getElementById('sources-title').textContent") == "Sources"
    assert page.evaluate("document.querySelectorAll('#sources li').length") == 1


def test_one_collection_needs_no_picker(site: Site) -> None:
    page = site.open()
    site.ask()
    assert page.evaluate(f"{PICKER}.hidden")


def test_the_picker_offers_what_is_published_and_the_url_keeps_the_choice(site: Site) -> None:
    for name in ("guide", "guide@copy"):
        site.store.publish(name)
    site.store.default = "guide"
    page = site.open()
    page.wait_for(f"!{PICKER}.hidden")
    assert page.evaluate(f"[...{PICKER}.options].map(o => o.value)") == ["docs", "guide"]
    assert page.evaluate(f"{PICKER}.value") == "guide"
    page.evaluate(f"{PICKER}.value = 'docs'; {PICKER}.dispatchEvent(new Event('change'))")
    site.ask()
    assert site.engine.asks[-1].collection == "docs"
    chosen = page.evaluate("location.search")
    page = site.open(f"/{chosen}")
    page.wait_for(f"!{PICKER}.hidden")
    assert page.evaluate(f"{PICKER}.value") == "docs"


def test_an_answer_that_was_cut_off_says_so(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = site.engine._answer
    monkeypatch.setattr(
        site.engine, "_answer", lambda *a: replace(whole(*a), finish_reason="length", degraded=("truncated",))
    )
    page = site.open()
    site.ask()
    assert not page.evaluate("document.getElementById('cut').hidden")
    assert "without" not in page.evaluate("document.getElementById('note').textContent")


def test_a_reader_sees_how_far_to_rely_on_an_answer_and_who_found_its_sources(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, (citation,) = site.engine._answer, site.engine.citations
    found, weak = replace(citation, by="attributed"), replace(citation, n=2, supported=False)
    rated = {"claims": Claims(3, 2, 1), "confidence": "low", "citations": (found, weak)}
    monkeypatch.setattr(site.engine, "_answer", lambda *a: replace(whole(*a), **rated))
    page = site.open()
    site.ask()
    sign = page.evaluate("document.getElementById('confidence').textContent")
    assert "Confidence: low" in sign and "1 of 3 claims" in sign
    assert page.evaluate("document.querySelector('#answer sup a').title") == "Source found by Raydex: Data › CSV"
    assert page.evaluate("document.querySelector('#source-2 b').title") == "⚠ Weak support. Data › CSV"


def test_the_page_of_the_api_shows_it_and_asks_no_other_host(site: Site) -> None:
    page = site.open("/docs")
    page.wait_for("document.querySelectorAll('.opblock').length > 10")
    page.evaluate("document.querySelector('.opblock-summary-control').click()")
    page.wait_for("document.querySelector('.opblock-body') !== null")
    urls = [sent["request"]["url"] for sent in page.named("Network.requestWillBeSent")]
    assert all(url.startswith((site.url, "data:")) for url in urls), urls
    assert page.named("Log.entryAdded") == []
