"""Buttons under an answer: a rating, and a dialog that asks for the reasons."""

import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import CheckboxesElement, InputBlock, Option, PlainTextInputElement
from slack_sdk.models.views import View

from pipelines.service_client import ServiceClient
from pipelines.text.languages import choose_language, say_beside
from serve.chat.rating import REASONS, store_rating
from serve.slack.channel import SlackChannel
from serve.slack.text.answer import RATE_UP

log = logging.getLogger(__name__)

DIALOG = "raydex_reasons"
MOST_COMMENT = 3_000  # Slack's limit for a text field


async def rate(body: Mapping[str, Any], channel: SlackChannel, service: ServiceClient) -> None:
    """Store the rating of a clicked button; after a thumbs down, ask for the reasons."""
    action, place = body["actions"][0], _place(body)
    answer, rater = action["value"], channel.rater(action["value"], place["user"])
    language = choose_language(str(action.get("block_id", "")).rpartition(" ")[2])
    if action["action_id"] == RATE_UP:
        failure = await store_rating(service, answer, 1, rater, language=language)
        await _tell(channel, place, failure or say_beside("thank_you", language))
        return
    view = _dialog({"answer": answer, "language": language, **place}, language)
    # A trigger expires after three seconds, so the dialog opens first; the rating itself matters more.
    await _try(channel, "views.open", {"trigger_id": str(body.get("trigger_id", "")), "view": view})
    if failure := await store_rating(service, answer, -1, rater, language=language):
        await _tell(channel, place, failure)


async def take_reasons(body: Mapping[str, Any], channel: SlackChannel, service: ServiceClient) -> None:
    """Store the reasons given in the dialog."""
    place = json.loads(body["view"]["private_metadata"])
    values = body["view"]["state"]["values"]
    chosen = values.get("reasons", {}).get("reasons", {}).get("selected_options") or []
    comment = values.get("comment", {}).get("comment", {}).get("value") or ""
    answer, language = place.pop("answer"), choose_language(place.pop("language", ""))
    rater, reasons = channel.rater(answer, place["user"]), [option["value"] for option in chosen]
    failure = await store_rating(service, answer, -1, rater, comment, reasons, language)
    await _tell(channel, place, failure or say_beside("thank_you", language))


async def _tell(channel: SlackChannel, place: Mapping[str, str], text: str) -> None:
    """Post a message that only one person sees."""
    if place.get("channel"):
        await _try(channel, "chat.postEphemeral", {**place, "text": text})


async def _try(channel: SlackChannel, method: str, body: Mapping[str, Any]) -> None:
    try:
        await channel.call(method, json=body)
    except (SlackApiError, OSError) as error:
        log.info("%s: a person who rates was not told: %s", method, error)


def _place(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the place of the button, and who clicked it, as arguments of chat.postEphemeral."""
    container, message = body.get("container", {}), body.get("message", {})
    channel = body.get("channel", {}).get("id") or container.get("channel_id") or ""
    thread = message.get("thread_ts") or container.get("thread_ts")
    return {"channel": channel, "user": body["user"]["id"], **({"thread_ts": thread} if thread else {})}


def _dialog(about: Mapping[str, str], language: str) -> dict[str, Any]:
    say = partial(say_beside, language=language)
    options = [Option(text=say(reason), value=reason) for reason in REASONS]
    reasons = CheckboxesElement(action_id="reasons", options=options)
    comment = PlainTextInputElement(
        action_id="comment", multiline=True, max_length=MOST_COMMENT, placeholder=say("what_right")
    )
    blocks = [
        InputBlock(block_id="reasons", label=say("what_wrong"), element=reasons, optional=True),
        InputBlock(block_id="comment", label=say("comment"), element=comment, optional=True),
    ]
    texts: dict[str, Any] = {"title": say("bad"), "submit": say("send"), "close": say("cancel")}
    return View("modal", callback_id=DIALOG, private_metadata=json.dumps(about), blocks=blocks, **texts).to_dict()
