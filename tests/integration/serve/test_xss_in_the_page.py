"""XSS suite in a real browser: the service's own page is asked about each payload, and shows it as text."""

from dataclasses import replace
from urllib.parse import quote

import pytest
from kit.api import FakeEngine, FakeStore, run_server
from kit.browser import Browser, needs_browser
from kit.reporting import leave_table
from kit.scripted_llm import ScriptedLLM
from kit.xss import INDEX, PAYLOADS, QUESTION, SAMPLE, PoisonedAnswers, PoisonedRetriever, held, repeat_in_pieces

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.verified.answer_finder import VerifiedFinder
from pipelines.llm.client import LLM
from pipelines.records import Citation
from pipelines.store import RecordedQuestion
from serve.recorder import abridged
from serve.routes import create_app

pytestmark = [pytest.mark.slow, needs_browser]

ASK = "(box => {{ box.value = {question!r}; box.form.requestSubmit() }})(document.querySelector('[name=question]'))"
LAST = "[...document.querySelectorAll('.turn')].at(-1)"
ANSWERED = f"!!{LAST}?.querySelector('.thumbs')"
# Foreign content: everything except the page's own buttons and drawings.
OURS = "svg, svg *, button, .bar, .bar *"
SHOWN = (
    "[...document.querySelectorAll('.asked, .sources, .answer, .pointed')]"
    f".flatMap(e => [...e.querySelectorAll(':not({OURS})')])"
)
# Everything that a check needs in one call: each round trip takes longer than the work in the page.
STATE = f"""(shown => ({{tags: shown.map(e => e.tagName), attributes: shown.flatMap(e => e.getAttributeNames()),
    links: [...document.links].map(link => link.href), ran: 'pwned' in window,
    rels: [...document.links].filter(a => a.origin !== location.origin).map(a => a.rel)}}))({SHOWN})"""
MAY_BE = {
    "A", "BLOCKQUOTE", "BR", "CODE", "DEL", "DIV", "EM", "H2", "H3", "H4", "H5", "H6", "HR", "LI", "MARK", "OL", "P",
    "PRE", "SPAN", "STRONG", "SUP", "TABLE", "TBODY", "TD", "TH", "THEAD", "TR", "UL",
}  # fmt: skip
MAY_HAVE = {
    "align", "aria-describedby", "aria-label", "class", "data-source", "dir", "href", "lang", "rel", "role",
    "start", "tabindex", "target", "title",
}  # fmt: skip


def recorded(engine: FakeEngine, payload: str) -> RecordedQuestion:
    """Return the engine's last answer as the database stores it, with the payload as its question and note."""
    ask = engine.asks[-1]
    answer = engine._answer(ask, Retrieval(ask.question, (engine.hit,), INDEX, 1, (), {}))
    answer = abridged(replace(answer, question=payload, notes=(payload,)))
    return RecordedQuestion(answer.id, payload, answer)


def check(browser: Browser, url: str, payload: str) -> None:
    """Assert that nothing ran or was fetched from elsewhere, no policy was violated, and the payload is text."""
    state = browser.evaluate(STATE)
    assert set(state["tags"]) <= MAY_BE and set(state["attributes"]) <= MAY_HAVE, payload
    own = (url, "https://docs.example.com/", "https://d.test/")
    assert [link for link in state["links"] if not link.startswith(own)] == [], payload
    assert set(state["rels"]) <= {"noopener nofollow"} and not state["ran"], payload
    assert browser.named("Page.javascriptDialogOpening") == [], payload
    logged = [e["entry"]["text"] for e in browser.named("Log.entryAdded")]
    assert [text for text in logged if "404" not in text] == [], payload
    assert [address for address in browser.requests() if not address.startswith((url, "data:,"))] == [], payload


@pytest.mark.parametrize(("answering", "payloads"), [
    pytest.param("obedient", SAMPLE[::8], id="obedient, some"),
    *(pytest.param(way, PAYLOADS, id=way, marks=pytest.mark.exhaustive) for way in ("quoting", "obedient", "verified")),
])  # fmt: skip
def test_no_payload_runs_in_the_page(browser, answering, payloads, request):
    retriever, book = PoisonedRetriever(), PoisonedAnswers()
    with ScriptedLLM(default=repeat_in_pieces) as llm:
        model = LLM("obedient", base_url=llm.url) if answering == "obedient" else None
        finder = VerifiedFinder(book, retriever.aembed, check_s=0.0) if answering == "verified" else None
        engine = QueryEngine(retriever, llm=model, verified=finder)
        app = create_app(engine, FakeStore())  # type: ignore[arg-type]
        with run_server(app) as url:
            browser.open(f"{url}/")
            for n, (_, retriever.payload) in enumerate(payloads):
                if n % 12 == 0:
                    browser.click("[aria-label='New conversation'], .side .outlined")
                book.payload, book.asked = retriever.payload, f"{QUESTION} {n}"
                browser.evaluate(ASK.format(question=book.asked))
                browser.wait_for(f"{ANSWERED} && {LAST}.textContent.includes('input? {n}')")
                check(browser, url, retriever.payload)
            browser.open(f"{url}/")  # the stored conversation is shown again
            for n in range(browser.count(".side .open")):
                browser.evaluate(f"document.querySelectorAll('.side .open')[{n}].click()")
                check(browser, url, "a conversation that was kept")
    leave_table(request.config, f"XSS suite in chromium ({answering})", ("payloads", "tried", "held"), held(payloads))


SOME_OR_MORE = pytest.mark.parametrize(
    "share", [pytest.param(36, id="some"), pytest.param(3, id="more", marks=pytest.mark.exhaustive)]
)


@SOME_OR_MORE
def test_no_payload_runs_in_rendered_markdown(browser: Browser, share: int) -> None:
    """The page's own renderer, without the service, and with the text growing character by character."""
    store = FakeStore()
    with run_server(create_app(FakeEngine(store), store)) as url:  # type: ignore[arg-type]
        browser.open(f"{url}/")
        browser.evaluate(
            "(async () => { window.markdown = await import('/web/chat/markdown.js');"
            "await (await import('/web/chat/texts.js')).speak('page', 'en'); const shown = document.body"
            ".appendChild(document.createElement('div')); shown.className = 'answer'; window.shown = shown; })()"
        )
        for _, payload in PAYLOADS[:: share // 3]:
            table = f"| {payload} |\n|---|\n| {payload} |"
            text = f"A payload: {payload}\n\n{payload}\n\n> {payload}\n\n- {payload}\n\n{table}"
            grow = (
                "(text => { const live = new markdown.LiveMarkdown(shown); shown.replaceChildren();"
                "for (let n = 1; n <= text.length; n++) live.show(text.slice(0, n), new Map(), {open: true});"
                "live.show(text, new Map()); })"
            )
            browser.evaluate(f"{grow}({text!r})")
            state = browser.evaluate(STATE)
            assert set(state["tags"]) <= MAY_BE and set(state["attributes"]) <= MAY_HAVE, payload
            assert not state["ran"], payload
            addresses = browser.evaluate("[...shown.querySelectorAll('a')].map(a => a.getAttribute('href'))")
            assert all(address.startswith(("http://", "https://")) for address in addresses), payload
            assert all(address.startswith((url, "data:,")) for address in browser.requests()), payload
        assert browser.named("Page.javascriptDialogOpening") == []


@SOME_OR_MORE
def test_no_payload_runs_from_other_fields_of_a_reply(browser: Browser, share: int) -> None:
    """Covers collection names, the URL, the question, its error, a comment, and sources with a script as address."""
    store = FakeStore()
    engine = FakeEngine(store)
    with run_server(create_app(engine, store)) as url:  # type: ignore[arg-type]
        for _, payload in PAYLOADS[::share]:
            store.live.clear()
            store.publish("docs")
            store.publish(payload.replace("@", ""))
            engine.citations = (
                Citation(1, payload, payload, payload, (payload,), {}, True, 1.0),
                Citation(2, "javascript:alert(window.pwned=1)", "x", "x", (), {}, False, 0.0),
            )
            engine.hit = replace(engine.hit, text=payload)
            browser.open(f"{url}/?collection={quote(payload)}")
            browser.wait_for("!!document.querySelector('[name=collection]')")
            browser.evaluate(ASK.format(question=payload))
            browser.wait_for(ANSWERED)
            shown = browser.evaluate("document.querySelector('.question').textContent").replace("\r\n", "\n")
            assert payload.strip() in shown
            browser.evaluate("document.querySelector('.answer [data-source]').focus()")
            check(browser, url, payload)
            browser.evaluate("document.querySelector('[aria-label=\"Bad answer\"]').click()")
            browser.do(lambda page, payload=payload: page.fill("[name=comment]", payload))
            browser.click(".feedback button")
            browser.wait_for("document.querySelector('.feedback').textContent.includes('Thank you')")
            check(browser, url, payload)
            store.answers["a"] = recorded(engine, payload)
            browser.open(f"{url}/a/a")
            browser.wait_for("!!document.querySelector('.turn')")
            check(browser, url, payload)
            browser.open(f"{url}/?collection={quote(payload)}")
            browser.wait_for("!!document.querySelector('[name=collection]')")
            engine.fails = ValueError(payload)
            browser.evaluate(ASK.format(question=payload))
            browser.wait_for(f"!!{LAST}.querySelector('.failure')")
            engine.fails = None
            browser.events.clear()  # the 500 is in the log
            check(browser, url, payload)
