"""Notices reach real servers on loopback: signed, retried under one id, with failures reported."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kit.certificates import certificate
from kit.receivers import MailReceiver, WebhookReceiver
from kit.slack_server import SlackServer

from pipelines.evaluation.dataset import BadDataset
from pipelines.nights.gate import WorseQuestion
from pipelines.nights.notices.mail import send_mail
from pipelines.nights.notices.notice import Notice, NotTold
from pipelines.nights.notices.teller import MissingSecret, Teller, TellSecrets
from pipelines.nights.notices.webhook import TRIES, post_webhook
from pipelines.nights.result import NightResult
from pipelines.nights.telling import failure_notice, refusal_notice
from pipelines.records.night_choices import MailChoices, TellChoices

TITLE = "The night\nof docs was refused"
NOTICE = Notice("id-1", "night.refused", "docs", TITLE, ["mrr fell", "öfter <b>"], {"run": 3})


def mail_by(receiver: MailReceiver, *to: str, **more: Any) -> MailChoices:
    return MailChoices(to=[*to], sender="raydex@x.test", host="127.0.0.1", port=receiver.port, **more)


def test_webhook_has_an_id_and_signs_its_time_and_body():
    with WebhookReceiver() as receiver:
        post_webhook(receiver.url, "secret", NOTICE)
    (post,) = receiver.posts
    signed = f"{post.headers['Raydex-Timestamp']}.".encode() + post.body
    assert post.headers["Raydex-Signature"] == "sha256=" + hmac.new(b"secret", signed, hashlib.sha256).hexdigest()
    assert post.headers["Raydex-Id"] == post.json["id"] == "id-1"
    assert (post.json["kind"], post.json["lines"], post.json["data"]) == ("night.refused", NOTICE.lines, {"run": 3})


def test_webhook_is_retried_with_the_same_id_until_accepted():
    with WebhookReceiver(503, 429, 500) as receiver:
        post_webhook(receiver.url, "secret", NOTICE, first_pause_s=0)
    assert [post.headers["Raydex-Id"] for post in receiver.posts] == ["id-1"] * 4


@pytest.mark.parametrize(("status", "tries"), [(503, TRIES), (410, 1), (302, 1)])
def test_receiver_that_never_accepts_is_given_up(status, tries):
    with (
        WebhookReceiver(*[status] * 9, headers={"Location": "http://127.0.0.1:9/"}) as receiver,
        pytest.raises(NotTold, match=rf"webhook: 127\.0\.0\.1 .*HTTP {status}"),
    ):
        post_webhook(receiver.url, "secret", NOTICE, first_pause_s=0)
    assert len(receiver.posts) == tries


def test_unreachable_host_is_named_without_its_possibly_secret_path():
    with pytest.raises(NotTold, match=r"127\.0\.0\.1 can't be reached") as error:
        post_webhook("http://127.0.0.1:9/T1/hidden", "secret", NOTICE, first_pause_s=0)
    assert "hidden" not in str(error.value)


def test_mail_has_its_text_and_the_id_of_its_notice():
    with MailReceiver() as receiver:
        send_mail(NOTICE, mail_by(receiver, "a@x.test", "b@x.test"))
    (mail,) = receiver.mails
    assert (mail.sender, mail.to) == ("raydex@x.test", ["a@x.test", "b@x.test"])
    assert mail.message["Subject"] == "The night of docs was refused"
    assert mail.message["Message-ID"] == "<id-1@raydex>" and mail.message["Auto-Submitted"] == "auto-generated"
    assert mail.message.get_content().splitlines() == NOTICE.lines


@pytest.mark.parametrize(
    ("password", "trusted", "said"),
    [("right", True, ""), ("wrong", True, "SMTPAuthenticationError"), ("right", False, "CERTIFICATE_VERIFY_FAILED")],
)
def test_mail_uses_tls_and_a_login_to_a_trusted_server(tmp_path, monkeypatch, password, trusted, said):
    path = certificate(tmp_path, "127.0.0.1", datetime.now(UTC) + timedelta(days=2))
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with MailReceiver(certificate=path, login="raydex:right") as receiver:
        choices = mail_by(receiver, "a@x.test", tls="tls", user="raydex")
        if not said:
            send_mail(NOTICE, choices, password)
            assert receiver.mails[0].to == ["a@x.test"]
            return
        with pytest.raises(NotTold, match=said) as error:
            send_mail(NOTICE, choices, password)
    assert receiver.mails == [] and password not in str(error.value)


def test_refused_receiver_is_named_although_the_other_got_it():
    with MailReceiver("b@x.test") as receiver, pytest.raises(NotTold, match=r"refuses b@x\.test"):
        send_mail(NOTICE, mail_by(receiver, "a@x.test", "b@x.test"))
    assert receiver.mails[0].to == ["a@x.test"]


@pytest.mark.parametrize(("url", "said"), [("", "127.0.0.1 refuses it with HTTP 410"), ("http://[::1/x", "InvalidURL")])
def test_every_channel_is_tried_even_if_one_fails(url, said):
    with WebhookReceiver(410) as webhook, MailReceiver() as mails, SlackServer() as slack:
        choices = TellChoices(webhook=url or webhook.url, slack="C1", mail=mail_by(mails, "a@x.test"))
        teller = Teller(choices, TellSecrets("secret", "xoxb-T1", slack_api=slack.url))
        told, failed = teller.tell(NOTICE)
        (call,) = slack.of("chat.postMessage")
    assert told == ["Slack", "e-mail"] and failed == [f"webhook: {said}"]
    assert call.ok and "öfter &lt;b&gt;" in call.text and len(mails.mails) == 1


def test_channel_without_its_secret_is_refused_with_the_variable_name():
    with pytest.raises(MissingSecret, match=r"night\.tell\.webhook needs a secret: set RAYDEX_WEBHOOK_SECRET"):
        Teller(TellChoices(webhook="https://example.com/"))
    with pytest.raises(ValueError, match="not sent in the clear"):
        MailChoices(to=["a@x.test"], sender="r@x.test", user="r")


def test_questions_are_sent_only_if_the_file_allows_it(tmp_path):
    worse = WorseQuestion("How do I keep a secret?", ["https://d.test/a"], ["https://d.test/a"], ["https://d.test/b"])
    result = NightResult("docs", 1, "refused", "mrr fell", {"index": 2, "published": False}, {"worse": ["x"]}, [worse])
    hidden, shown = (refusal_notice("id", result, allowed).as_json().decode() for allowed in (False, True))
    assert "keep a secret" not in hidden and "https://d.test/b" in hidden and "keep a secret" in shown
    mistake = BadDataset(tmp_path / "rows.jsonl", [(1, "question is 'How do I keep a secret?'")])
    assert b"keep a secret" not in failure_notice("docs", mistake).as_json()
