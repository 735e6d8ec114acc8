"""Sends a notice to a service by its Apprise URL: Teams, Discord, Telegram, ntfy, and a hundred more.

Knows Apprise; does not know the notice's contents. The URL contains secrets, so no message shows parts of it.
"""

import logging
import re
from urllib.parse import unquote

from pipelines.nights.notices.notice import Notice, NotTold

RETRIES, PAUSE_S = 2, 1.0  # most services also ask Apprise to wait about 5 s between two requests
TIMEOUT_S = 60.0  # of all attempts together
SHORTEST_SECRET = 3  # shorter parts of a URL are no secrets, and would be found in any message


class BadServiceUrl(ValueError):
    """Apprise can't use the URL of a service; the message names the variable, not its value."""


class Service:
    """Sends notices to the service at `url`. Raises BadServiceUrl at once."""

    def __init__(self, name: str, url: str, variable: str, retries: int = RETRIES) -> None:
        import apprise  # takes longer than the rest of a command's start, and few collections need it

        # It logs parts of URLs. Its results hold the same lines, and `_reason` hides the secrets in them.
        logging.getLogger(apprise.LOGGER_NAME).propagate = False
        asset = apprise.AppriseAsset(
            app_id="raydex",
            default_service_retry=retries,
            default_service_wait=PAUSE_S,
            service_timeout=TIMEOUT_S,
            http_redirects=False,
            image_path_mask=False,
        )
        self._name, self._url, self._apprise = name, url, apprise.Apprise(asset=asset)
        # Several messages are better than one that a service refuses because it is too long.
        if not self._apprise.add(url if "overflow=" in url else f"{url}{'&' if '?' in url else '?'}overflow=split"):
            raise BadServiceUrl(
                f"{variable} is not a URL that Apprise can use: https://appriseit.com/services/ shows the form"
                " of each service's URL"
            )

    def send(self, notice: Notice) -> None:
        """Send a notice, its lines unchanged where the service allows it. Raises NotTold."""
        title = " ".join(notice.title.split())
        result = self._apprise.notify(body=notice.text, title=title, notify_type="warning", body_format="text")
        if not result:
            said = [entry.message for each in result for entry in each.logs() if "trying again" not in entry.message]
            said = said or [entry.message for entry in result.logs()] or [result.status.name.lower()]
            raise NotTold(f"{self._name}: {self._hide(said[-1])}")

    def _hide(self, message: str) -> str:
        """Return a message without the parts of the URL; the name of the service (before ://) stays."""
        inner = self._url.partition("://")[2]
        parts = {part for text in (inner, unquote(inner)) for part in re.split(r"[^\w.%-]+", text)}
        for part in sorted(parts, key=len, reverse=True):
            if len(part) >= SHORTEST_SECRET:
                message = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", "***", message, flags=re.IGNORECASE)
        return " ".join(message.split())
