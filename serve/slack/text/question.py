"""Extracts the question from a Slack message.

A question names no person: mentions are left out, and neither names nor user ids leave this file.
"""

import html
import re
from typing import Any

from serve.chat.question import Asked

# <@U1>, <@U1|name>, <!here>, <!subteam^S1|@team>, <!date^…|text>, <#C1|name>, <https://…|text>
_ENTITY = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
# Other subtypes are not questions from a person: edits, joins, topics, bot messages. Files and thread replies sent to
# the channel are normal messages.
ANSWERED_SUBTYPES = frozenset({"", "file_share", "thread_broadcast"})


def read_question(event: dict[str, Any], team: str, bot_user: str) -> Asked | None:
    """Return the question in a message event; None if it is not addressed to the bot, or not from a person.

    A mention in a channel and any message in a direct conversation are addressed to the bot; a group message needs a
    mention.
    """
    if event.get("type") not in ("app_mention", "message") or _is_of_no_person(event, bot_user):
        return None
    channel, ts, text = str(event.get("channel") or ""), str(event.get("ts") or ""), str(event.get("text") or "")
    direct = event.get("channel_type") == "im" or (event["type"] == "message" and channel.startswith("D"))
    mentioned = event["type"] == "app_mention" or bool(bot_user and f"<@{bot_user}" in text)
    if not channel or not ts or not (direct or mentioned):
        return None
    return Asked(team, channel, str(event.get("thread_ts") or ts), ts, read_text(text))


def _is_of_no_person(event: dict[str, Any], bot_user: str) -> bool:
    return bool(
        event.get("bot_id")
        or event.get("bot_profile")
        or event.get("edited")
        or event.get("hidden")
        or (event.get("subtype") or "") not in ANSWERED_SUBTYPES
        or event.get("user") in (None, "", "USLACKBOT", bot_user)
    )


def read_text(text: str) -> str:
    """Return the text of a message as its author sees it, without mentions."""
    shown = html.unescape(_ENTITY.sub(_read_entity, text))
    return re.sub(r"[ \t]+", " ", shown).strip(" \t\n,:") if "```" not in shown else shown.strip()


def _read_entity(found: re.Match[str]) -> str:
    kind, target, label = found[1], found[2], found[3] or ""
    if kind == "@":
        return ""
    if kind == "#":
        return f"#{label}" if label else ""
    if kind == "!":
        return label if target.startswith("date^") else ""
    if target.startswith(("mailto:", "tel:")):
        return label or target.partition(":")[2]
    return f"{label} ({target})" if label and label not in target else target
