"""Writes a reply as messages of Slack, in blocks within its limits.

Limits: https://docs.slack.dev/reference/block-kit/blocks/section-block (3,000 characters of text), chat.postMessage and
chat.update (50 blocks; `text` should have up to 4,000 characters, and an update with more is refused).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from serve.chat.packing import Fragment, pack
from serve.chat.reply import NO_ANSWER, NamedSection, Reply
from serve.slack.text.mrkdwn import escape, link, to_fragments

MOST_SECTION = 3_000
# Below 4,000, so that the text of a message, which screen readers and notifications use, is the whole of it.
MOST_MESSAGE = 3_800
RATE_UP, RATE_DOWN = "raydex_rate_up", "raydex_rate_down"

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """One message: its blocks, and the text that stands for them where blocks are not shown."""

    text: str
    blocks: list[Block] = field(default_factory=list)


def to_messages(reply: Reply) -> list[SlackMessage]:
    """Return the messages that show `reply`: the last one has its sources, how sure it is, and the buttons."""
    fragments = to_fragments(reply.text, reply.links)
    if reply.rated and not fragments:
        fragments = to_fragments(NO_ANSWER, {})
    if reply.failure:
        return pack_messages([*fragments, Fragment(f":warning: {escape(reply.failure)}")])
    tail = [_context("_Writing …_")] if reply.writing else []
    tail += map(_section, pack(_sources(reply), MOST_SECTION))
    if reply.found:  # a reader may open them while a model still reads
        found = "Also found:" if reply.sources else "Found:"
        tail.append(_context(found, *(link(one.url, one.title) for one in reply.found)))
    if reply.notes:
        tail.append(_context(" · ".join(map(escape, reply.notes))))
    if reply.rated:
        tail.append(_buttons(reply.rated))
    *before, last = pack_messages(fragments)
    return [*before, SlackMessage(last.text, [*last.blocks, *tail])]


def pack_messages(fragments: Iterable[Fragment]) -> list[SlackMessage]:
    """Return the messages for `fragments`, in order; at least one."""
    messages: list[list[str]] = [[]]
    for text in pack(fragments, MOST_SECTION):
        if messages[-1] and sum(map(len, messages[-1])) + len(text) > MOST_MESSAGE:
            messages.append([])
        messages[-1].append(text)
    return [SlackMessage("\n\n".join(texts), [_section(text) for text in texts]) for texts in messages]


def _sources(reply: Reply) -> list[Fragment]:
    lines = [f"*{reply.heading}*", *map(_source, reply.sources)] if reply.sources else []
    return [Fragment(line, gap="\n") for line in [*lines, *([f"_and {reply.more} more_"] if reply.more else [])]]


def _source(source: NamedSection) -> str:
    return f"[{source.n}] {link(source.url, source.title)}{' _(weak support)_' if source.weak else ''}"


def _section(text: str) -> Block:
    """Return a block of mrkdwn. Verbatim: Slack looks for no names and addresses in it, and shows the whole of it."""
    return {"type": "section", "expand": True, "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _context(*texts: str) -> Block:
    """Return a block of up to ten texts in small grey letters."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True} for text in texts]}


def _buttons(id: str) -> Block:
    def button(action: str, label: str, says: str) -> Block:
        text = {"type": "plain_text", "text": label, "emoji": True}
        return {"type": "button", "action_id": action, "value": id, "text": text, "accessibility_label": says}

    up = button(RATE_UP, ":thumbsup: Helpful", "This answer is helpful")
    down = button(RATE_DOWN, ":thumbsdown: Not helpful", "This answer is not helpful: say why")
    return {"type": "actions", "block_id": "raydex_rating", "elements": [up, down]}
