"""XSS suite: more than 80 payloads go from a page through chunks and answers to a client, and none runs.

The answer is rendered as Markdown with raw HTML enabled, the most dangerous kind of client, and parsed. The suite with
a real browser and the service's own page is tests/integration/serve/test_xss_in_the_page.py.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import resources
from typing import Any, get_args

import pytest
from fastapi import FastAPI
from kit.reporting import leave_table
from kit.xss import KINDS, PAYLOADS, QUESTION, PoisonedAnswers, PoisonedRetriever, active_parts, hits_of
from markdown_it import MarkdownIt
from starlette.testclient import TestClient

from pipelines.answering.engine import QueryEngine
from pipelines.answering.verified.answer_finder import VerifiedFinder
from pipelines.llm.client import Completion
from pipelines.records import Message, Usage
from serve.api.openai.sources import WRITERS, SourcesPlace
from serve.web.pages import add_pages
from serve.web.static import FILES

MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": False})
DOCS = resources.files("serve").joinpath("web", "docs.html").read_text("utf-8")
OWN = {name: file.plain.decode() for name, file in FILES.items() if name.endswith(".js") and "vendor" not in name}
SCRIPTS = {**OWN, "docs.html": "".join(re.findall(r"<script>(.*?)</script>", DOCS, re.DOTALL))}
# Ways to turn text into markup or code.
SINKS = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "srcdoc", "eval(", "Function(", "DOMParser",
    "createContextualFragment", "setHTML", "javascript:", "location =", "location.href =",
    "setTimeout(\"",
)  # fmt: skip


class ObedientModel:
    """A model that repeats and cites everything it reads."""

    model, context_window, context_share, max_tokens = "obedient", 100_000, 0.5, 1_000

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: Sequence[Message], **_: Any) -> Completion:
        return Completion(f"{messages[-1].content} [1][2]", Usage())

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[str | Completion]:
        completion = await self.complete(messages)
        yield completion.text
        yield completion


def answers(payload: str) -> Iterator[str]:
    """Yield every text that clients show as Markdown: quoted, by a model, by a person, with sources in any place."""
    book = PoisonedAnswers()
    book.payload = payload
    for model, verified in ((None, False), (ObedientModel(), False), (None, True)):
        retriever = PoisonedRetriever(payload)
        finder = VerifiedFinder(book, retriever.aembed) if verified else None
        engine = QueryEngine(retriever, llm=model, verified=finder)
        answer = engine.query(QUESTION)
        assert (answer.agent == "verified") == verified
        for place in get_args(SourcesPlace):
            writer = WRITERS[place]()
            yield writer.feed(answer.text) + writer.close() + writer.list_sources(answer.citations)


def test_eighty_payloads_exist_and_each_is_active_in_rendered_markup() -> None:
    assert len(PAYLOADS) >= 80 and len({payload for _, payload in PAYLOADS}) == len(PAYLOADS)
    raw = [payload for kind in ("script", "handler") for payload in KINDS[kind] if payload.startswith("<")]
    harmless = [payload for payload in raw if not active_parts(payload)]
    assert len(harmless) <= 4, harmless  # those that need other markup around them, or a careless filter


@pytest.mark.parametrize(("name", "payload"), PAYLOADS, ids=[name for name, _ in PAYLOADS])
def test_no_payload_runs_in_an_answer(name: str, payload: str) -> None:
    for text in answers(payload):
        assert "gadget" in text.lower() and active_parts(MARKDOWN.render(text)) == [], text


def test_payloads_are_in_the_chunks_used_for_answers(request: pytest.FixtureRequest) -> None:
    """Otherwise the suite would prove nothing."""
    rows = []
    for kind, payloads in KINDS.items():
        kept = sum(_squeeze(p) in _squeeze(" ".join(hit.text for hit in hits_of(p))) for p in payloads)
        rows.append((kind, str(len(payloads)), str(kept), str(len(payloads))))
        assert kept >= 0.8 * len(payloads), kind
    leave_table(request.config, "XSS suite", ("payloads", "tried", "whole in a chunk", "held"), rows)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_has_no_unsafe_sink(name: str) -> None:
    assert [sink for sink in SINKS if sink in SCRIPTS[name]] == []
    assert re.findall(r'import\((?!"\./|new URL\().*', SCRIPTS[name]) == []  # modules are loaded from the same folder


@pytest.mark.parametrize("path", ["/", "/a/an-answer", "/docs"])
def test_page_has_no_inline_handlers_and_a_strict_policy(path: str) -> None:
    app = FastAPI(docs_url=None)
    add_pages(app)
    reply = TestClient(app).get(path)
    assert re.findall(r"\son\w+\s*=\s*[\"']", reply.text) == [] and re.findall(r"\sstyle\s*=", reply.text) == []
    policy = reply.headers["Content-Security-Policy"]
    directives: dict[str, str] = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    assert directives["frame-ancestors"] == "'none'" and directives["connect-src"] == "'self'"
    assert not re.search(r"unsafe|http|\*", policy)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    if path != "/docs":
        assert directives["script-src"] == directives["style-src"] == "'self'"
        assert directives["require-trusted-types-for"] == "'script'" and directives["trusted-types"] == "dompurify"


def _squeeze(text: str) -> str:
    return re.sub(r"[\s\ufeff\u200b\x0c]+", "", text)
