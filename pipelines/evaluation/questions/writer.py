"""Writes questions about chunks, and reference answers to questions.

A language model writes them from the prompts in writer.yaml; without a model, headings serve as questions. Knows chunks
and a model that may ramble; knows no database and no engine.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.synthesis.prompts import Piece, Template
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.dimensions import quote
from pipelines.evaluation.questions.replies import PHRASES, parse_questions
from pipelines.llm.client import FRAMING
from pipelines.llm.replies import object_schema
from pipelines.llm.retry import ParsedReply, Progress, UnusableReply, ask, gather_all
from pipelines.llm.session import ChatModel
from pipelines.llm.window import shorten
from pipelines.records import Hit, Usage
from pipelines.text.phrases import read_table

_TABLE = read_table(__name__)
SYSTEM, STYLE, REMINDER = _TABLE["system"], _TABLE["style"], _TABLE["reminder"]
WRITE, ANSWER = Template(_TABLE["write"]), Template(_TABLE["answer"])
BEGINNINGS, WORDS = 4, 3  # beginnings shown in a prompt, different in each; words per beginning
SCHEMA = object_schema({"questions": {"type": "array", "items": {"type": "string"}}})


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Examples, the model's usage, how often it failed by reason, and counts of how the examples were made."""

    examples: Sequence[Example]
    usage: Usage = Usage()
    errors: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


async def write_questions(
    llm: ChatModel,
    chunks: Sequence[Hit],
    per_chunk: int = 2,
    at_once: int = 4,
    progress: Progress | None = None,
    style: Sequence[str] = (),
) -> QuestionSet:
    """Return the questions that `llm` writes for each chunk, at most `per_chunk`; failures are counted, not raised.

    With `style`, questions of users, it imitates them: each prompt shows the beginnings of BEGINNINGS of them, drawn by
    the chunk's id.
    """
    beginnings = [words for question in style if (words := _beginning(question))]

    async def one(chunk: Hit) -> ParsedReply[list[str]]:
        shown = random.Random(chunk.chunk_id).sample(beginnings, min(BEGINNINGS, len(beginnings)))
        return await _ask_for_questions(llm, chunk, per_chunk, shown)

    replies = await gather_all(one, chunks, at_once, progress)
    examples = [
        Example(question, (chunk.source,))
        for chunk, reply in zip(chunks, replies, strict=True)
        for question in reply.value or ()
    ]
    return QuestionSet(tuple(examples), _usage(replies), _errors(replies))


async def _ask_for_questions(
    llm: ChatModel, chunk: Hit, count: int, beginnings: Sequence[str] = ()
) -> ParsedReply[list[str]]:
    style = STYLE.format(beginnings=", ".join(beginnings)) if beginnings else ""
    passage = _fit(llm, chunk, WRITE.format(count=str(count), passage="", style=style))
    prompt = WRITE.format(count=str(count), passage=passage, style=style)
    parse = partial(parse_questions, most=count, any_form=bool(beginnings))
    return await ask(llm, prompt, parse, system=SYSTEM, reminder=REMINDER, schema=SCHEMA, tries=2)


def _beginning(question: str) -> str:
    """Return the first WORDS words of a question, "" if they are most of it or not plain words."""
    words = question.split()
    start = " ".join(words[:WORDS])
    return f'"{start} …"' if len(words) > WORDS + 1 and re.fullmatch(r"[\w' -]+", start) else ""


def ask_headings(chunks: Iterable[Hit]) -> QuestionSet:
    """Return the heading of each section as its question, without a model; one-word headings are skipped."""
    asked = ((" ".join(chunk.headings[-1].split()), chunk.source) for chunk in chunks if chunk.headings)
    return QuestionSet(tuple(Example(heading, (source,)) for heading, source in asked if " " in heading))


# ---------------------------------------------------------------------------------------------- reference answers


async def write_answers(
    llm: ChatModel,
    examples: Sequence[Example],
    passages: Mapping[str, Hit],
    at_once: int = 4,
    progress: Progress | None = None,
) -> QuestionSet:
    """Return the examples, in order, with the answers that `llm` gives from their sources; existing answers stay.

    `passages` are the texts by source. A text that is too long for the model's window loses its middle. If there is no
    passage, the passage has no answer, or the model fails, the answer stays None and the reason is counted.
    """

    async def one(example: Example) -> ParsedReply[str]:
        if example.answer is not None or not example.answerable:
            return ParsedReply(example.answer, None, Usage())
        given = [passages[source] for source in example.sources if source in passages]
        if not given:
            return ParsedReply(None, "the source is not in the index", Usage())
        return await _ask_for_answer(llm, example.question, given)

    replies = await gather_all(one, examples, at_once, progress)
    answered = [replace(example, answer=reply.value) for example, reply in zip(examples, replies, strict=True)]
    return QuestionSet(tuple(answered), _usage(replies), _errors(replies))


async def _ask_for_answer(llm: ChatModel, question: str, given: Sequence[Hit]) -> ParsedReply[str]:
    question = quote(question)
    empty = ANSWER.format(passage="", question=question, unknown=UNKNOWN)
    joined = replace(given[0], text="\n\n".join(passage.passage for passage in given), plain="")
    prompt = ANSWER.format(passage=_fit(llm, joined, empty), question=question, unknown=UNKNOWN)
    return await ask(llm, prompt, _parse_answer, tries=1)


def _parse_answer(text: str) -> str:
    """Return a reply as a reference answer. Raises UnusableReply if it says that it does not know."""
    answer = PHRASES["label"].sub("", text).strip()
    if not answer or UNKNOWN.rstrip(".").lower() in answer.lower():
        raise UnusableReply("the source does not answer the question")
    return answer


def _fit(llm: ChatModel, hit: Hit, prompt: str) -> str:
    """Return the passage as shown to a model, without its middle if the window is too small for it and `prompt`."""
    room = llm.context_window - llm.max_tokens - llm.count(SYSTEM) - llm.count(prompt) - 4 * FRAMING
    return _shown(hit, shorten(hit.passage, lambda part: llm.count(_shown(hit, part)) <= room))


def _shown(hit: Hit, text: str) -> str:
    return f"<passage>\n{Piece.of(1, hit, text)}\n</passage>"


def _usage(replies: Sequence[ParsedReply[Any]]) -> Usage:
    return sum((reply.usage for reply in replies), Usage())


def _errors(replies: Sequence[ParsedReply[Any]]) -> dict[str, int]:
    """Return how often each reason occurs, without the model's words."""
    reasons = Counter(reply.error.partition("; ")[0] for reply in replies if reply.error)
    return dict(reasons.most_common())
