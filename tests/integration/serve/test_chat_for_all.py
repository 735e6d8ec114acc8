"""Accessibility of the chat page: screen readers, keyboards, phones, dark mode, reduced motion."""

import json
from dataclasses import replace

import pytest
from kit.browser import needs_browser
from kit.chat import Site

pytestmark = [pytest.mark.slow, needs_browser]
RICH = """## Steps

Call `read_csv` [1]:

```python
ds = ray.data.read_csv("s3://bucket/a-long-name-that-no-phone-is-wide-enough-for/and-more/of-it/file.csv")
```

| Format | Function | Notes |
|---|---|---|
| CSV | `ray.data.read_csv_with_a_long_name` | a note that is long enough to need more room than there is |

- One
- Two [1]
"""
# Each size and color scheme once. The exhaustive tier tests the other pairs.
SIZES = [
    (1280, True),
    (390, False),
    *(pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in ((1280, False), (390, True))),
]


@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_axe_finds_nothing(site: Site, width: int, dark: bool) -> None:
    """Checks the empty page, an answer with its comment form, an open card, an error, and a single answer's page."""
    site.engine.says = RICH
    site.store.publish("guide")
    site.store.default = "docs"
    page = site.open(width=width, dark=dark, reduced_motion=True)
    page.wait_for("!!document.querySelector('[name=collection]')")
    found = {"empty": page.violations()}
    site.ask()
    site.ask("And Parquet?")
    page.do(lambda page: page.locator("[aria-label='Bad answer']").last.click())
    found["answered"] = page.violations()
    page.do(lambda page: page.focus(".turn:last-child .number"))
    found["pointed"] = page.violations()
    page.do(lambda page: page.locator("[aria-label='Edit and ask again']").last.click())
    found["edited"] = page.violations()
    site.reply("/query/stream", 401, '{"error": "x", "kind": "no_key"}')
    site.ask("And then?")
    found["in error"] = page.violations()
    site.reply("/query/stream", 429, '{"error": "x", "kind": "rate", "retry_after": 9}')
    site.ask("And now?")
    found["limited"] = page.violations()
    if width < 800:
        page.click(".menu")
        found["listed"] = page.violations()
    site.open(f"/a/{site.engine.asks[0].id}", width=width, dark=dark)
    page.wait_for("!!document.querySelector('.answer .number')")
    found["one answer"] = page.violations()
    assert {state: violations for state, violations in found.items() if violations} == {}


def test_nothing_is_wider_than_a_phone(site: Site) -> None:
    site.engine.says, text = RICH, "It says very much of what was asked for. " * 9
    other = replace(site.engine.hit, anchors=("b",), sources=(), headings=("A long title " * 9, "Other"), text=text)
    site.engine.changes = {"hits": (site.engine.hit, other)}
    page = site.open_and_ask("A_question_that_is_one_very_long_word_" * 3, width=360, height=700)
    assert page.evaluate("document.querySelector('.found li').getBoundingClientRect().right <= innerWidth")
    too_wide = "(at => at.scrollWidth > at.clientWidth)(document.querySelector('{}'))"
    shown = {at: page.evaluate(too_wide.format(at)) for at in (".thread", "html", ".code pre")}
    assert shown == {".thread": False, "html": False, ".code pre": True}


# Elements that another part of the page covers, in their initial position and after scrolling to each of them.
COVERED = """(selector => {
  const box = element => element.getBoundingClientRect();
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const fixed = [...document.querySelectorAll('.composer, .top')];
  const found = [...document.querySelectorAll(selector)];
  const under = found.filter(one => fixed.some(part => !apart(box(one), box(part))));
  const hidden = found.filter(one => {
    one.scrollIntoView({block: 'center', behavior: 'instant'});
    const {left, top, width, height} = box(one);
    const shown = document.elementFromPoint(left + width / 2, top + height / 2);
    return !shown?.contains(one) && !one.contains(shown);
  });
  return {found: found.length, covered: [...under, ...hidden].map(one => one.textContent)};
})('%s')"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


# Windows of 1,280 by 1,024 and 1,280 by 900 pixels at 400%, and a small phone in landscape.
@pytest.mark.parametrize(("width", "height"), [(320, 256), (320, 225), (568, 320)])
def test_nothing_covers_the_page_text_at_400_percent(site: Site, width: int, height: int) -> None:
    about = {"name": "docs", "title": "Ray", "pages": 900, "chunks": 9, "published_at": None, "versions": []}
    more = {"languages": ["en"], "examples": ["How do I load files?", "What is a task?"]}
    site.reply("/collections/docs", 200, json.dumps({**about, **more}))
    page = site.open(width=width, height=height, reduced_motion=True)
    page.wait_for("!!document.querySelector('.examples')")
    welcome = page.evaluate(COVERED % ".welcome > p, .examples button")
    assert welcome["found"] == 4 and not welcome["covered"]
    assert not page.evaluate(TOO_WIDE)
    site.engine.says = "It reads a file. [1]\n\n" * 9
    site.ask()
    answer = page.evaluate(COVERED % ".question, .answer p")
    assert answer["found"] == 10 and not answer["covered"]
    assert not page.evaluate(TOO_WIDE)
    page.do(lambda page: page.click("[name=question]"))  # Playwright refuses to click an element covered by another


def test_reduced_motion_is_respected(site: Site) -> None:
    site.engine.holds_at = 3
    page = site.open(reduced_motion=True)
    site.send()
    page.wait_for("!!document.querySelector('.busy')")
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.thread')).scrollBehavior") == "auto"
    site.engine.gate.set()
    site.await_end()


def test_screen_reader_hears_events_but_not_every_word(site: Site) -> None:
    site.engine.holds_at = 3
    page = site.open()
    site.send()
    page.wait_for("document.querySelector('.answer')?.getAttribute('aria-busy') === 'true'")
    status = "document.querySelector('[role=status]').textContent"
    assert page.evaluate(status) == "Searching…"
    assert page.evaluate("!document.querySelector('.answer').closest('[aria-live], [role=status], [role=alert]')")
    site.engine.gate.set()
    page.wait_for(f"{status} === 'The answer is complete, with 1 source.'")
    assert page.evaluate("document.activeElement.name") == "question"
