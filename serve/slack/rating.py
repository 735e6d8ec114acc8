"""Buttons under an answer: a rating, and a dialog that asks what was wrong."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from slack_sdk.errors import SlackApiError

from serve.slack.calls import SlackCalls
from serve.slack.service import AskFailed, ServiceClient
from serve.slack.text.answer import RATE_UP

log = logging.getLogger(__name__)

REASONS = {
    "wrong": "It is wrong",
    "incomplete": "It is incomplete",
    "outdated": "It is outdated",
    "not_asked": "It is not what I asked",
}
DIALOG = "raydex_reasons"
MOST_COMMENT = 3_000  # of a text field of Slack
THANKS, NOT_TAKEN = "Thank you: that helps.", "Your rating could not be stored. Please try again."


async def rate(body: Mapping[str, Any], calls: SlackCalls, service: ServiceClient) -> None:
    """Store the rating of a button that was pressed; after a thumbs down, ask for the reasons."""
    action, place = body["actions"][0], _place(body)
    up = action["action_id"] == RATE_UP
    if not up:
        await _open_dialog(calls, str(body.get("trigger_id", "")), {"answer": action["value"], **place})
    await _store(calls, service, place, action["value"], 1 if up else -1, said=up)


async def take_reasons(body: Mapping[str, Any], calls: SlackCalls, service: ServiceClient) -> None:
    """Store what the dialog says."""
    view = body["view"]
    about = json.loads(view["private_metadata"])
    values = view["state"]["values"]
    chosen = values.get("reasons", {}).get("reasons", {}).get("selected_options") or []
    comment = values.get("comment", {}).get("comment", {}).get("value") or ""
    reasons = [option["value"] for option in chosen if option["value"] in REASONS]
    answer = about.pop("answer")
    await _store(calls, service, about, answer, -1, comment, reasons)


async def _store(
    calls: SlackCalls,
    service: ServiceClient,
    place: Mapping[str, str],
    answer: str,
    rating: int,
    comment: str = "",
    reasons: list[str] | None = None,
    *,
    said: bool = True,
) -> None:
    """Send a rating to the service, and tell the person who gave it what became of it."""
    try:
        await service.rate(answer, rating, calls.sign(answer, place["user"]), comment, reasons or ())
    except AskFailed as error:
        log.warning("a rating was not stored: %s", error.detail)
        await _whisper(calls, place, NOT_TAKEN)
    else:
        if said:
            await _whisper(calls, place, THANKS)


async def _whisper(calls: SlackCalls, place: Mapping[str, str], text: str) -> None:
    """Write a message that one person sees."""
    if not place.get("channel"):
        return
    try:
        await calls.call("chat.postEphemeral", {**place, "text": text})
    except (SlackApiError, OSError) as error:
        log.info("a rating was not acknowledged: %s", error)


def _place(body: Mapping[str, Any]) -> dict[str, str]:
    """Return where the button is, and who pressed it, as arguments of chat.postEphemeral."""
    container, message = body.get("container", {}), body.get("message", {})
    channel = body.get("channel", {}).get("id") or container.get("channel_id") or ""
    thread = message.get("thread_ts") or container.get("thread_ts")
    return {"channel": channel, "user": body["user"]["id"], **({"thread_ts": thread} if thread else {})}


async def _open_dialog(calls: SlackCalls, trigger: str, about: Mapping[str, str]) -> None:
    try:
        await calls.call("views.open", {"trigger_id": trigger, "view": _dialog(about)})
    except (SlackApiError, OSError) as error:  # a trigger lives for three seconds; the rating itself counts
        log.info("the dialog for reasons was not opened: %s", error)


def _dialog(about: Mapping[str, str]) -> dict[str, Any]:
    options = [{"text": _plain(label), "value": value} for value, label in REASONS.items()]
    reasons = {"type": "checkboxes", "action_id": "reasons", "options": options}
    comment = {
        "type": "plain_text_input",
        "action_id": "comment",
        "multiline": True,
        "max_length": MOST_COMMENT,
        "placeholder": _plain("What would have helped?"),
    }
    return {
        "type": "modal",
        "callback_id": DIALOG,
        "private_metadata": json.dumps(about),
        "title": _plain("What was wrong?"),
        "submit": _plain("Send"),
        "close": _plain("Cancel"),
        "blocks": [
            {"type": "input", "block_id": "reasons", "optional": True, "label": _plain("Reasons"), "element": reasons},
            {"type": "input", "block_id": "comment", "optional": True, "label": _plain("Comment"), "element": comment},
        ],
    }


def _plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}
