"""Insights in a real browser, on the service's page and as a file: text by people is escaped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kit.api import run_server
from kit.browser import Browser, needs_browser
from kit.guarded import ADMIN, SECRET, GuardedStore, guarded
from kit.reporting import leave_table
from kit.xss import KINDS, PAYLOADS

from pipelines.insights.insights import gather_insights
from pipelines.insights.report import as_html
from pipelines.store import AskedQuestion

pytestmark = [pytest.mark.slow, needs_browser]

NOW = datetime.now(UTC)
SOURCE = "https://docs.example.com/guide.html#a"
SHOWN = "[...document.querySelectorAll('main *, header *')]"
OPEN_ALL = """(async () => {
  for (;;) {
    const more = [...document.querySelectorAll('button.more')];
    if (!more.length) break;
    more.forEach(button => button.click());
  }
  document.querySelectorAll('details').forEach(details => { details.open = true });
  await new Promise(done => setTimeout(done, 200));
})()"""
MAY_BE = {
    "A", "B", "BUTTON", "CAPTION", "CODE", "DETAILS", "DIV", "FORM", "H1", "H2", "H3", "I", "INPUT", "LABEL", "LI",
    "OL", "OPTION", "P", "SECTION", "SELECT", "SPAN", "SUMMARY", "TABLE", "TBODY", "TD", "TH", "THEAD", "TR", "UL",
    "circle", "g", "line", "polyline", "rect", "svg", "text", "title",
}  # fmt: skip


def evil(payload: str, days_ago: float) -> AskedQuestion:
    """Return a question with the payload everywhere that people, models or pages can write."""
    return AskedQuestion(
        payload, NOW - timedelta(days=days_ago), "docs", known=False, channel=payload, agent=payload, seconds=1.0,
        cited=(payload, SOURCE), found=(payload, SOURCE), cosines=(0.9,), downs=1, reasons=(payload, "outdated"),
        comments=(payload,), answer=payload,
    )  # fmt: skip


class AskedStore(GuardedStore):
    """A store whose questions, titles, headings and collections contain payloads."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = [evil(payload, n / 10) for n, (_, payload) in enumerate(PAYLOADS)]
        for _, payload in PAYLOADS[::20]:
            self.publish(payload)

    def count_asked(self, collection: str | None, since: datetime | None, until: datetime | None) -> int:
        return len(self._chosen(collection, since))

    @contextmanager
    def asked(
        self, collection: str | None, since: datetime | None, until: datetime | None, most: int | None
    ) -> Iterator[Iterator[AskedQuestion]]:
        yield iter(self._chosen(collection, since))

    def _chosen(self, collection: str | None, since: datetime | None) -> list[AskedQuestion]:
        return [r for r in self.rows if collection in (None, r.collection) and (since is None or r.asked_at >= since)]

    def indexed_pages(self, index: int) -> dict[str, str]:
        return {f"https://docs.example.com/{n}.html": payload for n, (_, payload) in enumerate(PAYLOADS)}

    def indexed_sections(self, index: int, sources: Sequence[str]) -> dict[str, str]:
        return {source: source for source in sources}


@pytest.fixture(scope="module")
def store() -> AskedStore:
    return AskedStore()


@pytest.fixture(scope="module")
def url(store: AskedStore) -> Iterator[str]:
    with run_server(guarded(store, host="127.0.0.1", keys_required=True)) as url:  # type: ignore[arg-type]
        yield url


def enter(browser: Browser, key: str) -> None:
    browser.type("#key", key)
    browser.do(lambda page: page.get_by_role("button", name="Show the insights").click())


def check(browser: Browser, own: str) -> None:
    """Assert that nothing ran, loaded foreign files or violated a policy, and that links are marked web links."""
    browser.evaluate(OPEN_ALL)
    assert set(browser.evaluate(f"{SHOWN}.map(e => e.tagName)")) <= MAY_BE
    handlers = f"{SHOWN}.flatMap(e => e.getAttributeNames()).filter(name => /^on|^src|^style.*url|action/.test(name))"
    assert browser.evaluate(handlers) == []
    assert {*browser.evaluate("[...document.links].map(link => link.protocol)")} <= {"https:", "http:"}
    assert {*browser.evaluate("[...document.links].map(link => link.rel)")} == {"noopener noreferrer nofollow"}
    assert {*browser.evaluate("[...document.links].map(link => link.hostname)")} == {"docs.example.com"}
    assert not browser.evaluate("'pwned' in window")
    assert browser.named("Page.javascriptDialogOpening") == []
    assert [event["entry"]["text"] for event in browser.named("Log.entryAdded")] == []
    assert [asked for asked in browser.requests() if not asked.startswith(own)] == []
    text = browser.evaluate("document.getElementById('report').textContent.replace(/\\s+/g, ' ')")
    missing = [payload for _, payload in PAYLOADS if " ".join(payload.split()) not in " ".join(text.split())]
    assert len(missing) < len(PAYLOADS) / 4  # the lists are limited, and masked text reads differently


# One element of each list, table and bar chart: axe takes half a minute for thousands that differ only in their words.
KEEP_THREE = """document.querySelectorAll('ol, ul, tbody').forEach(list =>
  [...list.children].slice(3).forEach(element => element.remove()))"""


@pytest.mark.parametrize(
    ("width", "dark"), [(390, True), pytest.param(1280, False, marks=pytest.mark.exhaustive)], ids=["narrow", "wide"]
)
def test_no_payload_runs_on_the_page_and_axe_finds_nothing(browser, url, request, width, dark):
    browser.open(f"{url}/insights", dark=True)
    assert browser.violations() == []
    enter(browser, ADMIN)
    browser.wait_for("!document.getElementById('report').hidden")
    check(browser, url)
    browser.emulate(width, dark=dark)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    browser.evaluate(KEEP_THREE)
    assert browser.violations("document") == []
    rows = [(kind, str(len(payloads)), str(len(payloads))) for kind, payloads in KINDS.items()]
    leave_table(request.config, "XSS suite in chromium (insights)", ("payloads", "tried", "held"), rows)


def test_page_requests_a_key_and_refuses_a_wrong_one(browser: Browser, url: str) -> None:
    browser.open(f"{url}/insights")
    assert [asked for asked in browser.requests() if "/admin" in asked] == []
    enter(browser, "rdx_" + "z" * 43)
    browser.wait_for("document.getElementById('problem').textContent.includes('unknown, revoked or expired')")
    enter(browser, SECRET)
    browser.wait_for("document.getElementById('problem').textContent.includes('scope admin')")
    assert browser.evaluate("document.getElementById('report').hidden && sessionStorage.length === 0")
    enter(browser, ADMIN)
    browser.wait_for("!document.getElementById('report').hidden")
    browser.do(lambda page: page.reload())
    browser.wait_for("!document.getElementById('report').hidden")
    assert browser.evaluate("localStorage.length === 0 && document.cookie === ''")
    browser.do(lambda page: page.get_by_role("button", name="Forget the key").click())
    assert browser.evaluate("sessionStorage.length === 0 && document.getElementById('report').hidden")


def test_collection_and_period_filter_the_page(browser: Browser, url: str, store: AskedStore) -> None:
    browser.open(f"{url}/insights")
    enter(browser, ADMIN)
    browser.wait_for(f"document.getElementById('about').textContent.startsWith('{len(PAYLOADS)} questions')")
    browser.do(lambda page: page.select_option("#window", "7"))
    recent = sum(row.asked_at >= NOW - timedelta(days=7) for row in store.rows)
    browser.wait_for(f"/^{recent} |^{recent - 1} /.test(document.getElementById('about').textContent)")
    browser.do(lambda page: page.select_option("#window", "0"))
    browser.do(lambda page: page.select_option("#collection", PAYLOADS[20][1]))
    browser.wait_for("document.getElementById('about').textContent.startsWith('0 questions')")


@pytest.mark.exhaustive
def test_no_payload_runs_in_the_report_file(browser: Browser, store: AskedStore, tmp_path: Path) -> None:
    file = tmp_path / "insights.html"
    file.write_text(as_html(gather_insights(store, lambda _: None)), encoding="utf-8")
    browser.open(f"file://{file}")
    browser.wait_for("!document.getElementById('report').hidden")
    check(browser, f"file://{file}")
    assert browser.violations() == []
    browser.do(lambda page: page.select_option("#window", "7"))
    assert browser.evaluate("!document.getElementById('about').textContent.startsWith('" + str(len(PAYLOADS)) + "')")
