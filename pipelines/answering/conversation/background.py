"""Recognizes background tasks: a chat client's request to a model, such as for a title.

A program reads the reply, so such a message names a format. This module knows phrases, but nothing about particular
clients or products. A message is a task only if it begins like one; says what to make, from which conversation or text,
and in which format; and contains that text. A question that quotes such a prompt begins differently or ends in a
question.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from pipelines.answering.question import BackgroundTask
from pipelines.records import Message
from pipelines.text.phrases import compile_phrases, read_table

# Characters of an instruction that are examined; the longest one seen has 1,700.
LONGEST = 4_000
# An instruction names its product in the first sentences; if the text comes first, in the last ones.
OPENING, CLOSING = 600, 400
MOST_EXAMPLES = 8  # JSON examples that are tried as the format of the reply
NEAR = 60  # characters before an example that may introduce it
# Characters from the verb to its object: "generate 1-3 broad tags", "create a short, direct and objective title".
REACH = 120

_PHRASES = compile_phrases(read_table(__name__))
_TRANSCRIPT = re.compile(_PHRASES["transcript"].pattern, re.IGNORECASE | re.MULTILINE)
_CLOSED = re.compile(r"</\w+>|\"\"\"|^```", re.MULTILINE)
_QUOTED = re.compile(r":\s*[\"“][^\"”]*[\"”]?\s*\Z")  # a quoted user message at the end of a line of the instruction
_OBJECT = re.compile(r"\{{1,2}\s{0,20}\"")


def find_background_task(messages: Sequence[Message]) -> BackgroundTask | None:
    """Return the background task in `messages`, whose last message is the user's; None for a question."""
    *before, last = messages
    system = "\n\n".join(message.content for message in before if message.role == "system")
    instruction = _instruction(system, last.content, any(message.role != "system" for message in before))
    return BackgroundTask(tuple(messages), empty_reply(instruction)) if instruction else None


def empty_reply(instruction: str) -> str:
    """Return a reply without content in the format that an instruction names: empty JSON, or ""."""
    starts = list(islice(_OBJECT.finditer(instruction), MOST_EXAMPLES))
    for start in sorted(starts, key=lambda one: not _is_announced(instruction[: one.start()])):
        example = instruction[start.start() :]
        if start[0].startswith("{{"):  # from a template that was not filled in
            example = example.replace("{{", "{").replace("}}", "}")
        with suppress(ValueError, RecursionError):
            return json.dumps(_emptied(json.JSONDecoder(strict=False).raw_decode(example)[0]))
    return "{}" if "json" in instruction.lower() else ""


def _instruction(system: str, text: str, follows: bool) -> str:
    """Return the text that instructs the model, or "" if none does; `follows` means other turns came before."""
    if _is_instruction(system):  # the conversation is the user's message
        return system[:LONGEST]
    start = _TRANSCRIPT.search(text, 0, LONGEST)
    if start is None:  # the conversation is in the turns before
        alone = follows and len(text) < LONGEST and not _is_question(text)
        return text if alone and _is_instruction(text) else ""
    head, tail = text[: start.start()], text[-CLOSING:].rstrip()
    if not head.strip():  # the conversation comes first
        last = tail.rpartition("\n")[2]
        return last if _is_instruction(last) else ""
    instruction = f"{head}\n{tail}" if start.start() < len(text) - CLOSING else text
    return instruction if _is_instruction(instruction) and not _asks_at_end(text) else ""


def _is_instruction(text: str) -> bool:
    text = text[:LONGEST]
    if not _PHRASES["begins"].match(text) or _is_question(_QUOTED.sub("", text.strip().partition("\n")[0])):
        return False
    opening = text[:OPENING]
    makes = _PHRASES["makers"].search(opening) or any(
        _PHRASES["things"].search(opening, verb.end(), verb.end() + REACH)
        for verb in _PHRASES["makes"].finditer(opening)
    )
    return bool(makes and _PHRASES["about"].search(text) and _PHRASES["formats"].search(text))


def _asks_at_end(text: str) -> bool:
    """Return whether a question follows the quoted text: after its last closing mark, or as a separate paragraph."""
    text = text[-LONGEST:]
    closed = [end.end() for end in _CLOSED.finditer(text)]
    rest = text[closed[-1] :] if closed else text.rpartition("\n\n")[2] if "\n\n" in text else ""
    return _is_question(rest) and not _TRANSCRIPT.search(rest)


def _is_question(text: str) -> bool:
    return text.rstrip(" \n*_)\"'”").endswith(("?", "？", "؟"))


def _is_announced(before: str) -> bool:
    """Return whether the text before some JSON introduces it as the reply, since other JSON may occur too."""
    return _PHRASES["replies"].search(before[-NEAR:]) is not None


def _emptied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _emptied(inner) for name, inner in value.items()}
    return type(value)() if value is not None else None
