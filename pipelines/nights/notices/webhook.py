"""Posts a notice to a URL: signed, and retried with growing pauses under the same id.

Knows HTTP; does not know the notice's contents.
"""

import time

import httpx
import tenacity

from pipelines.nights.notices.notice import Notice, NotTold
from pipelines.signing import sign
from pipelines.text.retry_after import parse_retry_after

TRIES, FIRST_PAUSE_S, LONGEST_PAUSE_S, TIMEOUT_S = 6, 1.0, 60.0, 10.0  # survives an outage of about a minute
ID, TIMESTAMP, SIGNATURE = "Raydex-Id", "Raydex-Timestamp", "Raydex-Signature"
WORTH_A_RETRY = {408, 425, 429}


class _TryAgain(NotTold):
    """The failure may be temporary; `after_s` is the wait that the receiver asks for, 0 if none."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


def post_webhook(url: str, secret: str, notice: Notice, first_pause_s: float = FIRST_PAUSE_S) -> None:
    """Post a notice until the receiver accepts it (any 2xx), at most TRIES times. Raises NotTold."""
    growing = tenacity.wait_exponential_jitter(initial=first_pause_s, max=LONGEST_PAUSE_S, jitter=first_pause_s)

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(growing(state), min(getattr(error, "after_s", 0.0), LONGEST_PAUSE_S))

    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_TryAgain),
        stop=tenacity.stop_after_attempt(TRIES),
        wait=pause,
        reraise=True,
    )
    attempts(_post, url, secret, notice.id, notice.as_json())


def _post(url: str, secret: str, id: str, body: bytes) -> None:
    """Post once. A redirect is an error, because the author of the file did not name its target."""
    now = int(time.time())
    headers = {"Content-Type": "application/json", "User-Agent": "raydex", ID: id, TIMESTAMP: str(now),
               SIGNATURE: sign(secret, now, body)}  # fmt: skip
    host = httpx.URL(url).host
    try:
        reply = httpx.post(url, content=body, headers=headers, timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        raise _TryAgain(f"webhook: {host} can't be reached: {str(error) or type(error).__name__}") from error
    if reply.status_code >= 500 or reply.status_code in WORTH_A_RETRY:
        after_s = parse_retry_after(reply.headers.get("Retry-After", "")) or 0.0
        raise _TryAgain(f"webhook: {host} answers HTTP {reply.status_code}", after_s)
    if not reply.is_success:
        raise NotTold(f"webhook: {host} refuses it with HTTP {reply.status_code}")
