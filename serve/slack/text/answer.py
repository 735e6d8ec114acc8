"""Writes a reply as Slack messages, in blocks within Slack's limits.

Limits: https://docs.slack.dev/reference/block-kit/blocks/section-block (3,000 characters of text), chat.postMessage and
chat.update (50 blocks; `text` should have up to 4,000 characters, and longer updates are refused).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pipelines.text.languages import say, say_beside
from serve.chat.packing import Fragment, pack
from serve.chat.reply import NamedSection, Reply
from serve.slack.text.mrkdwn import escape, link, to_fragments

MOST_SECTION = 3_000
# Below 4,000, so that a message's text, which screen readers and notifications use, is complete.
MOST_MESSAGE = 3_800
RATE_UP, RATE_DOWN = "raydex_rate_up", "raydex_rate_down"

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """One message: its blocks, and the text shown if blocks are not supported."""

    text: str
    blocks: list[Block] = field(default_factory=list)


def to_messages(reply: Reply) -> list[SlackMessage]:
    """Return the messages that show `reply`: the last one has its sources, its confidence, and the buttons."""
    fragments = to_fragments(reply.text, reply.links)
    if reply.rated and not fragments:
        fragments = to_fragments(say("unknown", reply.language), {})
    if reply.failure:
        return pack_messages([*fragments, Fragment(f":warning: {escape(reply.failure)}")])
    tail = [_context("…")] if reply.writing else []
    tail += map(_section, pack(_sources(reply), MOST_SECTION))
    if reply.found:  # a reader may open them while a model still reads
        found = say_beside("also_found" if reply.sources else "found", reply.language)
        tail.append(_context(found, *(link(one.url, one.title) for one in reply.found)))
    if reply.notes:
        tail.append(_context(" · ".join(map(escape, reply.notes))))
    if reply.rated:
        tail.append(_buttons(reply))
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
    named = [_source(source, reply.language) for source in reply.sources]
    lines = [f"*{reply.heading}*", *named] if named else []
    return [Fragment(line, gap="\n") for line in [*lines, *([f"_+ {reply.more}_"] if reply.more else [])]]


def _source(source: NamedSection, language: str) -> str:
    weakly = f" _({say_beside('weakly', language)})_" if source.weak else ""
    return f"[{source.n}] {link(source.url, source.title)}{weakly}"


def _section(text: str) -> Block:
    """Return a block of mrkdwn.

    Verbatim, so Slack does not link names and URLs in it, and expanded to its full length.
    """
    return {"type": "section", "expand": True, "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _context(*texts: str) -> Block:
    """Return a block of up to ten texts in small gray letters."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True} for text in texts]}


def _buttons(reply: Reply) -> Block:
    """Return the rating buttons; their block's id includes the language for the code that handles the rating."""

    def button(action: str, thumb: str, name: str) -> Block:
        label = say_beside(name, reply.language)
        text = {"type": "plain_text", "text": f"{thumb} {label}", "emoji": True}
        return {"type": "button", "action_id": action, "value": reply.rated, "text": text, "accessibility_label": label}

    buttons = [button(RATE_UP, ":thumbsup:", "good"), button(RATE_DOWN, ":thumbsdown:", "bad")]
    return {"type": "actions", "block_id": f"raydex_rating {reply.language}", "elements": buttons}
