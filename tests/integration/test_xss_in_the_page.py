"""XSS suite in a real browser: each payload is asked about in the service's own page, which shows it as text."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from kit.api import FakeEngine, FakeStore, run_server
from kit.browser import Browser, needs_browser
from kit.reporting import leave_table
from kit.scripted_llm import Request, ScriptedLLM
from kit.xss import KINDS, PAYLOADS, QUESTION, PoisonedRetriever

from pipelines.answering.engine import QueryEngine
from pipelines.llm.client import LLM
from pipelines.records import Citation
from serve.api.routes import create_app

pytestmark = [pytest.mark.slow, needs_browser]

ASK = "form.question.value = {question!r}; form.requestSubmit()"
ANSWERED = "!byId('answer').classList.contains('busy') && byId('answer').textContent !== ''"
SHOWN = "[...document.querySelectorAll('#answer *, #sources *, #note *, #question-text *')]"
TAGS = f"[...new Set({SHOWN}.map(e => e.tagName))]"
LINKS = "[...document.links].map(link => link.href)"
ATTRIBUTES = f"[...new Set({SHOWN}.flatMap(e => e.getAttributeNames()))]"
MAY_BE = {"A", "SUP", "CODE", "PRE", "STRONG", "LI", "B", "DIV", "SMALL"}


def repeat(request: Request) -> str:
    return f"{request.prompt} [1][2]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


def check(browser: Browser, url: str, payload: str) -> None:
    """Nothing ran, nothing was fetched from elsewhere, the policy had nothing to stop, and all of it is text."""
    assert set(browser.evaluate(TAGS)) <= MAY_BE, payload
    assert set(browser.evaluate(ATTRIBUTES)) <= {"class", "href", "id", "rel", "target", "title"}, payload
    own = (url, "https://docs.example.com/", "https://d.test/")
    assert [link for link in browser.evaluate(LINKS) if not link.startswith(own)] == [], payload
    assert not browser.evaluate("'pwned' in window"), payload
    assert browser.named("Page.javascriptDialogOpening") == [], payload
    assert [e["entry"]["text"] for e in browser.named("Log.entryAdded")] == [], payload
    sent = [request["request"]["url"] for request in browser.named("Network.requestWillBeSent")]
    assert [address for address in sent if not address.startswith((url, "data:,"))] == [], payload


@pytest.mark.parametrize("answering", ["quoting", "obedient"])
def test_nothing_runs_in_the_page(browser: Browser, answering: str, request: pytest.FixtureRequest) -> None:
    retriever = PoisonedRetriever()
    with ScriptedLLM(default=repeat) as llm:
        model = LLM("obedient", base_url=llm.url) if answering == "obedient" else None
        app = create_app(QueryEngine(retriever, llm=model), FakeStore())  # type: ignore[arg-type]
        with run_server(app) as url:
            browser.events.clear()
            browser.open(f"{url}/")
            for _, retriever.payload in PAYLOADS:
                browser.evaluate(ASK.format(question=QUESTION))
                browser.wait_for(ANSWERED)
                check(browser, url, retriever.payload)
    rows = [(kind, str(len(payloads)), str(len(payloads))) for kind, payloads in KINDS.items()]
    leave_table(request.config, f"XSS suite in chromium ({answering})", ("payloads", "tried", "held"), rows)


def test_nothing_runs_in_what_else_a_page_is_told(browser: Browser) -> None:
    """Names of collections, the URL, the question, its error, and sources whose address is a script."""
    store = FakeStore()
    engine = FakeEngine(store)
    with run_server(create_app(engine, store)) as url:  # type: ignore[arg-type]
        browser.events.clear()
        for _, payload in PAYLOADS[::6]:
            store.live.clear()
            store.publish("docs")
            store.publish(payload.replace("@", ""))
            engine.citations = (
                Citation(1, payload, payload, payload, (payload,), {}, True, 1.0),
                Citation(2, "javascript:alert(window.pwned=1)", "x", "x", (), {}, False, 0.0),
            )
            engine.hit = replace(engine.hit, text=payload)
            browser.open(f"{url}/?collection={quote(payload)}")
            browser.wait_for("!form.collection.hidden")
            browser.evaluate(ASK.format(question=payload))
            browser.wait_for("!byId('feedback').hidden")
            assert payload.strip() in browser.evaluate("byId('question-text').textContent").replace("\r\n", "\n")
            check(browser, url, payload)
            engine.fails = ValueError(payload)
            browser.evaluate(ASK.format(question=payload))
            browser.wait_for("byId('note').textContent.includes('failed')")
            engine.fails = None
            browser.events.clear()  # the 500 is in the log
            check(browser, url, payload)
