"""Packs fragments of mrkdwn into sections and messages within Slack's limits.

A code block is never left open.

Limits: https://docs.slack.dev/reference/block-kit/blocks/section-block (3,000 characters of text), chat.postMessage and
chat.update (50 blocks; `text` should have up to 4,000 characters, and an update with more is refused).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from serve.slack.text.mrkdwn import FENCE, Fragment

MOST_SECTION = 3_000
MOST_BLOCKS = 50
# Below 4,000, so that the text of a message, which screen readers and notifications use, is the whole of it.
MOST_MESSAGE = 3_800
_MOST_CODE = MOST_SECTION - 2 * len(f"{FENCE}\n")
# What must not be cut: a link, an escaped character. Then spaces, words, single characters.
_TOKEN = re.compile(r"<[^<>]*>|&\w{2,4};|\n+|[^\S\n]+|[^\s<&]+|.", re.DOTALL)

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """One message: its blocks, and the text that stands for them where blocks are not shown."""

    text: str
    blocks: list[Block] = field(default_factory=list)


def section(text: str) -> Block:
    """Return a block of mrkdwn. Verbatim: Slack looks for no names and addresses in it, and shows the whole of it."""
    return {"type": "section", "expand": True, "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def context(*texts: str) -> Block:
    """Return a block of up to ten texts in small grey letters."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True} for text in texts]}


def pack_messages(fragments: Iterable[Fragment]) -> list[SlackMessage]:
    """Return the messages for `fragments`, in order; at least one."""
    messages: list[list[str]] = [[]]
    for text in pack_sections(fragments):
        if messages[-1] and sum(map(len, messages[-1])) + len(text) > MOST_MESSAGE:
            messages.append([])
        messages[-1].append(text)
    return [SlackMessage("\n\n".join(texts), [section(text) for text in texts]) for texts in messages]


def pack_sections(fragments: Iterable[Fragment]) -> list[str]:
    """Return texts of up to MOST_SECTION characters; a fragment is only split if it has more."""
    sections: list[str] = []
    for fragment in _with_headings(fragments):
        text = str(fragment)
        if sections and len(sections[-1]) + len(fragment.gap) + len(text) <= MOST_SECTION:
            sections[-1] += fragment.gap + text
        elif text.strip():
            sections += [text] if len(text) <= MOST_SECTION else split(fragment)
    return sections


def _with_headings(fragments: Iterable[Fragment]) -> Iterator[Fragment]:
    """Yield each heading together with what follows it, where a section can hold both."""
    waiting: Fragment | None = None
    for fragment in fragments:
        if waiting is None:
            joined = fragment
        elif len(text := f"{waiting}{fragment.gap}{fragment}") <= MOST_SECTION:
            joined = Fragment(text, gap=waiting.gap, heading=fragment.heading)
        else:
            yield waiting
            joined = fragment
        waiting = joined if joined.heading else None
        if waiting is None:
            yield joined
    if waiting:
        yield waiting


def split(fragment: Fragment) -> list[str]:
    """Return a long fragment as several texts: code at its line ends, each with a fence; the rest between words."""
    if fragment.code:
        return [str(Fragment(part.strip("\n"), code=True)) for part in _cut(fragment.text.splitlines(True), _MOST_CODE)]
    return [part.strip() for part in _cut(_TOKEN.findall(fragment.text), MOST_SECTION)]


def _cut(tokens: Iterable[str], most: int) -> Iterator[str]:
    """Join tokens to texts of at most `most` characters; a token with more is cut where no character is torn."""
    text = ""
    for token in tokens:
        for part in [token] if len(token) <= most else _cut_token(token, most):
            if len(text) + len(part) > most:
                yield text
                text = ""
            text += part
    if text.strip():
        yield text


def _cut_token(token: str, most: int) -> Iterator[str]:
    """Cut a word or line without a place to break: before an escaped character rather than within it."""
    text = ""
    for character in re.findall(r"&\w{2,4};|.|\n", token, re.DOTALL):
        if len(text) + len(character) > most:
            yield text
            text = ""
        text += character
    yield text
