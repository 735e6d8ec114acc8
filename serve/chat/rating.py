"""What people say about an answer, as any chat platform asks for it."""

import hmac
import logging
from collections.abc import Sequence

from pipelines.service_client import AskFailed, ServiceClient
from pipelines.text.languages import ENGLISH, say_beside

log = logging.getLogger(__name__)

REASONS = ("wrong", "incomplete", "outdated", "not_asked")  # why an answer is rated down


async def store_rating(
    service: ServiceClient,
    answer: str,
    rating: int,
    rater: str,
    comment: str = "",
    reasons: Sequence[str] = (),
    language: str = ENGLISH,
) -> str:
    """Send a rating to the service; return why it was not stored, as its giver may read it, "" if it was."""
    try:
        await service.rate(answer, rating, rater, comment, [reason for reason in reasons if reason in REASONS])
    except AskFailed as error:
        log.warning("a rating was not stored: %s", error)  # such as a bot without a key of the service
        return say_beside("not_sent", language, reason=say_beside("failed_why", language))
    return ""


def rater_of(secret: str, answer: str, user: str) -> str:
    """Return who rates an answer: a hash that only the holder of the bot's `secret` can make or guess."""
    return hmac.new(secret.encode(), f"{answer}\0{user}".encode(), "sha256").hexdigest()[:32]
