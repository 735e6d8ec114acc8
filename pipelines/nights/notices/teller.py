"""Sends a notice over every channel in a collection file, even if some of them fail.

Knows the channels; knows neither nights nor reports.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pipelines.nights.notices.mail import send_mail
from pipelines.nights.notices.notice import Notice, NotTold
from pipelines.nights.notices.service import Service
from pipelines.nights.notices.slack import post_slack
from pipelines.nights.notices.webhook import post_webhook
from pipelines.records.night_choices import TellChoices

SLACK_API = "https://slack.com/api/"
SERVICE_VARIABLE = "RAYDEX_NOTICE_"  # and the service's name: its Apprise URL


class MissingSecret(ValueError):
    """A channel has no secret; the message names the variable to set."""


@dataclass(frozen=True, slots=True)
class TellSecrets:
    """Secrets that are kept out of files: the webhook's signing key, Slack's bot token, the mail password.

    `services` has the Apprise URLs of services, by their variables (see SERVICE_VARIABLE).
    """

    webhook: str = field(default="", repr=False)
    slack: str = field(default="", repr=False)
    smtp: str = field(default="", repr=False)
    slack_api: str = SLACK_API
    services: Mapping[str, str] = field(default_factory=dict, repr=False)


class Teller:
    """Sends notices. Raises MissingSecret and BadServiceUrl at once, before there is anything to send."""

    def __init__(self, choices: TellChoices, secrets: TellSecrets = TellSecrets()) -> None:
        needs = {
            "webhook": (choices.webhook, secrets.webhook, "RAYDEX_WEBHOOK_SECRET"),
            "slack": (choices.slack, secrets.slack, "SLACK_BOT_TOKEN"),
            "mail.user": (choices.mail and choices.mail.user, secrets.smtp, "RAYDEX_SMTP_PASSWORD"),
        }
        for key, (wanted, secret, variable) in needs.items():
            if wanted and not secret:
                raise MissingSecret(f"night.tell.{key} needs a secret: set {variable}")
        variables = {name: f"{SERVICE_VARIABLE}{name.upper()}" for name in choices.services}
        for name, variable in variables.items():
            if not secrets.services.get(variable):
                raise MissingSecret(f"night.tell.services names {name!r}: set {variable} to its Apprise URL")
        self.choices = choices
        self._ways: dict[str, Callable[[Notice], None]] = {}
        if choices.webhook:
            self._ways["webhook"] = partial(post_webhook, choices.webhook, secrets.webhook)
        if choices.slack:
            self._ways["Slack"] = lambda notice: post_slack(secrets.slack, choices.slack, notice, secrets.slack_api)
        if mail := choices.mail:
            self._ways["e-mail"] = lambda notice: send_mail(notice, mail, secrets.smtp)
        for name, variable in variables.items():
            self._ways[name] = Service(name, secrets.services[variable], variable).send

    def __bool__(self) -> bool:
        return bool(self._ways)

    def tell(self, notice: Notice) -> tuple[list[str], list[str]]:
        """Send a notice; return the channels that worked, and the reasons why others failed."""
        told, failed = [], []
        for way, send in self._ways.items():
            try:
                send(notice)
                told.append(way)
            except NotTold as error:
                failed.append(str(error))
            except Exception as error:  # such as a URL or password that can't be encoded; its text may contain a secret
                failed.append(f"{way}: {type(error).__name__}")
        return told, failed
