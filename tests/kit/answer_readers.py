"""Lists every reader of text from models, pages and people: answer stages, reply parsers, writers, patterns.

Each reader takes a string and discards the result, so that hostile strings can be tried on all of them. `python -m
tests.kit.answer_readers` prints a table of the readers and shapes whose time grows superlinearly, and the slowest shape
of each reader.
"""

import ast
import asyncio
import contextlib
import html
import importlib
import importlib.util
import inspect
import io
import json
import os
import pkgutil
import re
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx
import openai
import regex
from kit.answering import make_hit
from kit.hostile import LENGTHS, SHAPES, Reader, in_deltas, timed

from jobs.ask import Follower, show
from pipelines.answering.conversation import background, followup, open_page, rewriting, smalltalk, two_questions
from pipelines.answering.grounding import support, words
from pipelines.answering.question import Question
from pipelines.answering.retrieval.neighbours import join_chunks
from pipelines.answering.retrieval.ranking import comparisons
from pipelines.answering.retrieval.ranking.texts import features
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.sanitizing.stream import AnswerSanitizer
from pipelines.answering.synthesis.base import Task
from pipelines.answering.synthesis.passages import split_passages, split_sentences, whole_steps
from pipelines.answering.synthesis.prompts import as_data, neutralize
from pipelines.answering.synthesis.quotes import Quote, hide_numbers
from pipelines.answering.synthesis.results import fill_results, write_results
from pipelines.answering.synthesis.shortening import cut_block
from pipelines.answering.synthesis.structured import parse_step
from pipelines.answering.synthesis.trimming import choose_parts
from pipelines.answering.trace import Trace
from pipelines.answering.verified import similarity
from pipelines.answering.writing import also_found, claims
from pipelines.answering.writing.agents import AgentPart, AgentResult, ExtractiveAgent
from pipelines.answering.writing.attribution import Attributor
from pipelines.answering.writing.draft import Draft
from pipelines.answering.writing.stages import TextStages, refusals
from pipelines.answering.writing.stages.text import Statement, TextReader, numbers_in, read_text
from pipelines.answering.writing.summary import SummaryFilter
from pipelines.answering.writing.writer import AnswerWriter
from pipelines.embedding.load import load_tokenizer
from pipelines.evaluation.answer_scores import token_f1
from pipelines.evaluation.judging import checks, dimensions, verdict
from pipelines.evaluation.questions import replies as question_replies
from pipelines.indexing.reading import formats
from pipelines.indexing.reading.formats import pdf
from pipelines.indexing.reading.formats.pdf_lines import Line, PageLines
from pipelines.indexing.reading.links import page_pointers
from pipelines.indexing.reading.read import read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.insights import masking
from pipelines.lexical import terms
from pipelines.llm import limits, marks, protocol, replies, tokens, window
from pipelines.llm.client import LLMSettings
from pipelines.llm.tool_calls import CallReader
from pipelines.page.blocks import read_blocks
from pipelines.page.cut.chunker import Chunker
from pipelines.page.markdown import markdown_of
from pipelines.page.stored import plain_text
from pipelines.records import Hit, Index, IndexSettings, Message, Page, Route
from pipelines.text import cleaning, detection, sse
from serve.api.openai.sources import Footnotes
from serve.chat.reply import AnswerView, Reply
from serve.mcp import quoting
from serve.slack.text import answer as slack_answer
from serve.slack.text import question as slack_question

QUESTION = "Can you show me how the scheduler of Ray starts an actor?"
PAGE = "The scheduler starts an actor on a node that has its resources.\n\n```python\nray.init()\n```"
HITS = (make_hit("https://docs.ray.io/a.html#b", PAGE), make_hit("https://docs.ray.io/c.html", "Ray has tasks [1]."))
RETRIEVAL = Retrieval("q", HITS, Index(1, "docs", IndexSettings("m"), "live", 1), 1, (), {})
LONGEST_REPLY = LLMSettings.model_fields["longest_reply"].default  # longer replies are cut while they stream
LONGEST_QUESTION = 8_000  # EngineSettings.longest_question: longer questions are refused before any reader sees them


class SayingAgent:
    """An agent that yields a given answer in deltas."""

    name = "llm"

    def __init__(self, text: str, size: int) -> None:
        self._text, self._size = text, size or len(text) or 1

    def check(self, variables: Mapping[str, str]) -> None: ...

    async def answer(self, task: Task) -> AsyncGenerator[AgentPart, None]:
        for at in range(0, len(self._text), self._size):
            yield self._text[at : at + self._size]
        yield AgentResult()


def sanitize(text: str, size: int = 0) -> None:
    one = AnswerSanitizer(3, [hit.url for hit in HITS], [hit.text for hit in HITS])
    in_deltas(one.feed, one.close, size)(text)


def read_events(text: str, size: int = 0) -> None:
    """Read a text as the body of a server's stream."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        body = text.encode("utf-8", "replace")
        for at in range(0, len(body), size or len(body) or 1):
            yield body[at : at + (size or len(body))]

    async def run() -> None:
        _, body = await sse.sniff(pieces())
        async for _ in sse.events(body):
            pass

    asyncio.run(run())


def read_calls(text: str, size: int = 0) -> None:
    """Read a text as the arguments of a tool's call."""
    one = CallReader()
    in_deltas(
        lambda part: one.feed([{"index": 0, "function": {"name": "search", "arguments": part}}]), one.close, size
    )(text)


def read_pieces(text: str, size: int = 0) -> None:
    one = TextReader()
    in_deltas(one.feed, one.close, size)(text)


def take_refusals(text: str, size: int = 0, *, final: bool = False) -> None:
    stages = TextStages([TextReader(), refusals.RefusalFilter(final=final, question=QUESTION)])
    in_deltas(stages.feed, stages.close, size)(text)


def filter_reply(text: str, size: int = 0, *, thinks: bool = False) -> None:
    one = marks.ReplyFilter(QUESTION, thinks)
    in_deltas(one.feed, one.close, size)(text)


def write_footnotes(text: str, size: int = 0) -> None:
    one = Footnotes()
    in_deltas(one.feed, one.close, size)(text)


def write_answer(text: str, size: int = 0, **fields: Any) -> None:
    """Write an answer as the engine does, from an agent to the finished Answer."""

    async def run() -> None:
        writer = AnswerWriter([SayingAgent(text, size)])
        task = Task(QUESTION, HITS, **fields)
        paper = await writer.write(Draft(RETRIEVAL, Route("llm", "only"), task=task), Trace(), lambda _: None)
        assert not paper.failed, paper.answer(Question(QUESTION)).route
        also_found.describe_found(paper.answer(Question(QUESTION)))

    asyncio.run(run())


def summarize(text: str) -> None:
    async def run() -> None:
        one = SummaryFilter(support.Passages(HITS), PAGE, lambda _: None)
        await one.feed(read_text(text))
        await one.close()

    asyncio.run(run())


def attribute(text: str) -> None:
    async def run() -> None:
        one = Attributor(support.Passages(HITS), lambda _: None)
        await one.feed(read_text(text))
        await one.close()

    asyncio.run(run())


def support_claim(text: str) -> None:
    asyncio.run(support.Passages(HITS).check(text, [1, 2]))
    asyncio.run(support.Passages(HITS).find(text))
    support.Passages(HITS).refute(text)
    support.Passages(HITS).has_said(text)


def look_up_code(text: str) -> None:
    support.Passages(HITS).refute(text, code=text)


def support_by_page(text: str) -> None:
    passages = support.Passages((make_hit("https://docs.ray.io/a.html#b", text), HITS[1]))
    asyncio.run(passages.find("The scheduler of Ray starts an actor on a node."))
    passages.refute("The scheduler of Ray starts no actor on 2 nodes with `ray.start(--head)`.")


def quote(question: str, page: str, *others: Hit) -> None:
    """Quote a page for a question."""

    async def run(*hits: Hit) -> None:
        agent = ExtractiveAgent()
        task = await agent.prepare(Task(question, hits))
        async for _ in agent.answer(task):
            pass

    asyncio.run(run(make_hit("https://docs.ray.io/a.html#b", page), *others))


def cut_blocks(text: str) -> None:
    for block in read_blocks(text):
        cut_block(block, 50)
        cut_block(block, 50, least=1)


def find_steps(text: str) -> None:
    passages = split_passages(text)
    for at in {0, len(passages) // 2, len(passages) - 1} if passages else ():
        whole_steps(passages, at)


def show_results(text: str) -> None:
    """Write two sections of a text as results within the space limit, and one section in full."""
    if passages := tuple(split_passages(text)):
        hits = [make_hit(f"https://docs.ray.io/{name}.html", text) for name in "ab"]
        quotes = [Quote(n, passages, 1.0, 0.5, frozenset(), core=frozenset({0})) for n in range(2)]
        write_results(fill_results(quotes, hits), hits)
        write_results(quotes[:1], hits, known=False)


def trim_page(text: str) -> None:
    choose_parts(QUESTION, (make_hit("https://docs.ray.io/a.html#b", text), HITS[1]), lambda texts: len(texts) < 3)


def parse_scores(text: str) -> None:
    with contextlib.suppress(verdict.NoVerdict):
        verdict.parse_verdict(text)


def parse_preference(text: str) -> None:
    with contextlib.suppress(checks.NoChoice):
        checks.parse_choice(text)


def parse_question_list(text: str) -> None:
    with contextlib.suppress(question_replies.NoQuestions):
        question_replies.parse_questions(text, 5)


def read_refusal(text: str) -> None:
    """Parse a server's message about a refused request."""
    request = {"max_tokens": 1, "temperature": 0, "messages": [{"role": "system", "content": "a"}]}
    for status in (400, 429):
        response = httpx.Response(status, request=httpx.Request("POST", "http://127.0.0.1/v1"))
        error = openai.APIStatusError(text, response=response, body={"message": text, "code": text})
        protocol.refused_part(error, request, frozenset())
        protocol.is_about_length(error)
    limits.seconds_to_wait(text)
    limits.stated_limit(text)


def reply_in_slack(text: str) -> None:
    slack_answer.to_messages(Reply(text, links={1: "https://docs.ray.io/a.html"}))


def update_slack(text: str) -> None:
    view = AnswerView(slack_answer.to_messages)
    for at in range(0, len(text), 4):
        view.take("delta", {"text": text[at : at + 4]})
    view.messages()


def ask_in_terminal(text: str, *, terminal: bool) -> None:
    reply = {"question": QUESTION, "answer": text, "citations": [], "agent": "llm", "timings": {"total": 1.0}}
    out = _Terminal() if terminal else io.StringIO()
    with contextlib.redirect_stdout(out):
        show(reply | {"known": True, "confidence": "high", "degraded": []})


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def follow_in_terminal(text: str) -> None:
    follower = Follower()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for at in range(0, len(text), 4):
            follower("delta", {"text": text[at : at + 4]})
        follower.end()


# Readers of model output, whole and in deltas.
STAGES: Mapping[str, Reader] = {
    f"{name}, {f'deltas of {size}' if size else 'whole'}": partial(stage, size=size)
    for name, stage in {
        "sanitizing": sanitize,
        "reading": read_pieces,
        "refusals": take_refusals,
        "final refusals": partial(take_refusals, final=True),
        "events": read_events,
        "calls of tools": read_calls,
        "marks": filter_reply,
        "thoughts": partial(filter_reply, thinks=True),
        "footnotes": write_footnotes,
        "an answer": write_answer,
    }.items()
    for size in (0, 4, 1)
}

CHECKS: Mapping[str, Reader] = {
    "summary": summarize,
    "attribution": attribute,
    "support of a claim": support_claim,
    "code of a claim": look_up_code,
    "is_refusal": refusals.is_refusal,
    "is_echo": lambda text: refusals.is_echo(text, QUESTION),
    "may_refuse": refusals.may_refuse,
    "is_whole": refusals.is_whole,
    "gives_up": refusals.gives_up,
    "is_claim": lambda text: claims.is_claim(Statement(text)),
    "yes or no": lambda text: claims.PHRASES["yes_or_no"].sub("", text),
    "goes on": claims.PHRASES["goes_on"].match,
    "numbers": numbers_in,
}

REPLIES: Mapping[str, Reader] = {
    "read_json": replies.read_json,
    "read_objects": lambda text: replies.read_objects(text, ("answer", "query_satisfied")),
    "read_prose": replies.read_prose,
    "read_items": replies.read_items,
    "parse_step": parse_step,
    "parse_verdict": parse_scores,
    "parse_questions": parse_question_list,
    "parse_queries": lambda text: rewriting.parse_queries(text, QUESTION, 3),
    "parse_choice": parse_preference,
    "parse_standalone": lambda text: rewriting.parse_standalone(text, QUESTION),
    "parse_passage": lambda text: rewriting.parse_passage(text, QUESTION),
    "repeats": marks.repeats,
    "refused_part": read_refusal,
    "token_f1": lambda text: token_f1(text, PAGE),
}

# Readers of passages while a question is answered.
PASSAGES: Mapping[str, Reader] = {
    "blocks": read_blocks,
    "plain": plain_text,
    "written as Markdown": markdown_of,
    "passages": split_passages,
    "sentences": lambda text: list(split_sentences(text)),
    "quotation": lambda text: quote(QUESTION, f"{PAGE}\n\n{text}"),
    "quotation beside another section": lambda text: quote(QUESTION, f"{PAGE}\n\n{text}", HITS[1]),
    "a cut block": cut_blocks,
    "steps": find_steps,
    "results": show_results,
    "trimming": trim_page,
    "support by a page": support_by_page,
    "closest sentence": lambda text: also_found.closest_sentence(QUESTION, make_hit("https://a.io/b", text)),
    "hidden numbers": hide_numbers,
    "ranking": lambda text: features(QUESTION, [replace(make_hit("https://a.io/b", text), score=1.0)]),
    "neighbours": lambda text: join_chunks(text, text, 50),
    "words": words.words_of,
    "terms": terms,
    "language": detection.find_language,
    "tokens": tokens.estimate,
    "prompts": lambda text: as_data(neutralize(text)),
    "judging": dimensions.quote,
    "masking": masking.mask,
    "splitting": lambda text: window.split(text, lambda part: len(part) <= 2_000, len),
    "shortening": lambda text: window.shorten(text, lambda part: len(part) <= 2_000),
    "cleaning": lambda text: [
        clean(text)
        for clean in (
            cleaning.clean_page,
            cleaning.clean_for_model,
            cleaning.clean_for_reader,
            cleaning.clean_for_storage,
        )
    ],
}

WRITERS: Mapping[str, Reader] = {
    "Slack": reply_in_slack,
    "Slack, deltas of 4": update_slack,
    "Slack's messages": slack_question.read_text,
    "MCP, cut": lambda text: quoting.cut(text, 50),
    "MCP, packed": lambda text: quoting.pack([text], 50),
    "MCP, quoted": lambda text: (quoting.quote(text, "https://a.io/b", text[:200]), quoting.quote_answer(text)),
    "terminal": partial(ask_in_terminal, terminal=True),
    "terminal, plain": partial(ask_in_terminal, terminal=False),
    "terminal, followed": follow_in_terminal,
}

# Readers of questions, which are at most LONGEST_QUESTION long.
QUESTIONS: Mapping[str, Reader] = {
    "small talk": smalltalk.strip_smalltalk,
    "follow-up": lambda text: followup.complete(text, [QUESTION]),
    "follow-up of a long question": lambda text: followup.complete("and how do I do that?", [text]),
    "two questions": two_questions.questions_in,
    "two sides": comparisons.compared,
    "quotation": lambda text: quote(text, PAGE),
    "trimming": lambda text: choose_parts(text, HITS, lambda texts: len(texts) < 3),
    "ranking": lambda text: features(text, [replace(hit, score=1.0) for hit in HITS]),
    "closest sentence": lambda text: also_found.closest_sentence(text, HITS[0]),
    "refusals": lambda text: (refusals.is_echo(QUESTION, text), refusals.RefusalFilter(final=True, question=text)),
    "rewriting": lambda text: (rewriting.parse_standalone(QUESTION, text), rewriting.parse_passage(QUESTION, text)),
    "language": detection.find_language,
    "terms": terms,
    "masking": masking.mask,
    "background task": lambda text: (
        background.find_background_task([Message("user", text)]),
        background.empty_reply(text),
    ),
    "open page": lambda text: open_page.open_page(text, None),
    "meaning": similarity.Meaning.of,
}


def read_as(media_type: str) -> Reader:
    """Return a reader of pages with a media type: it turns bytes into sections and these into chunks."""
    chunker = Chunker(load_tokenizer("all-MiniLM-L6-v2"))

    def read(text: str) -> None:
        with contextlib.suppress(UnreadablePage):
            chunker(read_page(page_of(text, media_type)))

    return read


def page_of(text: str, media_type: str) -> Page:
    return Page("https://docs.ray.io/a", text.encode("utf-8", "replace"), media_type)


def read_notebook(text: str) -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": text}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": text},
        {"cell_type": "code", "metadata": {}, "source": text, "outputs": [printed], "execution_count": 1},
    ]
    body = json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells})
    read_as(formats.NOTEBOOK.media_type)(body)


def read_pdf_lines(text: str) -> None:
    """Read a text as the lines that PDFium would find on pages."""
    lines = [line for line in text.split("\n") if line.strip()]
    pages = [
        PageLines(
            tuple(
                Line(line, 72, 72 + 5 * len(line), 800 - 12 * n, 10, False, False)
                for n, line in enumerate(lines[at : at + 60])
            ),
            800,
        )
        for at in range(0, len(lines), 60)
    ]
    list(pdf.sections_of("https://docs.ray.io/a.pdf", pages))


def find_links(text: str) -> None:
    for entry in (formats.HTML, formats.MARKDOWN):
        page_pointers(page_of(text, entry.media_type))


# Readers of pages before chunking. They run in a process that is killed if one takes too long.
PAGES: Mapping[str, Reader] = {
    "HTML": read_as("text/html"),
    "HTML, a paragraph": lambda text: read_as("text/html")(f"<main><h1>a</h1><p>{html.escape(text)}</p></main>"),
    "HTML, a listing": lambda text: read_as("text/html")(f"<main><h1>a</h1><pre>{html.escape(text)}</pre></main>"),
    "XHTML": read_as("application/xhtml+xml"),
    "Markdown": read_as("text/markdown"),
    "MDX": read_as("text/mdx"),
    "Markdown of MkDocs": read_as("text/x-mkdocs"),
    "Markdown of VitePress": read_as("text/x-vue-markdown"),
    "Markdown of Docusaurus": read_as("text/x-docusaurus"),
    "MyST": read_as("text/x-myst"),
    "RST": read_as("text/x-rst"),
    "AsciiDoc": read_as("text/x-asciidoc"),
    "a notebook": read_notebook,
    "plain text": read_as("text/plain"),
    "lines of a PDF": read_pdf_lines,
    "links": find_links,
}

READERS = {**STAGES, **CHECKS, **REPLIES, **PASSAGES, **WRITERS, **PAGES}


# ---------------------------------------------------------------------------------------------- functions

# Packages that read what others write: answers, replies, messages, passages, pages.
READING = (
    "pipelines.answering.", "pipelines.evaluation.judging", "pipelines.evaluation.questions.replies",
    "pipelines.indexing.reading", "pipelines.llm.", "pipelines.page", "serve.api.openai.sources", "serve.chat",
    "serve.mcp.quoting", "serve.slack.text",
)  # fmt: skip
VERBS = ("parse_", "read_", "split_", "clean_", "find_", "is_", "cut_")


def unread_functions(text: str) -> list[str]:
    """Return the functions in READING that turn a text into something and that no reader calls for `text`.

    These are public functions whose name begins with one of VERBS and whose first argument is a string, and the methods
    `feed` of all classes.
    """
    called = set[Any]()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        for read in (*READERS.values(), *QUESTIONS.values()):
            read(text)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
    return [name for name, function in _reading_functions() if function.__code__ not in called]


def _reading_functions() -> Iterator[tuple[str, Any]]:
    for module in filter(lambda name: name.startswith(READING), _modules()):
        for name, value in vars(importlib.import_module(module)).items():
            if getattr(value, "__module__", "") != module:
                continue
            if inspect.isclass(value) and inspect.isfunction(feed := vars(value).get("feed")):
                yield f"{module}.{name}.feed", feed
            elif name.startswith(VERBS) and inspect.isfunction(function := inspect.unwrap(value)):
                first = next(iter(inspect.signature(function).parameters.values()), None)
                if first and first.annotation in (str, "str"):
                    yield f"{module}.{name}", function


# ---------------------------------------------------------------------------------------------- patterns


def patterns() -> Iterator[tuple[str, Any]]:
    """Yield every pattern in pipelines, serve and jobs with its location: compiled ones and strings passed to `re`."""
    seen = set[tuple[str, int]]()
    for name, found in [*_compiled(), *_inline()]:
        pattern = found if isinstance(found.pattern, str) else _of_text(found)
        if (key := (pattern.pattern, pattern.flags)) not in seen:
            seen.add(key)
            yield name, pattern


def _of_text(pattern: Any) -> re.Pattern[str]:
    """Return a pattern of bytes as one of text."""
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags)


def _modules() -> Iterator[str]:
    for package in ("pipelines", "serve", "jobs"):
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.rpartition(".")[2].startswith("__"):
                yield found.name


def _compiled() -> Iterator[tuple[str, Any]]:
    for module in _modules():
        try:
            names = vars(importlib.import_module(module))
        except ImportError:  # an extra is not installed
            continue
        for name, value in sorted(names.items()):
            if not name.startswith("__"):
                yield from ((f"{module}.{name}{key}", one) for key, one in _patterns_in(value))


def _patterns_in(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the patterns of a module's value with their keys: in mappings, sequences and fields of dataclasses too."""
    if isinstance(value, (re.Pattern, regex.Pattern)):
        yield "", value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _patterns_in({one.name: getattr(value, one.name, None) for one in fields(value)})
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if isinstance(key, str):
                yield from ((f".{key}{deeper}", found) for deeper, found in _patterns_in(one))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _patterns_in(one)


def _inline() -> Iterator[tuple[str, Any]]:
    for module in _modules():
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function, first = call.func, call.args[0] if call.args else None
            is_re = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
            if is_re and first and function.value.id in ("re", "regex") and function.attr in (*METHODS, "subn"):
                # A pattern made of local values can't be evaluated here.
                with contextlib.suppress(Exception):
                    text = eval(ast.unparse(first), vars(importlib.import_module(module)))
                    flags = re.MULTILINE if isinstance(first, ast.Constant) else re.MULTILINE | re.DOTALL
                    if isinstance(text, str):
                        yield f"{module}:{call.lineno}", re.compile(text, flags)


METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")


def methods_of(name: str) -> list[str]:
    """Return the methods that code calls on the pattern called `name` in `patterns`.

    Returns nothing if the pattern has another name too.
    """
    module = name.partition(":")[0] if ":" in name else _module_of(name)
    if ":" in name:
        at = int(name.partition(":")[2]) - 1
        text, called = "\n".join(_source(module).splitlines()[at : at + 2]), r"\bre(?:gex)?"
    else:
        variable, _, key = name.removeprefix(f"{module}.").partition(".")
        others = [] if variable.startswith("_") else list(_modules())
        text = "\n".join(map(_source, [module, *others]))
        called = rf"\b{variable}\[(?:\"{key}\"|[^\"\]]+)\]" if key else rf"\b{variable}"
    found = re.findall(rf"{called}\.({'|'.join(METHODS)})\b", text)
    return [method for method in METHODS if method in found]


@cache
def _source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""


def _module_of(name: str) -> str:
    parts = name.split(".")
    while len(parts) > 1 and not _is_module(".".join(parts)):
        parts.pop()
    return ".".join(parts)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def searching(pattern: Any, methods: Sequence[str] = METHODS) -> Reader:
    """Return a reader that calls the given methods of a pattern, as the code does."""

    def read(text: str) -> None:
        for method in methods:
            if method == "sub":
                pattern.sub("", text)
            elif method == "finditer":
                list(pattern.finditer(text))
            else:
                getattr(pattern, method)(text)

    return read


# ---------------------------------------------------------------------------------------------- table


def main(names: list[str], most: int = LENGTHS[-1], limit_s: float = 10.0, runs: int = 3) -> None:
    """Print the table of readers whose names contain one of `names`. `patterns` means all patterns."""
    readers = {**READERS, **QUESTIONS}
    if names:
        readers = {name: read for name, read in readers.items() if any(one in name for one in names)}
    if not names or "patterns" in names:
        readers |= {name: searching(pattern, methods_of(name)) for name, pattern in patterns()}
    began, faults = time.monotonic(), 0
    print(f"{'reader':34}  {'longest':>8}  {'growth':>6}  at worst")
    for name, read in readers.items():
        longest = LONGEST_QUESTION if name in QUESTIONS else most
        rows = timed(read, lengths=tuple(n for n in LENGTHS if n <= longest), limit_s=limit_s, runs=runs)
        for title, row in rows.items():
            if row.is_fault:
                faults += 1
                cells = "  ".join("killed" if one is None else f"{one:.3f}" for one in row.seconds.values())
                print(f"  FAULT {name:28}  {title:32}  {cells}  n^{row.growth:.2f}  {row.error}", flush=True)
        title, row = max(rows.items(), key=lambda item: item[1].longest)
        growth = max(row.growth for row in rows.values())
        print(f"{name:34}  {row.longest:7.3f}s  {growth:6.2f}  {title}", flush=True)
    print(f"{len(readers)} readers, {len(SHAPES)} shapes, {faults} faults, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:], *((32_000, 2.0, 1) if os.environ.get("QUICK") else ()))
