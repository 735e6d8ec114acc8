"""What people say about an answer, as any chat platform asks for it."""

import hmac
import logging
from collections.abc import Sequence

from pipelines.service_client import AskFailed, ServiceClient
from serve.chat.reply import TEXTS

log = logging.getLogger(__name__)

REASONS, THANKS, NOT_TAKEN, NOT_ALLOWED = (TEXTS[name] for name in ("reasons", "thanks", "not_taken", "not_allowed"))


async def store_rating(
    service: ServiceClient, answer: str, rating: int, rater: str, comment: str = "", reasons: Sequence[str] = ()
) -> str:
    """Send a rating to the service, and return what to tell the person who gave it."""
    try:
        await service.rate(answer, rating, rater, comment, [reason for reason in reasons if reason in REASONS])
    except AskFailed as error:
        log.warning("a rating was not stored: %s", error.detail)
        return NOT_ALLOWED if error.detail.startswith(("401", "403")) else NOT_TAKEN
    return THANKS


def rater_of(secret: str, answer: str, user: str) -> str:
    """Return who rates an answer: a hash that only the holder of the bot's `secret` can make or guess."""
    return hmac.new(secret.encode(), f"{answer}\0{user}".encode(), "sha256").hexdigest()[:32]
