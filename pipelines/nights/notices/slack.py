"""Posts a notice to a Slack channel.

Knows Slack's Web API; does not know the notice's contents.
"""

from slack_sdk import WebClient
from slack_sdk.errors import SlackClientError
from slack_sdk.http_retry import builtin_handlers as retry

from pipelines.nights.notices.notice import Notice, NotTold

TRIES = 4
MOST_TEXT = 3_900  # above 4,000 characters Slack splits a message


def post_slack(token: str, channel: str, notice: Notice, api_url: str) -> None:
    """Post a notice with its lines unchanged. Raises NotTold."""
    kinds = (retry.ConnectionErrorRetryHandler, retry.RateLimitErrorRetryHandler, retry.ServerErrorRetryHandler)
    client = WebClient(token, base_url=api_url, retry_handlers=[kind(max_retry_count=TRIES) for kind in kinds])
    body = notice.text.replace("```", "'''")
    body = body if len(body) <= MOST_TEXT else f"{body[:MOST_TEXT]}…"
    text = f"*{_escape(notice.title)}*\n```\n{_escape(body)}\n```"
    try:
        client.chat_postMessage(channel=channel, text=text, unfurl_links=False, unfurl_media=False)
    except (SlackClientError, OSError) as error:
        reason = getattr(error, "response", {}) or {}
        raise NotTold(f"Slack: {channel}: {reason.get('error') or type(error).__name__}") from error


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
