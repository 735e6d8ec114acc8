"""People's ratings of answers, in a form for any chat platform."""

import hmac
import logging
from collections.abc import Sequence

from pipelines.service_client import AskFailed, ServiceClient
from pipelines.text.languages import ENGLISH, say_beside

log = logging.getLogger(__name__)

REASONS = ("wrong", "incomplete", "outdated", "not_asked")  # reasons for rating an answer down


async def store_rating(
    service: ServiceClient,
    answer: str,
    rating: int,
    rater: str,
    comment: str = "",
    reasons: Sequence[str] = (),
    language: str = ENGLISH,
) -> str:
    """Send a rating to the service; return the reason for the reader why it was not stored, "" if it was."""
    try:
        await service.rate(answer, rating, rater, comment, [reason for reason in reasons if reason in REASONS])
    except AskFailed as error:
        log.warning("a rating was not stored: %s", error)  # for example, the bot has no API key
        return say_beside("not_sent", language, reason=say_beside("failed_why", language))
    return ""


def rater_of(secret: str, answer: str, user: str) -> str:
    """Return the id of a rater: a hash that only someone with the bot's `secret` can compute."""
    return hmac.new(secret.encode(), f"{answer}\0{user}".encode(), "sha256").hexdigest()[:32]
