"""Readers' actions on the chat page in a real browser: each promise in docs/chat.md."""

import json
from dataclasses import replace

import pytest
from kit.api import PastTurn
from kit.browser import needs_browser
from kit.chat import LAST, QUESTION, Site
from kit.processes import eventually

from pipelines.records import Claims, Filters, Reason

pytestmark = [pytest.mark.slow, needs_browser]

IS_OPEN = "document.querySelector('.pointed').matches(':popover-open')"  # a source's card

RICH = """Call `read_csv` **first** [1]:

```python
import ray  # a comment
ds = ray.data.read_csv("s3://bucket/a.csv")
```

## Which one

| Format | Function |
|---|---:|
| CSV | `read_csv` [1] |

1. One
2. Two
   - nested

> A quote

See [the guide](https://d.test/data#csv), not [this](javascript:alert(1)) or ![a picture](https://d.test/a.png).
Raw <b>markup</b>, and [7] is no source.
"""


def test_answer_is_rendered_markdown_and_contacts_no_other_host(site: Site) -> None:
    site.engine.says = RICH
    page = site.open_and_ask()
    elements = "pre code", "table td[align=right] code", "ol > li > ul > li", "blockquote", "strong", "p > code", "h3"
    assert [name for name in elements if page.count(f".answer {name}") == 0] == []
    assert page.count(".answer .hljs-keyword") == 1 and page.count(".answer .hljs-comment") == 1
    links = page.evaluate(
        "[...document.querySelectorAll('.answer a:not(.number)')].map(a => [a.href, a.rel, a.target])"
    )
    assert links == [["https://d.test/data#csv", "noopener nofollow", "_blank"]]
    assert page.count("img") == 0 and page.count(".answer b") == 0
    text = page.text(".answer")
    assert "not this or a picture" in text and "Raw <b>markup</b>, and [7] is no source." in text
    numbers = page.evaluate("[...document.querySelectorAll('.answer .number')].map(a => [a.textContent, a.href])")
    assert numbers == [["1", "https://d.test/data#csv"]] * 2
    assert [url for url in page.requests() if not url.startswith((site.url, "data:"))] == []
    assert page.named("Log.entryAdded") == []


def test_only_the_open_block_is_rerendered(site: Site) -> None:
    site.engine.says, site.engine.holds_at = RICH, 160
    page = site.open()
    site.send()
    page.wait_for("!!document.querySelector('.answer .code ~ *')")
    page.evaluate("document.querySelectorAll('.answer > p:first-child, .answer .code').forEach(e => { e.seen = true })")
    site.engine.gate.set()
    site.await_end()
    assert page.evaluate("[...document.querySelectorAll('.answer > *')].map(e => !!e.seen)")[:3] == [True, True, False]


def test_link_works_even_if_its_definition_comes_later(site: Site) -> None:
    site.engine.says = "See [the guide][g], it says more.\n\nAnd more.\n\n[g]: https://d.test/guide"
    page = site.open_and_ask()
    assert page.evaluate("document.querySelector('.answer a')?.href") == "https://d.test/guide"


def test_right_to_left_text_starts_on_the_right(site: Site) -> None:
    site.engine.says = "`list.sort()` لفرز قائمة.\n\n- العنصر\n\n```python\nx = 1\n```\n\nIn English."
    page = site.open_and_ask("كيف أفرز قائمة؟")
    direction = "e => getComputedStyle(e).direction"
    written = f"[...document.querySelectorAll('.question, .answer > p, .answer > ul, .answer code')].map({direction})"
    assert page.evaluate(written) == ["rtl", "rtl", "ltr", "rtl", "ltr", "ltr"]


def test_long_question_leaves_room_for_its_answer(site: Site) -> None:
    page = site.open()
    question = "word " * 900
    site.ask(question.strip())
    assert page.evaluate("document.querySelector('.question').getBoundingClientRect().height < innerHeight / 3")
    assert page.violations() == []


def test_incomplete_markdown_is_not_rendered_as_something_else(site: Site) -> None:
    """A dash below a line would make it a heading until the next word arrives."""
    page = site.open()
    grow = """import('/web/chat/markdown.js').then(({LiveMarkdown}) => {
        const root = document.createElement('div'), live = new LiveMarkdown(root), seen = new Set();
        for (let n = 1; n <= text.length; n++) {
            live.show(text.slice(0, n), new Map(), {open: true});
            root.querySelectorAll('*').forEach(element => seen.add(element.tagName));
        }
        return [...seen];
    })"""
    for text in ("A line\n\n- item", "A line\n- item", "A line\n\n1. item", "A **bold** `code`"):
        assert not set(page.evaluate(f"(text => {grow})({text!r})")) & {"H1", "H2", "H3", "H4", "HR"}, text


def test_code_without_a_language_is_colored_if_it_can_be_detected(site: Site) -> None:
    coloured = {
        "import ray\nray.init()": True,
        ">>> ray.init()\n{}": True,
        "ALTER TABLE t ADD COLUMN c text;": True,
        "$ echo ray": True,
        '{"a": 1}': True,
        "Number of trials: 3/3\n| Trial | loss |": False,
        "With all of it, nothing from here imports.": False,
    }
    site.engine.says = "So:\n\n" + "".join(f"```\n{code}\n```\n\n" for code in coloured)
    page = site.open_and_ask()
    shown = "[...document.querySelectorAll('.answer pre')].map(e => [e.textContent, !!e.querySelector('span')])"
    assert page.evaluate(shown) == [[f"{code}\n", it_is] for code, it_is in coloured.items()]


def test_code_and_answers_with_sources_can_be_copied(site: Site) -> None:
    site.engine.says = "Call `read_csv` [1]:\n\n```python\nimport ray  # a comment\nray.init()\n```"
    page = site.open()
    page.do(lambda page: page.context.grant_permissions(["clipboard-read", "clipboard-write"]))
    site.ask()
    page.click(".code button")
    page.wait_for("document.querySelector('.code button').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == "import ray  # a comment\nray.init()"
    page.click("[aria-label='Copy answer']")
    page.wait_for("document.querySelector('[role=status]').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{site.engine.says}\n\n**Sources**\n\n[1] [CSV](https://d.test/data#csv)"


def test_citation_shows_its_source_on_hover_and_focus_until_escape(site: Site) -> None:
    page = site.open_and_ask()
    for point in (lambda page: page.hover(".answer .number"), lambda page: page.focus(".answer .number")):
        page.do(point)
        page.wait_for(IS_OPEN)
        shown = page.text(".pointed")
        assert "CSV" in shown and "comma separated files" in shown
        described = page.evaluate("document.querySelector('.answer .number').getAttribute('aria-describedby')")
        assert page.evaluate(f"document.getElementById({described!r}).className") == "pointed"
        page.press("Escape")
        page.wait_for(f"!{IS_OPEN}")
        page.do(lambda page: page.mouse.move(2, 2))


def test_source_card_opens_at_its_citation_and_closes_with_the_pointer(site: Site) -> None:
    site.engine.says = "Call `read_csv` [1].\n\nA line.\n\nAnother line."
    rect = "JSON.parse(JSON.stringify(document.querySelector('{}').getBoundingClientRect()))"
    for width in (1200, 390):
        page = site.open(width=width)
        if not page.count(".turn"):
            site.ask()
        page.do(lambda page: page.hover(".answer .number"))
        page.wait_for(IS_OPEN)
        number, card = page.evaluate(rect.format(".answer .number")), page.evaluate(rect.format(".pointed"))
        assert card["left"] <= number["left"] and number["right"] <= card["right"], "above or below its number"
        assert min(abs(number["top"] - card["bottom"]), abs(card["top"] - number["bottom"])) <= number["height"] / 2
        page.do(lambda page: page.hover(".pointed"))
        page.evaluate("new Promise(done => setTimeout(done, 500))")
        assert page.evaluate(IS_OPEN), "it can be pointed at"
        page.do(lambda page: page.hover(".answer p >> nth=-1"))
        page.wait_for(f"!{IS_OPEN}")
        page.do(lambda page: page.hover(".answer .number"))
        page.wait_for(IS_OPEN)
        page.evaluate("document.querySelector('.answer .number').closest('p').remove()")
        page.do(lambda page: page.hover(".composer"))
        page.wait_for(f"!{IS_OPEN}")


def test_source_card_closes_on_outside_clicks_and_scrolling_only(site: Site) -> None:
    site.engine.says = "Call `read_csv` [1].\n\n" + "A line.\n\n" * 60
    page = site.open_and_ask()
    page.do(lambda page: page.focus(".answer .number"))
    page.press("Shift+Tab", "Tab")
    page.wait_for(IS_OPEN)
    page.do(lambda page: page.hover(".answer p >> nth=3"))
    page.evaluate("new Promise(done => setTimeout(done, 500))")
    assert page.evaluate(IS_OPEN), "the focus is still at its number"
    page.do(lambda page: page.click(".answer p >> nth=3"))
    assert not page.evaluate(IS_OPEN)
    page.do(lambda page: page.hover(".answer .number"))
    page.wait_for(IS_OPEN)
    page.evaluate("document.querySelector('.thread').scrollTo({top: 1e6, behavior: 'instant'})")
    page.wait_for(f"!{IS_OPEN}")


def test_off_screen_citation_shows_its_card_when_tabbed_to(site: Site) -> None:
    site.engine.says = "Call `read_csv` [1].\n\n" + "A line.\n\n" * 60
    page = site.open_and_ask(height=500)
    page.evaluate("document.querySelector('.thread').scrollTo({top: 1e6, behavior: 'instant'})")
    page.do(lambda page: page.focus(".answer .number"))
    page.do(lambda page: page.wait_for_timeout(1000))  # the page scrolls smoothly
    box = page.evaluate("JSON.parse(JSON.stringify(document.querySelector('.pointed').getBoundingClientRect()))")
    assert box["top"] > 0 and box["bottom"] < 500 and box["height"] > 20


def test_follow_up_keeps_its_context_except_after_an_unknown_answer(site: Site) -> None:
    page = site.open_and_ask()
    assert QUESTION in page.text(".composer .context")
    first = site.engine.asks[-1]
    site.store.turns = {c.conversation: [PastTurn(QUESTION, "So.", (), first.id)] for c in site.recorded()}
    site.ask("And Parquet?")
    assert [m.content for m in site.engine.asks[-1].history] == [QUESTION, "So."]
    assert page.count(".turn") == 2 and "And Parquet?" in page.text(".composer .context")
    site.engine.changes = {"known": False}
    site.ask("What is the capital of France?")
    page.wait_for("document.querySelector('.context').hidden")
    assert "follow-up" not in page.evaluate("document.querySelector('[name=question]').placeholder")
    site.engine.changes = {}
    site.ask("And JSON?")
    page.click(".context button")
    assert page.count(".turn") == 0 and not page.do(lambda page: page.is_visible(".composer .context"))


def test_answer_can_be_stopped(site: Site) -> None:
    site.engine.says, site.engine.holds_at = "One two three four five six", 10
    page = site.open()
    site.send()
    page.wait_for("document.querySelector('.answer')?.textContent.includes('One')")
    page.press("Escape")
    page.wait_for(f"{LAST}.querySelector('.foot').textContent.includes('You stopped this answer')")
    assert "One two" in page.text(".answer") and "six" not in page.text(".answer")
    assert page.evaluate("document.querySelector('.send').getAttribute('aria-label')") == "Ask"
    site.engine.gate.set()
    site.engine.holds_at = None
    page.click("[aria-label='Ask again']")
    site.await_end()
    assert "six" in page.text(".answer") and page.count(".turn") == 1


def test_question_can_be_edited_and_asked_again(site: Site) -> None:
    page = site.open_and_ask()
    site.ask("And Parquet?")
    conversation = site.recorded()[0].conversation
    first, second = (ask.id for ask in site.engine.asks)
    site.store.turns[conversation] = [PastTurn(QUESTION, "So.", (), first), PastTurn("And Parquet?", "So.", (), second)]
    page.do(lambda page: page.locator("[aria-label='Edit and ask again']").last.click())
    page.do(lambda page: page.fill(".editor textarea", "And JSON?"))
    page.press("Enter")
    site.await_end("And JSON?")
    shown = page.evaluate("[...document.querySelectorAll('.question')].map(e => e.textContent)")
    assert shown == [QUESTION, "And JSON?"]
    assert [m.content for m in site.engine.asks[-1].history] == [QUESTION, "So."]


def test_conversations_are_stored_listed_opened_and_deleted(site: Site) -> None:
    page = site.open_and_ask("First?")
    page.click(".side .outlined")
    site.ask("Second?")
    page.click(".side .outlined")
    page = site.open()
    titles = "[...document.querySelectorAll('.side .open')].map(e => e.textContent)"
    assert page.evaluate(titles) == ["Second?", "First?"] and page.count(".turn") == 0
    page.do(lambda page: page.click(".side .open >> nth=1"))
    assert page.text(".question") == "First?" and "read_csv" in page.text(".answer")
    assert page.evaluate("document.querySelector('.side [aria-current]').textContent") == "First?"
    page.do(lambda page: page.hover(".side li >> nth=1"))
    page.do(lambda page: page.click(".side li >> nth=1 >> [aria-label^=Delete]"))
    assert page.evaluate(titles) == ["Second?"] and page.count(".turn") == 0


def test_shared_answer_opens_for_others_and_a_dead_link_says_so(site: Site) -> None:
    page = site.open()
    page.do(lambda page: page.context.grant_permissions(["clipboard-read", "clipboard-write"]))
    site.ask()
    id = site.engine.asks[-1].id
    assert site.store.answers[id].shared_at is None
    page.click("[aria-label='Copy link to this answer']")
    page.wait_for("document.querySelector('[role=status]').textContent === 'Link copied'")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{site.url}/a/{id}" and site.store.answers[id].shared_at is not None
    page.renew()
    page = site.open(f"/a/{id}")
    page.wait_for("!!document.querySelector('.answer .number')")
    assert page.text(".question") == QUESTION and page.count(".sources li") == 1
    assert page.evaluate("document.querySelector('header a').href") == f"{site.url}/"
    assert page.evaluate("document.querySelector('.answer .number').href") == "https://d.test/data#csv"
    page = site.open("/a/nothing")
    page.wait_for("!!document.querySelector('.failure')")
    assert "did not share it" in page.text(".failure")


def test_reader_without_an_answer_is_offered_the_closest_sections(site: Site) -> None:
    (citation,) = site.engine.citations
    site.engine.says = "I do not know. [1]"
    other = replace(site.engine.hit, anchors=("tsv",), sources=("https://d.test/data#tsv",), headings=("Text", "TSV"))
    hits = (site.engine.hit, other, other)
    site.engine.changes = {"hits": hits}
    page = site.open_and_ask()
    assert page.count(".found li") == 1 and "TSV Text" in page.text(".found"), "what is cited is not named twice"
    assert page.text(".found .says").startswith("Call ray.data.read_csv")
    assert page.evaluate("document.querySelector('.found a').href") == other.source
    site.engine.changes |= {"known": False, "citations": (replace(citation, supported=False),)}
    site.ask("And Parquet?")
    assert page.count(".turn") == 2 and page.count(".found") == 1, "the closest sections are named once"
    assert page.text(".closest .label") == "The closest sections of the documentation"
    assert "comma separated" in page.text(".closest .card") and page.count(".number.weak") == 0
    follows = f"{LAST}.querySelector('.answer').compareDocumentPosition(document.querySelector('.closest')) & 4"
    assert page.evaluate(follows)


def test_unsupported_claims_are_underlined(site: Site) -> None:
    site.engine.says = """A `first` *claim* stands [1]. The **second** `one()` does not [1]; it
goes on. Third.

| a | b |
|---|---|
| x | No `row` [1] |

```python
made_up()
```
"""
    texts = ("The **second** `one()` does not; it\ngoes on.", "x | No `row`", "```python\nmade_up()\n```", "Not there.")
    reasons = (
        Reason("nowhere", "one"),
        Reason("denied", "A row may be there."),
        Reason("nowhere", "made_up"),
        Reason(),
    )
    site.engine.changes = {"claims": Claims(5, 5, 2, texts, reasons), "confidence": "low"}
    page = site.open_and_ask()
    titles = page.evaluate("[...new Set([...document.querySelectorAll('mark, .code')].map(one => one.title))]")
    assert titles == [
        "“one” is in none of the sources",
        "A source says the opposite: “A row may be there.”",
        "“made_up” is in none of the sources",
    ]
    marked = page.evaluate("[...document.querySelectorAll('mark')].map(mark => mark.textContent).join('')")
    assert "".join(marked.split()) == "Thesecondone()doesnot;itgoeson.xNorow"
    assert page.count(".code.unsupported") == 1 and "the others are underlined" in page.text(".mark")
    assert page.count(".answer .number") == 3


@pytest.mark.parametrize(("confidence", "shown"), [("high", "High"), ("some", ""), ("low", "Low")])
def test_only_high_and_low_confidence_are_shown(site, confidence: str, shown: str) -> None:
    site.engine.changes = {"claims": Claims(1, 1, 1), "confidence": confidence}
    mark = site.open_and_ask().text(".mark")
    assert ("confidence" in mark.lower()) is bool(shown) and mark.startswith(shown)


ABOUT = {"name": "docs", "title": "Gadgets", "pages": 1200, "chunks": 9, "published_at": None, "versions": [],
         "languages": ["en"], "examples": []}  # fmt: skip


def test_empty_page_offers_questions_of_the_collection(site: Site) -> None:
    site.reply("/collections/docs", 200, json.dumps({**ABOUT, "examples": [QUESTION]}))
    page = site.open()
    page.wait_for("!!document.querySelector('.examples')")
    assert "Gadgets" in page.text(".lead") and "1,200 pages" in page.text(".welcome") and page.count("select") == 0
    page.click(".examples button")
    site.await_end()
    assert page.count(".examples") == 0 and site.engine.asks[-1].question == QUESTION


def test_logo_is_shown_in_the_header_without_a_request(site: Site) -> None:
    picture = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    for logo, shown in ((picture, True), ("https://cdn.test/logo.png", False), ("", False)):
        site.reply("/collections/docs", 200, json.dumps({**ABOUT, "logo": logo}))
        page = site.open()
        page.wait_for("document.querySelector('.lead')?.textContent.includes('Gadgets')")
        seen = "(img => !!img && img.complete && img.naturalWidth > 0)(document.querySelector('.top .logo img'))"
        if shown:
            page.wait_for(seen)
        assert (page.evaluate(seen), page.count("img")) == (shown, int(shown))


def test_version_and_language_can_be_chosen_if_there_are_several(site: Site) -> None:
    site.reply("/collections/docs", 200, json.dumps({**ABOUT, "versions": ["2.0", "1.9"], "languages": ["de", "en"]}))
    page = site.open()
    page.wait_for("document.querySelectorAll('select').length === 2")
    assert page.text("[name=language]").split("\n") == ["All languages", "Deutsch", "English"]
    site.ask()
    assert site.engine.asks[-1].filters == Filters()
    version = "document.querySelector('[name=version]')"
    choose = f"{version}.value = '1.9'; {version}.dispatchEvent(new Event('change'))"
    assert page.evaluate(f"{choose}; document.querySelector('[name=language]').disabled"), "until the first is known"
    page.do(lambda page: page.select_option("[name=language]", "de"))
    page.wait_for("location.search === '?collection=docs&version=1.9&language=de'")
    site.ask("And now?")
    assert site.engine.asks[-1].filters == Filters(version="1.9", language="de") and page.count(".turn") == 2
    page = site.open("/?version=1.9")
    page.wait_for("document.querySelectorAll('select').length === 2")
    site.ask()
    assert site.engine.asks[-1].filters == Filters(version="1.9")


def test_answer_shows_its_author_and_its_gaps(site: Site) -> None:
    page = site.open()
    foot = f"{LAST}.querySelector('.foot').textContent"
    site.engine.changes = {"agent": "verified"}
    site.ask()
    assert "Answer written by a person" in page.evaluate(foot)
    site.engine.changes = {"agent": "extractive", "degraded": ("llm:big", "bm25")}
    site.ask("And now?")
    assert "The language model failed: this is quoted from the documentation." in page.evaluate(foot)
    assert "Keyword search was not available." in page.evaluate(foot)
    site.engine.changes = {"finish_reason": "length", "degraded": ("truncated",)}
    site.ask("And then?")
    assert "not complete" in page.evaluate(foot) and "without" not in page.evaluate(foot)


def test_thumbs_are_sent_with_reasons_and_a_comment(site: Site) -> None:
    page = site.open_and_ask()
    id = site.engine.asks[-1].id
    page.click("[aria-label='Bad answer']")
    page.do(lambda page: page.check("text=Outdated", force=True))
    page.do(lambda page: page.check("text=Not what I asked", force=True))
    page.do(lambda page: page.fill("[name=comment]", "Use <b>read_parquet</b>."))
    page.click(".feedback button")
    page.wait_for("document.querySelector('.feedback').textContent.includes('Thank you')")
    assert [given[:3] for given in site.store.given] == [(id, -1, ""), (id, -1, "Use <b>read_parquet</b>.")]
    assert site.store.reasons[id] == ("outdated", "not_asked")
    page.click("[aria-label='Good answer']")
    page.click("[aria-label='Good answer']")
    page.wait_for("document.querySelector('.feedback').hidden")
    eventually(lambda: len(site.store.given) == 4, "both ratings arrive")
    assert [given[1] for given in site.store.given][2:] == [1, 0]


SHOWN = """[...document.querySelectorAll('.turn')].map(turn => [
    turn.querySelector('.question').textContent,
    turn.querySelector('.answer').innerHTML,
    turn.querySelector('.sources').innerHTML,
    [...turn.querySelectorAll('.mark')].map(mark => mark.textContent),
    [...turn.querySelectorAll('.thumbs button')].map(thumb => thumb.ariaPressed),
])"""


def test_conversation_is_restored_after_a_reload(site: Site) -> None:
    page = site.open_and_ask()
    page.click("[aria-label='Good answer']")
    page.do(lambda page: page.mouse.move(2, 2))
    site.engine.says, site.engine.changes = "I do not know.", {"known": False}
    site.ask("And parquet?")
    shown, before = page.evaluate(SHOWN), len(site.engine.asks)
    assert len(shown) == 2 and shown[0][4] == ["true", "false"]
    site.engine.says, site.engine.changes = "Quite another answer.", {}
    page.do(lambda page: page.reload())
    page.wait_for("document.querySelectorAll('.turn').length === 2")
    assert page.evaluate(SHOWN) == shown
    assert len(site.engine.asks) == before, "nothing was asked again"
    site.ask("And orc?")
    assert len({row.conversation for row in site.recorded()}) == 1, "it is the same conversation for the service"
    page.click("[aria-label='New conversation'], .side .outlined")
    page.do(lambda page: page.reload())
    page.wait_for("!!document.querySelector('.welcome:not(.waiting)')")
    assert page.count(".turn") == 0


def test_new_tab_or_other_collection_starts_a_new_conversation(site: Site) -> None:
    page = site.open_and_ask()
    other = page.do(lambda page: page.context.new_page())
    page.do(lambda _: other.goto(site.url))
    page.do(lambda _: other.wait_for_selector(".welcome"))
    assert page.do(lambda _: other.locator(".turn").count()) == 0
    page.do(lambda _: other.close())
    page = site.open("/?collection=elsewhere")
    assert page.count(".turn") == 0
    assert QUESTION not in page.text(".main")


def test_draft_and_unanswered_question_survive_a_reload(site: Site) -> None:
    site.engine.holds_at = 0
    box = "document.querySelector('[name=question]').value"
    page = site.open()
    page.type("[name=question]", "Half a ques")
    page = site.open()
    assert page.evaluate(box) == "Half a ques"
    site.send()
    page.wait_for("!!document.querySelector('.busy')")
    assert page.evaluate(box) == ""
    page = site.open()
    assert page.evaluate(box) == QUESTION


def test_first_tap_shows_a_source_and_the_second_opens_it(site: Site) -> None:
    page = site.open_and_ask(width=390)
    opened: list[str] = []
    page.do(lambda page: page.context.on("page", lambda other: opened.append(other.url)))
    touch = page.do(lambda page: page.locator(".answer .number").bounding_box())
    assert touch
    points = [{"x": touch["x"] + touch["width"] / 2, "y": touch["y"] + touch["height"] / 2}]

    def tap() -> None:
        page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=points)
        page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    tap()
    page.wait_for("document.querySelector('.pointed').matches(':popover-open')")
    page.do(lambda page: page.wait_for_timeout(300))
    assert not opened
    tap()
    page.do(lambda page: opened or page.context.wait_for_event("page"))
    assert len(opened) == 1


def test_page_works_with_the_keyboard_only(site: Site) -> None:
    page = site.open()
    page.wait_for("document.activeElement.name === 'question'")
    page.type("[name=question]", "One")
    page.press("Shift+Enter")
    page.type("[name=question]", "two")
    page.press("Enter")
    site.await_end("One\ntwo")
    seen = set()
    for _ in range(30):
        page.press("Tab")
        seen.add(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.className"))
    expected = {"Copy answer", "Copy link to this answer", "Ask again", "Good answer", "Bad answer"}
    assert expected | {"Edit and ask again", "card", "Source 1: CSV"} <= seen


def test_result_titles_link_to_their_sections_and_no_card_repeats_them(site: Site) -> None:
    site.engine.says = "Best matches in the documentation:\n\n**Data › CSV** [1]\n\nCall `read_csv`, **not** this."
    site.engine.changes = {"agent": "extractive", "form": "results", "claims": Claims()}
    page = site.open_and_ask()
    assert page.evaluate("document.querySelector('.answer .result a').textContent") == "Data › CSV"
    assert page.evaluate("document.querySelector('.answer .result a').href") == "https://d.test/data#csv"
    assert page.count(".answer strong a") == 1 and page.evaluate("document.querySelector('.shelf').hidden")
    assert page.text(".mark") == "Search results, not an answer"
    page.do(lambda page: page.reload())
    page.wait_for("!!document.querySelector('.answer .result a')")
    assert page.text(".mark") == "Search results, not an answer", "it is kept in the browser"


def test_quotation_shows_its_source_once(site: Site) -> None:
    site.engine.changes = {"agent": "extractive", "claims": Claims(1, 1, 1), "confidence": "high"}
    page = site.open_and_ask()
    assert page.text(".card .title") == "CSV" and page.text(".card .place") == "Data"
    assert "quoted from the documentation" in page.text(".mark")
    for at, shown in ((".answer .number", "CSVd.test/data#csv"), (".card", "d.test/data#csv")):
        page.do(lambda page, at=at: page.hover(at))
        page.wait_for(IS_OPEN)
        assert page.evaluate("document.querySelector('.pointed').textContent") == shown
        page.press("Escape")
        page.do(lambda page: page.mouse.move(2, 2))
