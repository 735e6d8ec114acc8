"""XSS suite in the widget: each payload in the page around it, in selections, questions, hits and answers."""

from collections.abc import Iterator

import pytest
from kit.browser import Browser, needs_browser
from kit.hosting import Hosting, run_hosting
from kit.reporting import leave_table
from kit.scripted_llm import ScriptedLLM
from kit.xss import PAYLOADS, SAMPLE, PoisonedRetriever, held, repeat_in_pieces

from pipelines.answering.engine import QueryEngine
from pipelines.llm.client import LLM

pytestmark = [pytest.mark.slow, needs_browser]

SHADOW = "document.querySelector('raydex-widget').shadowRoot"
CHAT = f"{SHADOW}.querySelector('raydex-chat').shadowRoot"
LAST = f"[...{CHAT}.querySelectorAll('.turn')].at(-1)"
INSIDE = """(function all(root) {
  return [...root.querySelectorAll('*')].flatMap(e => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])])
})(document.querySelector('raydex-widget').shadowRoot)"""
# Active content. Our own elements have none of these, except the form and styles set by script.
ACTIVE = [
    "SCRIPT", "IFRAME", "FRAME", "OBJECT", "EMBED", "BASE", "META", "LINK", "STYLE", "IMG", "VIDEO", "AUDIO", "MATH",
]  # fmt: skip
LOADING = ["src", "srcdoc", "srcset", "action", "formaction", "xlink:href", "data", "poster", "background", "ping"]
OWN_STYLE = "textarea, .pointed, .offer, raydex-chat"
FAULTS = f"""{INSIDE}.flatMap(e => [
  ...({ACTIVE}.includes(e.tagName.toUpperCase()) ? [e.tagName] : []),
  ...e.getAttributeNames().filter(n => n.startsWith('on') || {LOADING}.includes(n)),
  ...(e.hasAttribute('style') && !e.matches({OWN_STYLE!r}) ? ['style'] : []),
  ...(e.tagName === 'A' && e.rel !== 'noopener nofollow' ? [e.outerHTML] : []),
])"""
LINKS = f"{INSIDE}.map(e => e.href).filter(Boolean)"
SURROUND = """(payload => {
  document.title = payload;
  document.querySelector('h1').textContent = payload;
  const text = document.getElementById('text');
  text.textContent = `before ${payload} after`;
  history.replaceState({}, '', `/guide?q=${encodeURIComponent(payload)}#${payload.replace(/\\n/g, ' ')}`);
  getSelection().selectAllChildren(text);
})"""
TYPE = "((box, text) => { box.value = text; box.dispatchEvent(new Event('input')) })"


@pytest.fixture
def hosted(browser: Browser) -> Iterator[tuple[Hosting, Browser, PoisonedRetriever]]:
    retriever = PoisonedRetriever()
    with ScriptedLLM(default=repeat_in_pieces) as llm:
        engine = QueryEngine(retriever, llm=LLM("obedient", base_url=llm.url))
        with run_hosting(engine) as service:
            body = "<main><h1>Guide</h1><p id='text'></p></main>"
            browser.open(service.put("/guide", head=service.tag(), body=body), height=1600)
            browser.wait_for("!!document.querySelector('raydex-widget')?.shadowRoot.querySelector('.launcher')")
            yield service, browser, retriever


def check(service: Hosting, browser: Browser, payload: str) -> None:
    """Assert that nothing ran or was fetched from elsewhere, and that the payload made no element or link."""
    assert browser.evaluate(FAULTS) == [], payload
    own = (service.url, service.site.url, "https://docs.example.com/")
    assert [link for link in browser.evaluate(LINKS) if not str(link).startswith(own)] == [], payload
    assert not browser.evaluate("'pwned' in window"), payload
    assert browser.named("Page.javascriptDialogOpening") == [], payload
    assert [url for url in browser.requests() if not url.startswith((service.url, service.site.url, "data:,"))] == []


@pytest.mark.parametrize(
    "payloads",
    [pytest.param(SAMPLE[::12], id="some"), pytest.param(PAYLOADS, id="all", marks=pytest.mark.exhaustive)],
)
def test_no_payload_runs_in_the_widget(hosted, payloads, request):
    service, browser, retriever = hosted
    for n, (_, payload) in enumerate(payloads):
        retriever.payload = payload
        browser.evaluate(f"{SURROUND}({payload!r})")
        ask_about_the_selection(browser)
        check(service, browser, payload)
        if n % 12 == 11:  # inspecting a long conversation is slow
            browser.click("raydex-chat [aria-label='New conversation']")
        browser.press("Escape")
        search(browser, payload)
        check(service, browser, payload)
        browser.press("Escape")
    leave_table(request.config, "XSS suite in the widget", ("payloads", "tried", "held"), held(payloads))


def ask_about_the_selection(browser: Browser) -> None:
    browser.wait_for(f"{SHADOW}.querySelector('.offer')?.hidden === false")
    browser.click("raydex-widget .offer")
    browser.do(lambda page: page.locator("dialog.panel[open] raydex-chat .composer").wait_for())
    turns = browser.count("raydex-chat .turn")
    browser.wait_for(f"{CHAT}.querySelector('textarea').value.includes('after')")
    browser.do(lambda page: page.keyboard.type("What is it?"))
    browser.press("Enter")
    browser.wait_for(f"{LAST}?.querySelector('.thumbs') && {CHAT}.querySelectorAll('.turn').length > {turns}")


def search(browser: Browser, payload: str) -> None:
    browser.press("Control+k")
    browser.wait_for(f"{SHADOW}.querySelector('dialog.search')?.open === true")
    browser.evaluate(f"{TYPE}({SHADOW}.querySelector('[role=combobox]'), {payload!r})")
    browser.wait_for(f"/found/.test({SHADOW}.querySelector('.note').textContent)")
    assert browser.count("raydex-widget .result") >= 2, payload
