"""Opens the chat page in a browser, with a service whose engine answers as the test wants.

`Site.open()` loads the page. `ask` types a question and waits for the end of its answer.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kit.api import FakeEngine, FakeStore, MemoryRecorder, run_server
from kit.browser import Browser

from pipelines.answering.events import Delta, Event
from pipelines.answering.question import Question
from pipelines.answering.retrieval.search import Retrieval
from pipelines.records import Answer
from pipelines.store import RecordedQuestion
from serve.recorder import as_kept
from serve.routes import create_app

QUESTION = "How do I load csv files?"
LAST = "[...document.querySelectorAll('.turn')].at(-1)"
ENDED = f"!!{LAST}?.querySelector('.thumbs, .failure')"
STEP = 7  # characters per delta: no word, number or fence arrives in one piece


class SayingEngine(FakeEngine):
    """Answers with `says`. `changes` replaces fields of the answer. After `holds_at` characters it waits for `gate`."""

    def __init__(self, store: FakeStore) -> None:
        super().__init__(store)
        self.says = "Call `read_csv` [1]."
        self.holds_at: int | None = None
        self.gate = threading.Event()

    async def stream(self, ask: Question) -> AsyncIterator[Event]:
        found = await self.asearch(ask)
        yield found
        for at in range(0, len(self.says), STEP):
            if self.holds_at is not None and at >= self.holds_at:
                await asyncio.to_thread(self.gate.wait, 30)
            yield Delta(self.says[at : at + STEP])
            if self.fails_midway and at:
                raise self.fails_midway
        yield self._answer(ask, found)

    def _answer(self, ask: Question, found: Retrieval) -> Answer:
        return replace(super()._answer(ask, found), **{"text": self.says, "degraded": (), **self.changes})


class KeepingRecorder(MemoryRecorder):
    """Stores recorded answers where the service reads them again."""

    def __init__(self, store: FakeStore) -> None:
        super().__init__()
        self._store = store

    def record(self, question: RecordedQuestion) -> None:
        super().record(question)
        self._store.answers[question.id] = replace(as_kept(question), asked_at=datetime(2026, 1, 31, tzinfo=UTC))


class Site:
    """A service at `url` and a browser."""

    def __init__(self, url: str, store: FakeStore, engine: SayingEngine, browser: Browser) -> None:
        self.url, self.store, self.engine, self.browser = url, store, engine, browser

    def open(self, path: str = "/", **more: Any) -> Browser:
        """Open a page and wait until its texts are loaded and it is built."""
        self.browser.events.clear()
        self.browser.open(self.url + path, **more)
        self.browser.wait_for("!document.querySelector('main:empty')")
        return self.browser

    def send(self, question: str = QUESTION) -> None:
        """Type a question and press Enter."""
        self.browser.do(lambda page: page.fill("[name=question]", question))
        self.browser.do(lambda page: page.press("[name=question]", "Enter"))

    def ask(self, question: str = QUESTION) -> None:
        """Ask a question and wait for the end of its answer."""
        self.send(question)
        self.await_end(question)

    def recorded(self) -> list[RecordedQuestion]:
        """Return the recorded answers in order."""
        return list(self.store.answers.values())

    def await_end(self, question: str = QUESTION) -> None:
        self.browser.wait_for(f"{ENDED} && {LAST}.querySelector('.question').textContent === {question!r}")

    def open_and_ask(self, question: str = QUESTION, **more: Any) -> Browser:
        """Open a page, ask a question there and wait for the end of its answer."""
        page = self.open(**more)
        self.ask(question)
        return page

    def reply(self, path: str, status: int, body: str, **headers: str) -> None:
        """Make a route reply with this status and body from now on. Status 0 means that no service is there."""
        headers = {"content-type": "application/json", **headers}
        answer = (lambda r: r.fulfill(status=status, body=body, headers=headers)) if status else (lambda r: r.abort())
        self.browser.do(lambda page: page.route(f"**{path}", answer))

    def recover(self) -> None:
        """Let the service reply itself again."""
        self.browser.do(lambda page: page.unroute_all())


@contextmanager
def run_site(browser: Browser) -> Iterator[Site]:
    store = FakeStore()
    engine = SayingEngine(store)
    app = create_app(engine, store, recorder=KeepingRecorder(store))  # type: ignore[arg-type]
    with run_server(app) as url:
        yield Site(url, store, engine, browser)


def renewed(site: Site) -> Site:
    """Return the site in its initial state, with an empty browser."""
    site.engine.gate.set()
    site.browser.renew()
    site.store.__init__()  # type: ignore[misc]
    site.engine.__init__(site.store)  # type: ignore[misc]
    return site
