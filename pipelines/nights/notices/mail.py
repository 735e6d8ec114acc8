"""Sends a notice as an e-mail over SMTP.

Knows the mail server; does not know the notice's contents.
"""

import smtplib
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from pipelines.nights.notices.notice import Notice, NotTold
from pipelines.records.night_choices import MailChoices

TIMEOUT_S = 30.0


def compose_mail(notice: Notice, choices: MailChoices) -> EmailMessage:
    """Return a notice as a message; a notice that is sent again has the same Message-ID."""
    message = EmailMessage()
    message["Subject"] = " ".join(notice.title.split())
    message["From"], message["To"] = choices.sender, ", ".join(choices.to)
    message["Date"] = format_datetime(datetime.fromisoformat(notice.at))
    message["Message-ID"] = f"<{notice.id}@raydex>"
    message["Auto-Submitted"] = "auto-generated"  # prevents out-of-office replies (RFC 3834)
    message.set_content(notice.text)
    return message


def send_mail(notice: Notice, choices: MailChoices, password: str = "") -> None:
    """Send a notice to all its recipients. Raises NotTold, also if the server rejects some of them."""
    try:
        with _connect(choices) as server:
            if choices.user:
                server.login(choices.user, password)
            refused = server.send_message(compose_mail(notice, choices))
    except OSError as error:  # includes SMTPException; its text has no login data
        raise NotTold(f"e-mail: {choices.host}:{choices.port}: {type(error).__name__}: {error}") from error
    if refused:
        raise NotTold(f"e-mail: {choices.host} refuses {', '.join(refused)}")


def _connect(choices: MailChoices) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if choices.tls == "tls":
        return smtplib.SMTP_SSL(choices.host, choices.port, timeout=TIMEOUT_S, context=context)
    server = smtplib.SMTP(choices.host, choices.port, timeout=TIMEOUT_S)
    if choices.tls == "starttls":
        server.starttls(context=context)
    return server
