"""The pages in a real browser: visible content, possible actions, and no requests to other hosts."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from kit.api import TEXT, FakeEngine
from kit.browser import needs_browser
from kit.chat import LAST, Site

from pipelines.answering.events import Delta, Event
from pipelines.answering.question import Question
from pipelines.records import Claims
from pipelines.text.languages import read_texts

pytestmark = [pytest.mark.slow, needs_browser]
# Texts that overflow their element and the window.
TOO_WIDE = """[...document.querySelectorAll('button, .mark, .label, .lead, .place, .top')].filter(
    at => (at.clientWidth > 1 && at.scrollWidth > at.clientWidth + 1) || at.getBoundingClientRect().right > innerWidth
).map(at => at.outerHTML)"""


def test_hits_are_shown_while_a_model_reads_and_then_its_answer(site: Site, monkeypatch) -> None:
    async def reads_before_it_writes(ask: Question) -> AsyncIterator[Event]:
        async for event in FakeEngine.stream(site.engine, ask):
            if isinstance(event, Delta):
                await asyncio.to_thread(site.engine.gate.wait, 20)
            yield event

    monkeypatch.setattr(site.engine, "stream", reads_before_it_writes)
    site.engine.changes = {"text": TEXT}
    page = site.open()
    site.send()
    page.wait_for("document.querySelector('.notice')?.textContent.startsWith('Reading')")
    assert page.text(".notice") == "Reading 1 page, about 4 s…"
    assert page.evaluate("document.querySelector('.sources a').href") == "https://d.test/data#csv"
    site.engine.gate.set()
    page.wait_for(f"!!{LAST}?.querySelector('.thumbs')")
    assert " ".join(page.text(".answer").split()) == "Call read_csv(x[1]) to load it 1. Größe 😀 done"
    assert page.evaluate("document.querySelector('.answer .number').href") == "https://d.test/data#csv"
    assert page.count(".sources li") == 1 and "not complete" not in page.text(".turn")
    assert page.count("[name=collection]") == 0, "one collection needs no picker"


def test_picker_offers_published_collections_and_the_url_keeps_the_choice(site: Site) -> None:
    for name in ("guide", "guide@copy"):
        site.store.publish(name)
    site.store.default = "guide"
    site.store.titles = {"guide": "A guide", "old": "The docs"}
    site.store.publish("old")
    page = site.open()
    picker = "document.querySelector('[name=collection]')"
    page.wait_for(f"!!{picker}")
    assert page.evaluate(f"[...{picker}.options].map(o => o.value)") == ["docs", "guide", "old"]
    assert page.evaluate(f"[...{picker}.options].map(o => o.text)") == ["The docs (docs)", "A guide", "The docs (old)"]
    assert page.evaluate(f"{picker}.value") == "guide"
    page.do(lambda page: page.select_option("[name=collection]", "docs"))
    page.wait_for("location.search === '?collection=docs'")
    site.ask()
    assert site.engine.asks[-1].collection == "docs"
    page = site.open("/?collection=docs")
    page.wait_for(f"!!{picker}")
    assert page.evaluate(f"{picker}.value") == "docs"


def test_page_shows_the_confidence_and_the_retriever_of_an_answer(site: Site) -> None:
    (citation,) = site.engine.citations
    found, weak = replace(citation, by="attributed"), replace(citation, n=2, supported=False)
    site.engine.says = "So [1], or so [2]."
    site.engine.changes = {"claims": Claims(3, 2, 1), "confidence": "low", "citations": (found, weak)}
    page = site.open_and_ask()
    assert "Low confidence · 1 of 3 claims supported by a source" in page.text(".mark")
    page.do(lambda page: page.hover(".answer .number >> nth=0"))
    assert "CSV" in page.text(".pointed") and "Source found by Raydex" in page.text(".pointed")
    page.do(lambda page: page.focus(".answer .number >> nth=1"))
    page.wait_for("document.querySelector('.pointed').textContent.includes('weakly')")
    assert page.count(".answer .number.weak") == 1


def test_api_page_shows_the_api_and_contacts_no_other_host(site: Site) -> None:
    page = site.open("/docs")
    page.wait_for("document.querySelectorAll('.opblock').length > 10")
    page.evaluate("document.querySelector('.opblock-summary-control').click()")
    page.wait_for("document.querySelector('.opblock-body') !== null")
    assert all(url.startswith((site.url, "data:")) for url in page.requests()), page.requests()
    assert page.named("Log.entryAdded") == []


@pytest.mark.parametrize(("accepted", "language"), [("de-AT,en", "de"), ("tlh,ja", "ja")])
def test_page_uses_the_language_of_the_browser(site: Site, accepted: str, language: str) -> None:
    site.browser.accept(accepted)
    site.engine.changes = {"degraded": ("bm25",)}
    texts = read_texts(language)["launcher"] | read_texts(language)["page"]
    page = site.open(width=360)
    page.wait_for("!!document.querySelector('.welcome:not(.waiting)')")
    assert page.evaluate("[document.documentElement.lang, document.title]") == [
        language,
        f"The docs · {texts['title']}",
    ]
    assert page.text(".lead") in (texts["welcome"], texts["welcome_to"].format(title="The docs"))
    site.ask()
    assert site.engine.asks[-1].language == language
    assert page.text(".label") == texts["sources"] and page.text(".mark") == texts["lost_bm25"]
    assert page.evaluate("document.querySelector('.answer').lang + document.querySelector('.question').lang") == ""
    assert page.evaluate(TOO_WIDE) == [] and page.violations() == []
