"""The widget in a real browser, on pages of another origin, with a publishable key and sessions of the real guard."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from kit.browser import Browser, needs_browser
from kit.hosting import SECRET, Hosting, run_hosting

from pipelines.text.languages import read_texts

pytestmark = [pytest.mark.slow, needs_browser]

SHADOW = "document.querySelector('raydex-widget')?.shadowRoot"
CHAT = f"{SHADOW}.querySelector('raydex-chat').shadowRoot"
CHAT_OR_NOT = f"{SHADOW}.querySelector('raydex-chat')?.shadowRoot"
FOCUS = (
    "(function of(root) { const at = root.activeElement; "
    "return at?.shadowRoot?.activeElement ? of(at.shadowRoot) : at })(document)"
)
QUESTION = "How do I load csv files?"
GUIDE = """<main><h1>Guide</h1><p id="text">The reader loads comma separated files.</p>
<button id="own">Own</button></main>"""
# What docs/widget.md says that a page must allow; img-src is for the page's own icon.
STRICT = (
    "default-src 'none'; script-src {0}; connect-src {0}; style-src 'none'; img-src data:; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
LOUD = """<style>html { font-size: 62.5% } div, dialog { border: 9px solid red !important }
* { letter-spacing: 5px !important; color: red !important; font-family: fantasy !important }
button { display: none !important } raydex-widget, raydex-chat { display: none; opacity: .1 }
body { text-transform: uppercase; line-height: 3; direction: rtl; text-align: right }</style>"""
LOOK = ["letterSpacing", "color", "fontFamily", "fontSize", "display", "borderTopWidth", "direction", "width"]


@pytest.fixture(scope="module")
def running() -> Iterator[Hosting]:
    with run_hosting() as service:
        yield service


@pytest.fixture
def service(running: Hosting) -> Hosting:
    running.store.left = 1e9
    running.engine.__init__(running.store)  # type: ignore[misc]
    running.witness.asked.clear()
    return running


def show(browser: Browser, url: str, **more: Any) -> None:
    """Open a page and wait for its widget."""
    browser.open(url, **more)
    browser.wait_for(f"!!{SHADOW}?.querySelector('.launcher')")


def open_chat(browser: Browser) -> None:
    browser.click("raydex-widget .launcher")
    browser.wait_for(f"!!{SHADOW}.querySelector('raydex-chat')?.shadowRoot.querySelector('.welcome')")


def ask(browser: Browser, question: str = QUESTION) -> None:
    """Type a question where the focus is, and wait for its answer."""
    turns = browser.count("raydex-chat .foot .actions")
    browser.do(lambda page: page.keyboard.type(question))
    browser.press("Enter")
    browser.do(lambda page: page.locator("raydex-chat .foot .actions").nth(turns).wait_for())


def complaints(browser: Browser) -> list[str]:
    """What the browser put into its log: policies violated, files not found."""
    entries = [event["entry"] for event in browser.named("Log.entryAdded")]
    lines = [f"{entry['text']} {entry.get('url', '')}" for entry in entries]
    return [line for line in lines if not line.endswith("/collections/docs")]  # the scripted store describes none


def test_a_reader_asks_from_another_origin(service: Hosting, browser: Browser) -> None:
    url = service.put("/guide.html", head=service.tag(), body=GUIDE)
    show(browser, url)
    open_chat(browser)
    ask(browser)
    assert "to load it" in browser.text("raydex-chat .answer")
    assert service.engine.asks[-1].collection == "docs"
    row = service.recorder.rows[-1]
    assert (row["channel"], row["page"]) == ("widget", url)
    assert str(row["key"]).startswith("docs-site/")
    ask(browser, "And then?")
    assert service.recorder.rows[-1]["conversation"]
    assert complaints(browser) == []


def test_what_is_typed_while_the_chat_is_loaded_is_not_lost(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    browser.evaluate(f"{SHADOW}.querySelector('.launcher').click()")
    browser.do(lambda page: page.keyboard.type("How do I load"))
    browser.do(lambda page: page.locator("raydex-chat .welcome").wait_for())
    browser.do(lambda page: page.keyboard.type(" csv?"))
    browser.wait_for(f"{CHAT}.querySelector('textarea').value === 'How do I load csv?'")


@pytest.mark.parametrize(
    ("html", "attributes", "language"), [('lang="de-CH"', {}, "de"), ('lang="en"', {"lang": "ja"}, "ja")]
)
def test_the_widget_speaks_the_language_of_the_page_or_the_one_it_is_told(service, browser, html, attributes, language):
    texts = read_texts(language)["launcher"] | read_texts(language)["page"]
    show(browser, service.put("/guide.html", head=service.tag(**attributes), body=GUIDE, html=html), width=360)
    assert browser.text("raydex-widget .launcher") == texts["ask"]
    assert browser.evaluate("document.querySelector('raydex-widget').lang") == language
    open_chat(browser)
    ask(browser)
    assert browser.text("raydex-chat .label") == texts["sources"]
    assert service.engine.asks[-1].language == language
    browser.press("Escape", "Control+k")
    browser.do(lambda page: page.keyboard.type("csv"))
    browser.wait_for(f"{SHADOW}.querySelector('.search .note')?.textContent.includes('1')")
    assert browser.evaluate(f"{SHADOW}.querySelector('.search input').placeholder") == texts["search_docs"]
    assert browser.violations(SHADOW.replace("?", "") + ".host") == [] and complaints(browser) == []


def test_what_a_page_loads_before_the_chat_is_opened_is_small(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    loaded = [url for url in browser.requests() if url.startswith(service.url)]
    texts = [browser.evaluate(f"fetch('{url}').then(reply => reply.text())") for url in loaded]
    sizes = {url.rpartition("/")[2]: len(gzip.compress(text.encode())) for url, text in zip(loaded, texts, strict=True)}
    assert sum(sizes.values()) < 11_000, sizes
    assert "chat.js" not in sizes
    assert service.witness.to("/session") == []


def test_a_secret_key_is_refused_with_the_reason_and_never_sent(service: Hosting, browser: Browser) -> None:
    said: list[str] = []
    browser.do(lambda page: page.on("console", lambda message: said.append(message.text)))
    show(browser, service.put("/guide.html", head=service.tag(key=SECRET), body=GUIDE))
    browser.click("raydex-widget .launcher")
    browser.wait_for(f"!!{SHADOW}.querySelector('raydex-chat')?.shadowRoot.querySelector('.failure')")
    shown = browser.text("raydex-chat .failure")
    browser.press("Escape", "Control+k")
    browser.do(lambda page: page.keyboard.type("csv"))
    searched = browser.text("raydex-widget .search .note")
    for reason in (shown, searched, " ".join(said)):
        assert "secret key" in reason and f"raydex keys create NAME --publishable --origin {service.site.url}" in reason
        assert SECRET not in reason
    assert [asked.path for asked in service.witness.asked if asked.headers.get("authorization")] == []
    sent = json.dumps([(asked.path, asked.headers, asked.body.decode()) for asked in service.witness.asked])
    assert SECRET not in sent and service.witness.to("/session") == []


def test_what_is_no_publishable_key_is_never_sent(service: Hosting, browser: Browser) -> None:
    for key in ("RDX_" + "s" * 43, "sk-123", "pk_<script>", SECRET + " "):
        show(browser, service.put("/guide.html", head=service.tag(key=key.replace("<", "&lt;")), body=GUIDE))
        browser.click("raydex-widget .launcher")
        browser.wait_for(f"!!{SHADOW}.querySelector('raydex-chat')?.shadowRoot.querySelector('.failure')")
        assert "It was not sent" in browser.text("raydex-chat .failure")
    assert [asked.path for asked in service.witness.asked if asked.headers.get("authorization")] == []


EVERYTHING = """(function all(root) {
  return root.innerHTML + [...root.querySelectorAll('*')].map(e => e.shadowRoot ? all(e.shadowRoot) : '').join('')
})(document.documentElement) + JSON.stringify({...localStorage}) + document.cookie
+ Object.keys(window).filter(k => /raydex/i.test(k)).map(k => String(window[k])).join()"""


def test_a_session_is_kept_in_this_tab_alone_and_renewed_before_it_ends(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    ask(browser)
    ask(browser)
    (opened,) = service.witness.to("/session")
    assert opened.token.startswith("pk_") and "x-raydex-renew" not in opened.headers
    first = service.witness.to("/query/stream")[-1].token
    assert first.startswith("rds_") and first[4:40] not in browser.evaluate(EVERYTHING)
    browser.evaluate("{const now = Date.now; Date.now = () => now() + 3570e3}; 0")
    ask(browser)
    assert service.witness.to("/session")[-1].headers["x-raydex-renew"] == first
    assert len({row["key"] for row in service.recorder.rows[-3:]}) == 1, "the session is the same"


def test_a_session_that_is_refused_is_opened_anew(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    ask(browser)

    def spoil(route: Any) -> None:
        headers = {**route.request.headers, "authorization": "Bearer rds_" + "x" * 139}
        route.continue_(headers=headers)

    browser.do(lambda page: page.route("**/query/stream", spoil, times=1))
    ask(browser)
    tokens = [asked.token for asked in service.witness.to("/query/stream")]
    assert len(tokens) == 3 and "xxx" in tokens[1] and "xxx" not in tokens[2]
    assert len(service.witness.to("/session")) == 2
    assert browser.count("raydex-chat .failure") == 0


def test_settings_that_make_no_sense_are_said_and_left_out(service: Hosting, browser: Browser) -> None:
    said: list[str] = []
    browser.do(lambda page: page.on("console", lambda message: said.append(message.text)))
    tag = service.tag(accent="banana", position="top", mode="launcher popup", tittle="Ask")
    show(browser, service.put("/guide.html", head=tag, body=GUIDE))
    for wrong in ('data-accent="banana" is not a CSS colour', 'data-position="top"', "launcher popup", "data-tittle"):
        assert any(wrong in text for text in said), (wrong, said)
    assert (
        browser.evaluate(f"getComputedStyle({SHADOW}.querySelector('.launcher')).backgroundColor") != "rgba(0, 0, 0, 0)"
    )


def test_a_conversation_goes_on_where_the_page_is_loaded_again_and_on_the_next_one(service, browser):
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    ask(browser)
    answer, key = browser.text("raydex-chat .answer"), service.recorder.rows[-1]["key"]
    show(browser, service.put("/next.html", head=service.tag(), body=GUIDE))
    browser.click("raydex-widget .launcher")
    browser.do(lambda page: page.locator("raydex-chat .turn").wait_for())
    assert browser.text("raydex-chat .answer") == answer
    browser.click("raydex-chat [name=question]")
    ask(browser, "And parquet?")
    assert service.recorder.rows[-1]["key"] == key, "the session is the same: its ratings and follow-ups hold"
    browser.click("raydex-chat .fresh")
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    assert browser.count("raydex-chat .turn") == 0


def test_a_chat_in_the_page_and_one_over_it_keep_their_own(service: Hosting, browser: Browser) -> None:
    head = service.tag(mode="inline launcher", target="#text")
    show(browser, service.put("/guide.html", head=head, body=GUIDE))
    open_chat(browser)
    ask(browser)
    show(browser, service.put("/guide.html", head=head, body=GUIDE))
    browser.do(lambda page: page.locator("raydex-chat.inline .welcome").wait_for())
    assert browser.count("raydex-chat.inline .turn") == 0


def test_the_page_of_an_application_is_the_one_that_is_open(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/app", head=service.tag(), body=GUIDE))
    browser.evaluate(
        "history.pushState({}, '', '/app/install#linux'); document.body.innerHTML = '<main><h1>Install</h1></main>'"
    )
    browser.wait_for(f"!!{SHADOW}?.querySelector('.launcher')")
    open_chat(browser)
    ask(browser)
    assert service.recorder.rows[-1]["page"] == service.site.url + "/app/install#linux"
    assert browser.count("raydex-widget") == 1


def test_a_reader_says_that_questions_mean_the_open_page(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    ask(browser)
    assert not service.engine.asks[-1].about_page
    browser.click("raydex-chat .box [aria-label='Ask about this page']")
    ask(browser, "Which formats?")
    assert service.engine.asks[-1].about_page
    browser.click("raydex-chat .box [aria-label='Ask about this page']")
    ask(browser, "And then?")
    assert not service.engine.asks[-1].about_page


def test_two_tags_show_one_widget(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag() * 2, body=GUIDE + service.tag()))
    browser.evaluate(f"""new Promise(loaded => {{
      const tag = Object.assign(document.createElement('script'), {{src: '{service.url}/widget.js', onload: loaded}});
      document.head.append(tag)
    }}).then(() => new Promise(later => setTimeout(later, 300)))""")
    assert browser.count("raydex-widget") == 1
    assert browser.count("raydex-widget .launcher") == 1


def test_settings_may_stand_behind_the_address(service: Hosting, browser: Browser) -> None:
    tag = (
        service.tag().replace('widget.js" data-key="', "widget.js#key=").replace('" data-collection="', "&collection=")
    )
    assert "#key=pk_" in tag and "data-" not in tag
    show(browser, service.put("/guide.html", head=tag, body=GUIDE))
    open_chat(browser)
    ask(browser)
    assert service.engine.asks[-1].collection == "docs"


def test_search_as_one_types(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    browser.press("Control+k")
    browser.wait_for(f"{SHADOW}.querySelector('dialog.search')?.open === true")
    assert browser.evaluate(f"{FOCUS}.getAttribute('role')") == "combobox"
    browser.do(lambda page: page.keyboard.type("comma sep", delay=5))
    browser.do(lambda page: page.locator("raydex-widget .result mark").first.wait_for())
    searched = [json.loads(asked.body) for asked in service.witness.to("/search")]
    assert len(searched) < 4 and searched[-1]["question"] == "comma sep"
    assert searched[-1]["channel"] == "widget"
    assert (
        browser.do(lambda page: page.locator("raydex-widget .result").first.get_attribute("href"))
        == "https://d.test/data#csv"
    )
    chosen = f"{SHADOW}.querySelector('[aria-selected=true]')"
    active = f"{SHADOW}.querySelector('[role=combobox]').getAttribute('aria-activedescendant')"
    assert browser.evaluate(f"{chosen}.id === {active} && {chosen}.tagName") == "A"
    browser.press("ArrowDown")
    assert browser.evaluate(f"{chosen}.id === {active} && {chosen}.className") == "result ask"
    browser.press("ArrowDown")
    assert browser.evaluate(f"{chosen}.tagName") == "A", "the choice goes round"
    browser.press("ArrowUp", "Enter")
    browser.do(lambda page: page.locator("raydex-chat .foot .actions").wait_for())
    assert service.engine.asks[-1].question == "comma sep"
    assert not browser.evaluate(f"{SHADOW}.querySelector('dialog.search').open")


def test_enter_opens_the_chosen_section(service: Hosting, browser: Browser) -> None:
    service.engine.citations = ()
    url = service.put("/guide.html", head=service.tag(), body=GUIDE)
    object.__setattr__(service.engine.hit, "sources", (f"{url}#text",))
    show(browser, url)
    browser.press("Meta+k")
    browser.wait_for(f"{SHADOW}.querySelector('dialog.search')?.open === true")
    browser.do(lambda page: page.keyboard.type("comma"))
    browser.do(lambda page: page.locator("raydex-widget a.result").first.wait_for())
    href = browser.do(lambda page: page.locator("raydex-widget a.result").first.get_attribute("href"))
    browser.do(lambda page: page.route("https://d.test/**", lambda route: route.fulfill(body="<title>Data</title>")))
    browser.press("Enter")
    browser.wait_for(f"location.href === {href!r}")


def test_a_search_that_is_refused_says_so_and_the_assistant_stays_offered(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    browser.press("Control+k")
    browser.do(lambda page: page.keyboard.type("first"))
    browser.do(lambda page: page.locator("raydex-widget .result mark, raydex-widget a.result").first.wait_for())
    service.store.left = 0
    browser.do(lambda page: page.keyboard.type(" more"))
    browser.wait_for(f"{SHADOW}.querySelector('.note').textContent.includes('try again in 7 s')")
    assert browser.count("raydex-widget .result.ask") == 1


def test_the_shortcut_of_the_page_wins(service: Hosting, browser: Browser) -> None:
    own = "addEventListener('keydown', e => { if (e.key === 'k') { e.preventDefault(); window.owned = true } })"
    show(browser, service.put("/guide.html", head=f"<script>{own}</script>" + service.tag(), body=GUIDE))
    browser.press("Control+k")
    assert browser.evaluate("window.owned")
    assert browser.count("raydex-widget dialog[open]") == 0


def test_the_shortcuts_of_the_page_do_not_act_on_what_is_typed(service: Hosting, browser: Browser) -> None:
    own = "<script>window.keys = ''; document.addEventListener('keydown', e => { window.keys += e.key })</script>"
    show(browser, service.put("/guide.html", head=own + service.tag(), body=GUIDE))
    open_chat(browser)
    browser.do(lambda page: page.keyboard.type("s/"))
    assert browser.evaluate("window.keys") == ""


def test_selected_text_is_asked_about(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE + "<input value='a field of words'>"))
    browser.evaluate("getSelection().selectAllChildren(document.getElementById('text'))")
    browser.do(lambda page: page.locator("raydex-widget .offer").click())
    browser.do(lambda page: page.locator("raydex-chat textarea").first.wait_for())
    browser.wait_for(f"{CHAT}.querySelector('textarea').value.includes('comma separated')")
    browser.do(lambda page: page.keyboard.type("Which ones?"))
    browser.press("Enter")
    browser.do(lambda page: page.locator("raydex-chat .foot .actions").wait_for())
    assert service.engine.asks[-1].question == "“The reader loads comma separated files.”\n\nWhich ones?"


def test_the_offer_goes_with_the_selection_and_can_be_switched_off(service: Hosting, browser: Browser) -> None:
    shown = f"{SHADOW}.querySelector('.offer')?.hidden === false"
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    browser.evaluate("getSelection().selectAllChildren(document.getElementById('text'))")
    browser.wait_for(shown)
    browser.evaluate("getSelection().removeAllRanges()")
    browser.wait_for(f"!({shown})")
    show(browser, service.put("/off.html", head=service.tag(selection="off"), body=GUIDE))
    browser.evaluate("getSelection().selectAllChildren(document.getElementById('text'))")
    browser.do(lambda page: page.wait_for_timeout(600))
    assert not browser.evaluate(shown)


def test_an_inline_chat_stands_where_the_page_wants_it(service: Hosting, browser: Browser) -> None:
    tag = service.tag(mode="inline", target="#ask")
    browser.open(service.put("/guide.html", head=tag, body=GUIDE + "<div id='ask'></div>"))
    browser.do(lambda page: page.locator("#ask raydex-chat textarea").wait_for())
    assert browser.evaluate("document.activeElement === document.body"), "it does not take the focus"
    assert browser.count("raydex-widget") == 0
    browser.click("#ask raydex-chat textarea")
    ask(browser)
    assert "to load it" in browser.text("#ask raydex-chat .answer")
    browser.evaluate("document.body.innerHTML = '<section id=ask></section>'")
    browser.do(lambda page: page.locator("section#ask raydex-chat .answer").wait_for())


def test_an_inline_chat_without_a_target_stands_beside_its_tag(service: Hosting, browser: Browser) -> None:
    browser.open(service.put("/guide.html", body=f"<main><div id='here'>{service.tag(mode='inline')}</div></main>"))
    browser.do(lambda page: page.locator("#here raydex-chat textarea").wait_for())


def test_search_alone(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(mode="search"), body=GUIDE))
    browser.click("raydex-widget .launcher")
    browser.do(lambda page: page.keyboard.type("comma"))
    browser.do(lambda page: page.locator("raydex-widget a.result").first.wait_for())
    browser.press("ArrowUp", "Enter")
    browser.do(lambda page: page.locator("raydex-chat .foot .actions").wait_for())


def test_a_search_field_stands_where_the_page_wants_it(service: Hosting, browser: Browser) -> None:
    tag = service.tag(mode="search", target="header")
    browser.open(service.put("/guide.html", head=tag, body=f"<header></header>{GUIDE}"))
    browser.do(lambda page: page.locator("header raydex-search .field").wait_for())
    assert "Ctrl K" in browser.text("header raydex-search .field")
    assert browser.count("raydex-widget .launcher") == 0
    browser.click("header raydex-search .field")
    browser.do(lambda page: page.keyboard.type("comma"))
    browser.do(lambda page: page.locator("raydex-widget a.result").first.wait_for())
    assert browser.violations() == []


def test_it_works_under_a_strict_policy(service: Hosting, browser: Browser) -> None:
    policy = STRICT.format(service.url)
    url = service.put("/strict.html", head=service.tag(accent="#b3261e"), body=GUIDE, Content_Security_Policy=policy)
    show(browser, url)
    open_chat(browser)
    ask(browser)
    browser.press("Escape", "Control+k")
    browser.do(lambda page: page.keyboard.type("comma"))
    browser.do(lambda page: page.locator("raydex-widget a.result").first.wait_for())
    assert complaints(browser) == []
    assert (
        browser.evaluate(f"getComputedStyle({SHADOW}.querySelector('.launcher')).backgroundColor") == "rgb(179, 38, 30)"
    )


def test_it_works_under_a_policy_of_nonces(service: Hosting, browser: Browser) -> None:
    policy = f"default-src 'none'; script-src 'nonce-abc' 'strict-dynamic'; connect-src {service.url}; img-src data:"
    tag = service.tag().replace("<script", "<script nonce='abc'")
    show(browser, service.put("/nonce.html", head=tag, body=GUIDE, Content_Security_Policy=policy))
    open_chat(browser)
    ask(browser)
    assert complaints(browser) == []


def test_no_style_leaks_in_or_out(service: Hosting, browser: Browser) -> None:
    look = f"(s => {LOOK}.map(n => s[n]))(getComputedStyle({SHADOW}.querySelector('.launcher')))"
    own = "(s => [...s].map(n => n + s[n]).join())(getComputedStyle(document.getElementById('text')))"
    show(browser, service.put("/plain.html", head=service.tag(), body=GUIDE))
    plain, with_widget = browser.evaluate(look), browser.evaluate(own)
    browser.open(service.put("/without.html", body=GUIDE))
    assert browser.evaluate(own) == with_widget
    show(browser, service.put("/loud.html", head=LOUD + service.tag(), body=GUIDE))
    assert browser.evaluate(look) == plain
    browser.evaluate(f"{SHADOW}.querySelector('.launcher').click()")
    browser.do(lambda page: page.locator("raydex-chat .lead").wait_for())
    assert browser.evaluate(f"getComputedStyle({CHAT}.querySelector('.rdx')).fontSize") == "16px"


def test_the_keyboard_stays_in_the_dialog_and_escape_leads_back(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    browser.press("Tab", "Tab")
    assert browser.evaluate(f"{FOCUS}.className") == "launcher"
    browser.press("Enter")
    browser.wait_for(f"{FOCUS}.tagName === 'TEXTAREA'")
    inside = f"{SHADOW}.querySelector('dialog.panel').contains({FOCUS}) || {CHAT}.contains({FOCUS})"
    places = set()
    for key in ["Tab"] * 6 + ["Shift+Tab"] * 9:
        browser.press(key)
        assert browser.evaluate(inside), key
        places.add(browser.evaluate(f"{FOCUS}.getAttribute('aria-label') ?? {FOCUS}.textContent"))
    assert {"Close", "Your question"} <= places
    browser.press("Escape")
    assert browser.count("raydex-widget dialog[open]") == 0
    assert browser.evaluate(f"{FOCUS}.className") == "launcher"


def test_escape_first_stops_an_answer(service: Hosting, browser: Browser) -> None:
    service.engine.hangs = True
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    browser.do(lambda page: page.keyboard.type(QUESTION))
    browser.press("Enter")
    browser.do(lambda page: page.locator("raydex-chat button[aria-label=Stop]").wait_for())
    browser.press("Escape")
    browser.do(lambda page: page.locator("raydex-chat button[aria-label=Ask]").wait_for())
    assert browser.count("raydex-widget dialog.panel[open]") == 1
    browser.press("Escape")
    assert browser.count("raydex-widget dialog[open]") == 0


@pytest.mark.parametrize(
    "size",
    [
        {"width": 390, "dark": True},
        *(
            pytest.param(size, marks=pytest.mark.exhaustive)
            for size in ({"width": 1280}, {"width": 800, "reduced_motion": True})
        ),
    ],
)
def test_everything_is_accessible(service: Hosting, browser: Browser, size: dict[str, Any]) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE), **size)
    browser.do(lambda page: page.wait_for_timeout(300))
    assert browser.violations() == []
    browser.evaluate("getSelection().selectAllChildren(document.getElementById('text'))")
    browser.wait_for(f"{SHADOW}.querySelector('.offer')?.hidden === false")
    assert browser.violations() == []
    open_chat(browser)
    browser.do(lambda page: page.wait_for_timeout(300))
    assert browser.violations() == []
    ask(browser)
    assert browser.violations() == []
    browser.press("Escape", "Control+k")
    browser.do(lambda page: page.keyboard.type("comma"))
    browser.do(lambda page: page.locator("raydex-widget a.result").first.wait_for())
    browser.do(lambda page: page.wait_for_timeout(300))
    assert browser.violations() == []


def test_a_phone_shows_the_chat_on_its_whole_screen(service: Hosting, browser: Browser) -> None:
    show(
        browser,
        service.put(
            "/guide.html", head='<meta name="viewport" content="width=device-width">' + service.tag(), body=GUIDE
        ),
        width=390,
        height=800,
    )
    open_chat(browser)
    browser.do(lambda page: page.wait_for_timeout(300))
    box = browser.evaluate(f"{SHADOW}.querySelector('dialog.panel').getBoundingClientRect().toJSON()")
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 390, 800)
    assert browser.evaluate("document.documentElement.scrollWidth") == 390


COLOURS = [
    ('lang="en"', "", False, "light"),
    ('lang="en"', "", True, "dark"),
    ('lang="en" data-theme="dark"', "", False, "dark"),
    ('lang="en" data-theme="light"', "", True, "light"),
    ('lang="en" data-bs-theme="dark"', "", False, "dark"),
    ('lang="en" class="dark"', "", False, "dark"),
    ('lang="en" data-theme="auto"', "body { background: #123 }", False, "dark"),
    ('lang="en"', "body { background: #fff }", True, "light"),
]


def test_it_has_the_colours_of_the_page(service: Hosting, browser: Browser) -> None:
    for html, style, prefers_dark, expected in COLOURS:
        head = f"<style>{style}</style>" + service.tag()
        show(browser, service.put("/guide.html", head=head, body=GUIDE, html=html), dark=prefers_dark)
        scheme = browser.evaluate("document.querySelector('raydex-widget').dataset.scheme")
        assert scheme == expected, (html, style, prefers_dark)


def test_it_follows_the_page_when_its_theme_changes(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    open_chat(browser)
    browser.evaluate("document.body.dataset.mdColorScheme = 'slate'")
    browser.wait_for("document.querySelector('raydex-widget').dataset.scheme === 'dark'")
    browser.wait_for(f"getComputedStyle({CHAT}.querySelector('.rdx')).backgroundColor !== 'rgb(255, 255, 255)'")


def test_title_label_and_place_are_attributes(service: Hosting, browser: Browser) -> None:
    tag = service.tag(
        title="Ask Acme", label="Help", placeholder="How can we help?", position="bottom-left", version="2"
    )
    show(browser, service.put("/guide.html", head=tag, body=GUIDE))
    assert browser.text("raydex-widget .launcher") == "Help"
    assert browser.evaluate(f"{SHADOW}.querySelector('.launcher').getBoundingClientRect().left") < 50
    open_chat(browser)
    assert browser.text("raydex-chat .name") == "Ask Acme"
    assert (
        browser.do(lambda page: page.locator("raydex-chat textarea").get_attribute("placeholder")) == "How can we help?"
    )


@pytest.mark.parametrize(
    "missing", ["**/widget/panel.js", "**/widget/dialogs.css", "**/chat/chat.js", "**/chat/chat.css"]
)
def test_a_service_that_was_away_is_said_and_asked_again(service: Hosting, browser: Browser, missing: str) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE))
    browser.do(lambda page: page.route(missing, lambda route: route.abort()))
    browser.evaluate(f"{SHADOW}.querySelector('.launcher').click()")
    said = "raydex-widget .failed, raydex-chat .failure"
    browser.do(lambda page: page.locator(said).first.wait_for())
    assert "can't be reached" in browser.text(said)
    browser.do(lambda page: page.unroute(missing))
    browser.evaluate(
        f"({CHAT_OR_NOT}?.querySelector('.failure button') ?? {SHADOW}.querySelector('.launcher')).click()"
    )
    browser.do(lambda page: page.locator("raydex-chat .welcome").wait_for())


def test_a_publishable_key_of_another_origin_is_not_set_up(service: Hosting, browser: Browser) -> None:
    service.put("/guide.html", head=service.tag(), body=GUIDE)
    show(browser, service.site.url.replace("127.0.0.1", "localhost") + "/guide.html")
    browser.click("raydex-widget .launcher")
    browser.do(lambda page: page.locator("raydex-chat .failure").wait_for())
    assert browser.count("raydex-chat input[type=password]") == 0, "a reader is not asked for a key"
