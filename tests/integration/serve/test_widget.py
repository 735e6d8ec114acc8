"""The widget in a real browser, on pages of another origin, with a publishable key and the real guard's sessions."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from kit.browser import Browser, needs_browser
from kit.hosting import SECRET, Hosting, run_hosting
from kit.processes import eventually

from pipelines.text.languages import read_texts

pytestmark = [pytest.mark.slow, needs_browser]

SHADOW = "document.querySelector('raydex-widget')?.shadowRoot"
CHAT = f"{SHADOW}.querySelector('raydex-chat').shadowRoot"
CHAT_OR_NOT = f"{SHADOW}.querySelector('raydex-chat')?.shadowRoot"
FOCUS = (
    "(function of(root) { const at = root.activeElement; "
    "return at?.shadowRoot?.activeElement ? of(at.shadowRoot) : at })(document)"
)
LAUNCHER_STYLE = f"getComputedStyle({SHADOW}.querySelector('.launcher'))"
QUESTION = "How do I load csv files?"
GUIDE = """<main><h1>Guide</h1><p id="text">The reader loads comma separated files.</p>
<button id="own">Own</button></main>"""
# The policy that docs/widget.md requires of a page; img-src is for the page's own icon.
STRICT = (
    "default-src 'none'; script-src {0}; connect-src {0}; style-src 'none'; img-src data:; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
NONCES = "default-src 'none'; script-src 'nonce-abc' 'strict-dynamic'; connect-src {0}; img-src data:"
SELECT = "getSelection().selectAllChildren(document.getElementById('text'))"
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


def show_guide(service: Hosting, browser: Browser, **attributes: str) -> None:
    """Show the guide with these attributes on the widget's tag."""
    show(browser, service.put("/guide.html", head=service.tag(**attributes), body=GUIDE))


def open_chat(browser: Browser) -> None:
    browser.click("raydex-widget .launcher")
    await_one(browser, "raydex-widget raydex-chat .welcome")  # an inline one is next to the widget


def await_one(browser: Browser, selector: str) -> None:
    """Wait until a matching element is visible."""
    browser.do(lambda page: page.locator(selector).first.wait_for())


def write(browser: Browser, text: str) -> None:
    """Type into the focused element."""
    browser.do(lambda page: page.keyboard.type(text))


def ask(browser: Browser, question: str = QUESTION) -> None:
    """Type a question into the focused chat (opened if there is none), and wait for its answer."""
    if not browser.count("raydex-chat"):
        open_chat(browser)
    turns = browser.count("raydex-chat .foot .actions")
    write(browser, question)
    browser.press("Enter")
    browser.do(lambda page: page.locator("raydex-chat .foot .actions").nth(turns).wait_for())


def search(browser: Browser, words: str) -> None:
    """Open the search with its shortcut, type, and wait for the results."""
    browser.press("Control+k")
    write(browser, words)
    await_one(browser, "raydex-widget a.result")


def complaints(browser: Browser) -> list[str]:
    """Return the browser's log: violated policies, missing files."""
    entries = [event["entry"] for event in browser.named("Log.entryAdded")]
    lines = [f"{entry['text']} {entry.get('url', '')}" for entry in entries]
    return [line for line in lines if not line.endswith("/collections/docs")]  # the scripted store describes none


def test_reader_asks_from_another_origin(service: Hosting, browser: Browser) -> None:
    url = service.put("/guide.html", head=service.tag(), body=GUIDE)
    show(browser, url)
    ask(browser)
    assert "to load it" in browser.text("raydex-chat .answer")
    assert service.engine.asks[-1].collection == "docs"
    row = service.recorder.rows[-1]
    assert (row["channel"], row["page"]) == ("widget", url)
    assert str(row["key_name"]).startswith("docs-site/")
    ask(browser, "And then?")
    assert service.recorder.rows[-1]["conversation"]
    assert complaints(browser) == []


def test_missing_collection_of_the_tag_is_not_replaced_by_another(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser, collection="docz")
    browser.click("raydex-widget .launcher")
    await_one(browser, "raydex-chat .failure")
    assert "docz" in browser.text("raydex-chat .failure")
    write(browser, QUESTION)
    browser.press("Enter")
    await_one(browser, "raydex-chat .turn .failure")
    assert "docz" in browser.text("raydex-chat .turn .failure")
    assert {asked.collection for asked in service.engine.asks} == {"docz"}


def test_text_typed_while_the_chat_loads_is_kept(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    browser.evaluate(f"{SHADOW}.querySelector('.launcher').click()")
    write(browser, "How do I load")
    await_one(browser, "raydex-chat .welcome")
    write(browser, " csv?")
    browser.wait_for(f"{CHAT}.querySelector('textarea').value === 'How do I load csv?'")


@pytest.mark.parametrize(
    ("html", "attributes", "language"), [('lang="de-CH"', {}, "de"), ('lang="en"', {"lang": "ja"}, "ja")]
)
def test_widget_uses_the_language_of_the_page_or_of_its_setting(service, browser, html, attributes, language):
    texts = read_texts(language)["launcher"] | read_texts(language)["page"]
    show(browser, service.put("/guide.html", head=service.tag(**attributes), body=GUIDE, html=html), width=360)
    assert browser.text("raydex-widget .launcher") == texts["ask"]
    assert browser.evaluate("document.querySelector('raydex-widget').lang") == language
    ask(browser)
    assert browser.text("raydex-chat .label") == texts["sources"]
    assert service.engine.asks[-1].language == language
    browser.press("Escape", "Control+k")
    write(browser, "csv")
    browser.wait_for(f"{SHADOW}.querySelector('.search .note')?.textContent.includes('1')")
    assert browser.evaluate(f"{SHADOW}.querySelector('.search input').placeholder") == texts["search_docs"]
    assert browser.violations(SHADOW.replace("?", "") + ".host") == [] and complaints(browser) == []


def test_tag_in_a_shadow_root_is_found_or_reported(service, browser) -> None:
    said: list[str] = []
    browser.do(lambda page: page.on("console", lambda message: said.append(message.text)))
    root = '<div id="host"><template shadowrootmode="{}"><p></p>{}</template></div>'
    show(browser, service.put("/guide.html", body=root.format("open", service.tag())))
    browser.open(service.put("/guide.html", body=root.format("open", service.tag(mode="inline"))))
    browser.wait_for("!!document.querySelector('#host').shadowRoot.querySelector('script + raydex-chat')")
    assert not said
    browser.open(service.put("/guide.html", body=root.format("closed", service.tag())))
    browser.wait_for("document.readyState === 'complete'")
    assert len(said) == 1 and "closed shadow root" in said[0]


def test_page_loads_little_before_the_chat_is_opened(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    loaded = [url for url in browser.requests() if url.startswith(service.url)]
    texts = [browser.evaluate(f"fetch('{url}').then(reply => reply.text())") for url in loaded]
    sizes = {url.rpartition("/")[2]: len(gzip.compress(text.encode())) for url, text in zip(loaded, texts, strict=True)}
    assert sum(sizes.values()) < 11_500, sizes
    assert "chat.js" not in sizes
    assert service.witness.to("/session") == []


def test_secret_key_is_refused_with_the_reason_and_never_sent(service: Hosting, browser: Browser) -> None:
    said: list[str] = []
    browser.do(lambda page: page.on("console", lambda message: said.append(message.text)))
    show_guide(service, browser, key=SECRET)
    browser.click("raydex-widget .launcher")
    await_one(browser, "raydex-chat .failure")
    shown = browser.text("raydex-chat .failure")
    browser.press("Escape", "Control+k")
    write(browser, "csv")
    searched = browser.text("raydex-widget .search .note")
    for reason in (shown, searched, " ".join(said)):
        assert "secret key" in reason and f"raydex keys create NAME --publishable --origin {service.site.url}" in reason
        assert SECRET not in reason
    assert [asked.path for asked in service.witness.asked if asked.headers.get("authorization")] == []
    sent = json.dumps([(asked.path, asked.headers, asked.body.decode()) for asked in service.witness.asked])
    assert SECRET not in sent and service.witness.to("/session") == []


def test_only_a_publishable_key_is_ever_sent(service: Hosting, browser: Browser) -> None:
    for key in ("RDX_" + "s" * 43, "sk-123", "pk_<script>", SECRET + " "):
        show_guide(service, browser, key=key.replace("<", "&lt;"))
        browser.click("raydex-widget .launcher")
        await_one(browser, "raydex-chat .failure")
        assert "It was not sent" in browser.text("raydex-chat .failure")
    assert [asked.path for asked in service.witness.asked if asked.headers.get("authorization")] == []


EVERYTHING = """(function all(root) {
  return root.innerHTML + [...root.querySelectorAll('*')].map(e => e.shadowRoot ? all(e.shadowRoot) : '').join('')
})(document.documentElement) + JSON.stringify({...localStorage}) + document.cookie
+ Object.keys(window).filter(k => /raydex/i.test(k)).map(k => String(window[k])).join()"""


def test_session_stays_in_its_tab_and_is_renewed_before_it_ends(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    ask(browser)
    ask(browser)
    (opened,) = service.witness.to("/session")
    assert opened.token.startswith("pk_") and "x-raydex-renew" not in opened.headers
    first = service.witness.to("/query/stream")[-1].token
    assert first.startswith("rds_") and first[4:40] not in browser.evaluate(EVERYTHING)
    browser.evaluate("{const now = Date.now; Date.now = () => now() + 3570e3}; 0")
    ask(browser)
    assert service.witness.to("/session")[-1].headers["x-raydex-renew"] == first
    assert len({row["key_name"] for row in service.recorder.rows[-3:]}) == 1, "the session is the same"


def test_refused_session_is_reopened(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
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


def test_invalid_settings_are_reported_and_ignored(service: Hosting, browser: Browser) -> None:
    said: list[str] = []
    browser.do(lambda page: page.on("console", lambda message: said.append(message.text)))
    show_guide(service, browser, accent="banana", position="top", mode="launcher popup", tittle="Ask")
    for wrong in ('data-accent="banana" is not a CSS colour', 'data-position="top"', "launcher popup", "data-tittle"):
        assert any(wrong in text for text in said), (wrong, said)
    assert browser.evaluate(f"{LAUNCHER_STYLE}.backgroundColor") != "rgba(0, 0, 0, 0)"


def test_conversation_continues_after_a_reload_and_on_the_next_page(service, browser):
    show_guide(service, browser)
    ask(browser)
    answer, key = browser.text("raydex-chat .answer"), service.recorder.rows[-1]["key_name"]
    show(browser, service.put("/next.html", head=service.tag(), body=GUIDE))
    browser.click("raydex-widget .launcher")
    await_one(browser, "raydex-chat .turn")
    assert browser.text("raydex-chat .answer") == answer
    browser.click("raydex-chat [name=question]")
    ask(browser, "And parquet?")
    assert service.recorder.rows[-1]["key_name"] == key, "the session is the same: its ratings and follow-ups hold"
    browser.click("raydex-chat .fresh")
    show_guide(service, browser)
    open_chat(browser)
    assert browser.count("raydex-chat .turn") == 0


def test_inline_and_floating_chats_keep_separate_conversations(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser, mode="inline launcher", target="#text")
    open_chat(browser)
    ask(browser)
    show_guide(service, browser, mode="inline launcher", target="#text")
    await_one(browser, "raydex-chat.inline .welcome")
    assert browser.count("raydex-chat.inline .turn") == 0


def test_open_page_follows_navigation_in_a_single_page_app(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/app", head=service.tag(), body=GUIDE))
    browser.evaluate(
        "history.pushState({}, '', '/app/install#linux'); document.body.innerHTML = '<main><h1>Install</h1></main>'"
    )
    browser.wait_for(f"!!{SHADOW}?.querySelector('.launcher')")
    ask(browser)
    assert service.recorder.rows[-1]["page"] == service.site.url + "/app/install#linux"
    assert browser.count("raydex-widget") == 1


def test_reader_can_ask_about_the_open_page(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    ask(browser)
    assert not service.engine.asks[-1].about_page
    browser.click("raydex-chat .box [aria-label='Ask about this page']")
    ask(browser, "Which formats?")
    assert service.engine.asks[-1].about_page
    browser.click("raydex-chat .box [aria-label='Ask about this page']")
    ask(browser, "And then?")
    assert not service.engine.asks[-1].about_page


def test_several_tags_show_one_widget(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag() * 2, body=GUIDE + service.tag()))
    browser.do(lambda page: page.add_script_tag(url=f"{service.url}/widget.js"))
    browser.do(lambda page: page.wait_for_timeout(300))
    assert browser.count("raydex-widget") == 1
    assert browser.count("raydex-widget .launcher") == 1


def test_settings_can_follow_the_script_address(service: Hosting, browser: Browser) -> None:
    tag = service.tag().replace('" data-key="', "#key=").replace('" data-collection="', "&collection=")
    assert "#key=pk_" in tag and "data-" not in tag
    show(browser, service.put("/guide.html", head=tag, body=GUIDE))
    ask(browser)
    assert service.engine.asks[-1].collection == "docs"


def test_results_are_shown_while_a_reader_types(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    browser.press("Control+k")
    browser.wait_for(f"{SHADOW}.querySelector('dialog.search')?.open === true")
    assert browser.evaluate(f"{FOCUS}.getAttribute('role')") == "combobox"
    browser.do(lambda page: page.keyboard.type("comma sep", delay=5))
    await_one(browser, "raydex-widget .result mark")
    searched = [json.loads(asked.body) for asked in service.witness.to("/search")]
    assert len(searched) < 4 and (searched[-1]["question"], searched[-1]["channel"]) == ("comma sep", "widget")
    first = browser.do(lambda page: page.locator("raydex-widget .result").first.get_attribute("href"))
    assert first == "https://d.test/data#csv"
    chosen = f"{SHADOW}.querySelector('[aria-selected=true]')"
    active = f"{SHADOW}.querySelector('[role=combobox]').getAttribute('aria-activedescendant')"
    assert browser.evaluate(f"{chosen}.id === {active} && {chosen}.tagName") == "A"
    browser.press("ArrowDown")
    assert browser.evaluate(f"{chosen}.id === {active} && {chosen}.className") == "result ask"
    browser.press("ArrowDown")
    assert browser.evaluate(f"{chosen}.tagName") == "A", "the choice goes round"
    browser.press("ArrowUp", "Enter")
    await_one(browser, "raydex-chat .foot .actions")
    assert service.engine.asks[-1].question == "comma sep"
    assert not browser.evaluate(f"{SHADOW}.querySelector('dialog.search').open")


def test_opened_results_are_reported_to_the_service_without_a_cookie(service: Hosting, browser: Browser) -> None:
    service.store.clicks.clear()
    show_guide(service, browser)
    ask(browser)
    browser.do(lambda page: page.locator("raydex-chat .shelf a.card").first.click())
    browser.do(lambda page: page.wait_for_timeout(200))
    browser.press("Control+k")
    write(browser, "comma sep")
    await_one(browser, "raydex-widget a.result mark")
    browser.press("Enter")
    eventually(lambda: len(service.witness.to("/clicks")) == 2, "both clicks arrive")
    opened = service.witness.to("/clicks")
    answer, found = (json.loads(click.body) for click in opened)
    assert (answer["source"], found["source"]) == ("https://d.test/data#csv",) * 2
    assert answer["id"] == service.recorder.rows[-1]["id"]
    assert [set(json.loads(click.body)) for click in opened] == [{"id", "source"}] * 2
    assert not any("cookie" in click.headers for click in opened)
    eventually(lambda: service.store.clicks == {("comma sep", "https://d.test/data#csv")}, "the search's is recorded")


def test_enter_opens_the_selected_section(service: Hosting, browser: Browser) -> None:
    service.engine.citations = ()
    url = service.put("/guide.html", head=service.tag(), body=GUIDE)
    object.__setattr__(service.engine.hit, "sources", (f"{url}#text",))
    show(browser, url)
    browser.press("Meta+k")
    browser.wait_for(f"{SHADOW}.querySelector('dialog.search')?.open === true")
    write(browser, "comma")
    await_one(browser, "raydex-widget a.result")
    href = browser.do(lambda page: page.locator("raydex-widget a.result").first.get_attribute("href"))
    browser.do(lambda page: page.route("https://d.test/**", lambda route: route.fulfill(body="<title>Data</title>")))
    browser.press("Enter")
    browser.wait_for(f"location.href === {href!r}")


def test_refused_search_says_so_and_still_offers_the_assistant(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    browser.press("Control+k")
    write(browser, "first")
    await_one(browser, "raydex-widget .result mark, raydex-widget a.result")
    service.store.left = 0
    write(browser, " more")
    browser.wait_for(f"{SHADOW}.querySelector('.note').textContent.includes('try again in 7 s')")
    assert browser.count("raydex-widget .result.ask") == 1


def test_shortcuts_of_the_page_win_and_typing_triggers_none(service: Hosting, browser: Browser) -> None:
    own = "keys = ''; addEventListener('keydown', e => { keys += e.key; if (e.key === 'k') e.preventDefault() })"
    show(browser, service.put("/guide.html", head=f"<script>{own}</script>" + service.tag(), body=GUIDE))
    browser.press("Control+k")
    assert browser.evaluate("keys").endswith("k") and browser.count("raydex-widget dialog[open]") == 0
    open_chat(browser)
    browser.evaluate("keys = ''")
    write(browser, "s/")
    assert browser.evaluate("keys") == ""


def test_selected_text_can_be_asked_about(service: Hosting, browser: Browser) -> None:
    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE + "<input value='a field of words'>"))
    browser.evaluate(SELECT)
    browser.do(lambda page: page.locator("raydex-widget .offer").click())
    await_one(browser, "raydex-chat textarea")
    browser.wait_for(f"{CHAT}.querySelector('textarea').value.includes('comma separated')")
    write(browser, "Which ones?")
    browser.press("Enter")
    await_one(browser, "raydex-chat .foot .actions")
    assert service.engine.asks[-1].question == "“The reader loads comma separated files.”\n\nWhich ones?"


def test_selection_offer_ends_with_the_selection_and_can_be_disabled(service: Hosting, browser: Browser) -> None:
    shown = f"{SHADOW}.querySelector('.offer')?.hidden === false"
    show_guide(service, browser)
    browser.evaluate(SELECT)
    browser.wait_for(shown)
    browser.evaluate("getSelection().removeAllRanges()")
    browser.wait_for(f"!({shown})")
    show(browser, service.put("/off.html", head=service.tag(selection="off"), body=GUIDE))
    browser.evaluate(SELECT)
    browser.do(lambda page: page.wait_for_timeout(600))
    assert not browser.evaluate(shown)


def test_inline_chat_appears_in_its_target_or_next_to_its_tag(service: Hosting, browser: Browser) -> None:
    tag = service.tag(mode="inline", target="#ask")
    browser.open(service.put("/guide.html", head=tag, body=GUIDE + "<div id='ask'></div>"))
    await_one(browser, "#ask raydex-chat textarea")
    assert browser.evaluate("document.activeElement === document.body"), "it does not take the focus"
    assert browser.count("raydex-widget") == 0
    browser.click("#ask raydex-chat textarea")
    ask(browser)
    assert "to load it" in browser.text("#ask raydex-chat .answer")
    browser.evaluate("document.body.innerHTML = '<section id=ask></section>'")
    await_one(browser, "section#ask raydex-chat .answer")
    browser.open(service.put("/guide.html", body=f"<main><div id='here'>{service.tag(mode='inline')}</div></main>"))
    await_one(browser, "#here raydex-chat textarea")


def test_search_mode_finds_sections_and_can_open_the_chat(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser, mode="search")
    browser.click("raydex-widget .launcher")
    write(browser, "comma")
    await_one(browser, "raydex-widget a.result")
    browser.press("ArrowUp", "Enter")
    await_one(browser, "raydex-chat .foot .actions")


def test_search_field_appears_in_its_target(service: Hosting, browser: Browser) -> None:
    tag = service.tag(mode="search", target="header")
    browser.open(service.put("/guide.html", head=tag, body=f"<header></header>{GUIDE}"))
    await_one(browser, "header raydex-search .field")
    assert "Ctrl K" in browser.text("header raydex-search .field")
    assert browser.count("raydex-widget .launcher") == 0
    browser.click("header raydex-search .field")
    write(browser, "comma")
    await_one(browser, "raydex-widget a.result")
    assert browser.violations() == []


@pytest.mark.parametrize("policy", [STRICT, NONCES], ids=["strict", "nonces"])
def test_widget_works_under_a_content_security_policy(service: Hosting, browser: Browser, policy: str) -> None:
    tag = service.tag(accent="#b3261e").replace("<script", "<script nonce='abc'")
    show(browser, service.put("/a.html", head=tag, body=GUIDE, Content_Security_Policy=policy.format(service.url)))
    ask(browser)
    browser.press("Escape")
    search(browser, "comma")
    assert complaints(browser) == []
    assert browser.evaluate(f"{LAUNCHER_STYLE}.backgroundColor") == "rgb(179, 38, 30)"


def test_no_style_leaks_in_or_out(service: Hosting, browser: Browser) -> None:
    look = f"(s => {LOOK}.map(n => s[n]))({LAUNCHER_STYLE})"
    own = "(s => [...s].map(n => n + s[n]).join())(getComputedStyle(document.getElementById('text')))"
    show(browser, service.put("/plain.html", head=service.tag(), body=GUIDE))
    plain, with_widget = browser.evaluate(look), browser.evaluate(own)
    browser.open(service.put("/without.html", body=GUIDE))
    assert browser.evaluate(own) == with_widget
    show(browser, service.put("/loud.html", head=LOUD + service.tag(), body=GUIDE))
    assert browser.evaluate(look) == plain
    browser.evaluate(f"{SHADOW}.querySelector('.launcher').click()")
    await_one(browser, "raydex-chat .lead")
    assert browser.evaluate(f"getComputedStyle({CHAT}.querySelector('.rdx')).fontSize") == "16px"


def test_focus_stays_in_the_dialog_and_escape_returns_it(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
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


def test_escape_stops_an_answer_first(service: Hosting, browser: Browser) -> None:
    service.engine.hangs = True
    show_guide(service, browser)
    open_chat(browser)
    write(browser, QUESTION)
    browser.press("Enter")
    await_one(browser, "raydex-chat button[aria-label=Stop]")
    browser.press("Escape")
    await_one(browser, "raydex-chat button[aria-label=Ask]")
    assert browser.count("raydex-widget dialog.panel[open]") == 1
    browser.press("Escape")
    assert browser.count("raydex-widget dialog[open]") == 0


@pytest.mark.parametrize("size", [
    {"width": 390, "dark": True},
    pytest.param({"width": 1280}, marks=pytest.mark.exhaustive),
    pytest.param({"width": 800, "reduced_motion": True}, marks=pytest.mark.exhaustive),
])  # fmt: skip
def test_everything_is_accessible(service: Hosting, browser: Browser, size: dict[str, Any]) -> None:
    def check() -> None:
        browser.do(lambda page: page.wait_for_timeout(300))  # it fades in
        assert browser.violations() == []

    show(browser, service.put("/guide.html", head=service.tag(), body=GUIDE), **size)
    check()
    browser.evaluate(SELECT)
    browser.wait_for(f"{SHADOW}.querySelector('.offer')?.hidden === false")
    check()
    open_chat(browser)
    check()
    ask(browser)
    check()
    browser.press("Escape")
    search(browser, "comma")
    check()


def test_phone_shows_the_chat_full_screen(service: Hosting, browser: Browser) -> None:
    head = '<meta name="viewport" content="width=device-width">' + service.tag()
    show(browser, service.put("/guide.html", head=head, body=GUIDE), width=390, height=800)
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


def test_widget_uses_the_colors_of_the_page(service: Hosting, browser: Browser) -> None:
    for html, style, prefers_dark, expected in COLOURS:
        head = f"<style>{style}</style>" + service.tag()
        show(browser, service.put("/guide.html", head=head, body=GUIDE, html=html), dark=prefers_dark)
        scheme = browser.evaluate("document.querySelector('raydex-widget').dataset.scheme")
        assert scheme == expected, (html, style, prefers_dark)


def test_widget_follows_a_theme_change_of_the_page(service: Hosting, browser: Browser) -> None:
    show_guide(service, browser)
    open_chat(browser)
    browser.evaluate("document.body.dataset.mdColorScheme = 'slate'")
    browser.wait_for("document.querySelector('raydex-widget').dataset.scheme === 'dark'")
    browser.wait_for(f"getComputedStyle({CHAT}.querySelector('.rdx')).backgroundColor !== 'rgb(255, 255, 255)'")


def test_title_label_and_position_are_attributes(service: Hosting, browser: Browser) -> None:
    words = {"title": "Ask Acme", "label": "Help", "placeholder": "How can we help?"}
    show_guide(service, browser, **words, position="bottom-left", version="2")
    assert browser.text("raydex-widget .launcher") == "Help"
    assert browser.evaluate(f"{SHADOW}.querySelector('.launcher').getBoundingClientRect().left") < 50
    open_chat(browser)
    assert browser.text("raydex-chat .name") == "Ask Acme"
    assert browser.evaluate(f"{CHAT}.querySelector('textarea').placeholder") == "How can we help?"


@pytest.mark.parametrize(
    "missing", ["**/widget/panel.js", "**/widget/dialogs.css", "**/chat/chat.js", "**/chat/chat.css"]
)
def test_unreachable_service_is_reported_and_retried(service: Hosting, browser: Browser, missing: str) -> None:
    show_guide(service, browser)
    browser.do(lambda page: page.route(missing, lambda route: route.abort()))
    browser.evaluate(f"{SHADOW}.querySelector('.launcher').click()")
    said = "raydex-widget .failed, raydex-chat .failure"
    await_one(browser, said)
    assert "can't be reached" in browser.text(said)
    browser.do(lambda page: page.unroute(missing))
    browser.evaluate(
        f"({CHAT_OR_NOT}?.querySelector('.failure button') ?? {SHADOW}.querySelector('.launcher')).click()"
    )
    await_one(browser, "raydex-chat .welcome")


def test_publishable_key_of_another_origin_is_not_set_up(service: Hosting, browser: Browser) -> None:
    service.put("/guide.html", head=service.tag(), body=GUIDE)
    show(browser, service.site.url.replace("127.0.0.1", "localhost") + "/guide.html")
    browser.click("raydex-widget .launcher")
    await_one(browser, "raydex-chat .failure")
    assert browser.count("raydex-chat input[type=password]") == 0, "a reader is not asked for a key"
