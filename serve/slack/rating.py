"""Buttons under an answer: a rating, and a dialog that asks what was wrong."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import CheckboxesElement, InputBlock, Option, PlainTextInputElement
from slack_sdk.models.views import View

from pipelines.service_client import ServiceClient
from serve.chat.rating import REASONS, THANKS, store_rating
from serve.slack.channel import SlackChannel
from serve.slack.text.answer import RATE_UP

log = logging.getLogger(__name__)

DIALOG = "raydex_reasons"
TEXTS: dict[str, Any] = {"title": "What was wrong?", "submit": "Send", "close": "Cancel"}
MOST_COMMENT = 3_000  # of a text field of Slack


async def rate(body: Mapping[str, Any], channel: SlackChannel, service: ServiceClient) -> None:
    """Store the rating of a button that was pressed; after a thumbs down, ask for the reasons."""
    action, place = body["actions"][0], _place(body)
    answer, rater = action["value"], channel.rater(action["value"], place["user"])
    if action["action_id"] == RATE_UP:
        await _tell(channel, place, await store_rating(service, answer, 1, rater))
        return
    about = {"trigger_id": str(body.get("trigger_id", "")), "view": _dialog({"answer": answer, **place})}
    await _try(channel, "views.open", about)  # a trigger lives for three seconds; the rating itself counts
    if (said := await store_rating(service, answer, -1, rater)) != THANKS:
        await _tell(channel, place, said)


async def take_reasons(body: Mapping[str, Any], channel: SlackChannel, service: ServiceClient) -> None:
    """Store what the dialog says."""
    place = json.loads(body["view"]["private_metadata"])
    values = body["view"]["state"]["values"]
    chosen = values.get("reasons", {}).get("reasons", {}).get("selected_options") or []
    comment = values.get("comment", {}).get("comment", {}).get("value") or ""
    answer = place.pop("answer")
    rater, reasons = channel.rater(answer, place["user"]), [option["value"] for option in chosen]
    await _tell(channel, place, await store_rating(service, answer, -1, rater, comment, reasons))


async def _tell(channel: SlackChannel, place: Mapping[str, str], text: str) -> None:
    """Write a message that one person sees."""
    if place.get("channel"):
        await _try(channel, "chat.postEphemeral", {**place, "text": text})


async def _try(channel: SlackChannel, method: str, body: Mapping[str, Any]) -> None:
    try:
        await channel.call(method, json=body)
    except (SlackApiError, OSError) as error:
        log.info("%s: a person who rates was not told: %s", method, error)


def _place(body: Mapping[str, Any]) -> dict[str, str]:
    """Return where the button is, and who pressed it, as arguments of chat.postEphemeral."""
    container, message = body.get("container", {}), body.get("message", {})
    channel = body.get("channel", {}).get("id") or container.get("channel_id") or ""
    thread = message.get("thread_ts") or container.get("thread_ts")
    return {"channel": channel, "user": body["user"]["id"], **({"thread_ts": thread} if thread else {})}


def _dialog(about: Mapping[str, str]) -> dict[str, Any]:
    options = [Option(text=label, value=value) for value, label in REASONS.items()]
    reasons = CheckboxesElement(action_id="reasons", options=options)
    comment = PlainTextInputElement(
        action_id="comment", multiline=True, max_length=MOST_COMMENT, placeholder="What would have helped?"
    )
    blocks = [
        InputBlock(block_id="reasons", label="Reasons", element=reasons, optional=True),
        InputBlock(block_id="comment", label="Comment", element=comment, optional=True),
    ]
    return View("modal", callback_id=DIALOG, private_metadata=json.dumps(about), blocks=blocks, **TEXTS).to_dict()
