"""Another site's page cannot make a reader's browser change or read anything of the local service.

Uses a real Chromium and the service with its defaults: this machine needs no key.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from kit.api import FakeEngine, run_server
from kit.browser import Browser, needs_browser
from kit.guarded import OTHER_SITE, SECRET, SITE, GuardedStore, SilentMetrics
from kit.hosting import Witness
from kit.reporting import leave_table
from kit.web import Site

from pipelines.store import Key
from serve.guard.policy import Policy, protect
from serve.routes import create_app

pytestmark = [pytest.mark.slow, needs_browser]

QUESTION = "JSON.stringify({question: 'How?'})"
JSON = "{'Content-Type': 'application/json'}"
# Each is a JavaScript expression, whose value is the text that the page could read.
ATTACKS = {
    "JSON": f"send('/query', {{headers: {JSON}, body: {QUESTION}}})",
    "JSON as plain text": f"send('/query', {{body: {QUESTION}}})",
    "no-cors": f"send('/query', {{mode: 'no-cors', body: {QUESTION}}})",
    "a stream": f"send('/query/stream', {{mode: 'no-cors', body: {QUESTION}}})",
    "a chat": f"send('/v1/chat/completions', {{mode: 'no-cors', body: {QUESTION}}})",
    "tools": "send('/mcp', {mode: 'no-cors', body: '{}'})",
    "a beacon": f"navigator.sendBeacon(base + '/search', new Blob([{QUESTION}])) && pause()",
    "a form": 'submit(\'/feedback\', \'{"id": "q", "rating": 1, "comment": "\', \'"}\')',
    "a session": "send('/session', {})",
    "a session, no-cors": "send('/session', {mode: 'no-cors'})",
    "a session, another site's key": f"send('/session', {{headers: {{Authorization: 'Bearer {SITE}'}}}})",
    "a secret key": f"send('/search', {{body: {QUESTION}, headers: {{Authorization: 'Bearer {SECRET}'}}}})",
    "a list": "fetch(base + '/collections').then(reply => reply.text())",
    "a list as a script": "load('script', 'src', '/collections')",
    "a list as an image": "load('img', 'src', '/collections')",
    "the schema as a style": "load('link', 'href', '/openapi.json')",
    "the page in a frame": "frame('/')",
    "a socket": "socket('/query')",
}
KIT = """
const pause = (ms = 200) => new Promise(done => setTimeout(done, ms, ''));
const send = (path, more) => fetch(base + path, {method: 'POST', ...more}).then(reply => reply.text());
const make = (tag, more) => document.body.appendChild(Object.assign(document.createElement(tag), more));
function submit(path, name, value) {
  make('iframe', {name: 'sink'});
  const form = make('form', {action: base + path, method: 'POST', enctype: 'text/plain', target: 'sink'});
  form.append(Object.assign(document.createElement('input'), {name, value}));
  form.submit();
  return pause();
}
function load(tag, attribute, path) {
  return new Promise(done => make(tag, {
    rel: 'stylesheet', onload: () => done('loaded'), onerror: () => done(''), [attribute]: base + path,
  }));
}
async function frame(path) {
  const frame = make('iframe', {src: base + path});
  await pause();
  return frame.contentDocument?.body?.innerText ?? '';
}
function socket(path) {
  return new Promise(done => {
    const socket = new WebSocket(base.replace('http', 'ws') + path);
    socket.onopen = () => done('open');
    socket.onerror = () => done('');
  });
}
"""


class World:
    """A service on the reader's machine, and a browser."""

    def __init__(self, url: str, app: Witness, browser: Browser) -> None:
        self.url, self._app, self._browser = url, app, browser

    @property
    def changed(self) -> list[str]:
        """The paths of requests that reached the application and could change something."""
        return [asked.path for asked in self._app.asked if asked.method not in ("GET", "HEAD", "OPTIONS")]

    def open(self, url: str) -> None:
        self._browser.open(url)
        self._app.asked.clear()

    def run(self, attack: str) -> Any:
        """Return the text that an attack could read. An attack without a reply for seconds reads nothing."""
        work = f"const base = '{self.url}'; {KIT} return await Promise.race([{attack}, pause(3000)]);"
        return self._browser.evaluate(f"(async () => {{ {work} }})().catch(error => '')")

    def ask_in_a_session(self, opening: str = "") -> Any:
        """Open a session with a request with these headers, and return the text that a question in it could read."""
        opened = self.run(f"send('/session', {{{opening}}}).then(JSON.parse)")
        headers = f"{{'Content-Type': 'application/json', Authorization: 'Bearer {opened['token']}'}}"
        return self.run(f"send('/query/stream', {{headers: {headers}, body: {QUESTION}}})")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site({"/": "<!doctype html><title>site</title><body>"}) as site:
        yield site


@pytest.fixture
def world(browser: Browser, site: Site, request: pytest.FixtureRequest) -> Iterator[World]:
    """A service with the defaults of `raydex serve`, or without any protection for the parameter False."""
    store = GuardedStore()
    store.keys[OTHER_SITE] = Key("other", ("ask",), origins=(site.url,))
    watched: Any = Witness(create_app(FakeEngine(store), store))  # type: ignore[arg-type]
    protected: Any = protect(watched, store, Policy(), SilentMetrics())
    with run_server(protected if getattr(request, "param", True) else watched) as url:
        yield World(url, watched, browser)


def elsewhere(site: Site) -> str:
    """Return the URL of the site's page under another host name, whose origin no key is bound to."""
    return site.url.replace("127.0.0.1", "localhost")


def test_page_of_another_site_cannot_query_or_read(world: World, site: Site, request: pytest.FixtureRequest) -> None:
    world.open(elsewhere(site))
    read = {name: world.run(attack) for name, attack in ATTACKS.items()}
    rows = [(name, str(text or "nothing")[:40]) for name, text in read.items()]
    leave_table(request.config, f"{len(ATTACKS)} attacks of another site's page", ("with", "it read"), rows)
    assert {name: text for name, text in read.items() if text} == {}
    assert world.changed == []


@pytest.mark.parametrize("world", [False], indirect=True, ids=["nothing protects"])
def test_these_attacks_succeed_against_an_unprotected_service(world: World, site: Site) -> None:
    world.open(elsewhere(site))
    for name in ("no-cors", "a form", "a beacon", "a session"):
        world.run(ATTACKS[name])
    assert world.changed == ["/query", "/feedback", "/search", "/session"]


def test_page_of_a_bound_origin_can_query_and_read(world: World, site: Site) -> None:
    world.open(site.url)
    assert "event: answer" in world.ask_in_a_session(f"headers: {{Authorization: 'Bearer {OTHER_SITE}'}}")
    assert world.changed == ["/session", "/query/stream"]


def test_page_of_an_unbound_origin_is_refused_with_the_reason(world: World, site: Site) -> None:
    world.open(elsewhere(site))
    client = f"new chat.Client({{base: base + '/', key: '{OTHER_SITE}'}})"
    told = world.run(
        "import(base + '/web/chat/texts.js').then(texts => texts.speak('page', 'en'))"
        f".then(() => import(base + '/web/chat/client.js')).then(chat => {client}.search('How?'))"
        ".catch(error => `${error.kind}: ${error.message}`)"
    )
    assert told.startswith("forbidden: ") and f"--publishable --origin {elsewhere(site)}" in told


def test_own_page_queries_with_a_session(world: World) -> None:
    world.open(world.url)
    assert "event: answer" in world.ask_in_a_session()
    refused = world.run(f"send('/query/stream', {{headers: {JSON}, body: {QUESTION}}})")
    assert "POST /session" in refused and world.changed.count("/query/stream") == 1
