"""Notices reach services by their Apprise URLs, and no message shows what such a URL holds."""

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import yaml
from kit.receivers import MailReceiver, WebhookReceiver
from kit.web import closed_port

from jobs.cli import run_job
from jobs.report import app
from pipelines.nights.notices.notice import Notice, NotTold
from pipelines.nights.notices.service import BadServiceUrl, Service
from pipelines.nights.notices.teller import MissingSecret, Teller, TellSecrets
from pipelines.records.night_choices import MailChoices, TellChoices

LINES = ["  index       3 pages", "  worse       öfter <b> & `x`", "    before  *https://d.test/a"]
NOTICE = Notice("id-1", "night.refused", "docs", "The night\nof docs was refused", LINES)
TOKEN, TOPIC, PASSWORD = "tk_abcdefghijklmnopqrstuvwxyz012", "hidden-topic", "pa%24%24word"
VARIABLE = "RAYDEX_NOTICE_PHONE"


def ntfy(receiver: WebhookReceiver, login: str = TOKEN) -> str:
    return f"ntfy://{login}@{receiver.host}/{TOPIC}?mode=private"


@contextmanager
def discord(monkeypatch: pytest.MonkeyPatch, *statuses: int) -> Iterator[tuple[WebhookReceiver, str]]:
    """Run a receiver in place of discord.com; yield it and the URL of a channel."""
    from apprise.plugins.discord import NotifyDiscord

    with WebhookReceiver(*statuses) as receiver:
        monkeypatch.setattr(NotifyDiscord, "notify_url", receiver.url)
        yield receiver, f"discord://{'1' * 18}/{TOKEN}{TOKEN}"


@pytest.fixture
def leaked(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., list[str]]]:
    """Return what finds those of some words that a message, the output or the log of this process shows."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)  # caplog also reads loggers that pass nothing on
    logging.getLogger().addHandler(handler)
    logging.getLogger("apprise").setLevel(logging.DEBUG)

    def find(error: BaseException, *words: str) -> list[str]:
        shown = " ".join([str(error), stream.getvalue(), *capsys.readouterr()])
        return [word for word in words if word in shown]

    yield find
    logging.getLogger("apprise").setLevel(logging.NOTSET)
    logging.getLogger().removeHandler(handler)


def test_ntfy_gets_title_and_lines_unchanged():
    with WebhookReceiver(accepted=200) as receiver:
        Service("phone", ntfy(receiver), VARIABLE).send(NOTICE)
    (post,) = receiver.posts
    assert post.json["title"] == "The night of docs was refused"
    assert post.json["message"].splitlines() == LINES
    assert (post.json["topic"], post.headers["Authorization"]) == (TOPIC, f"Bearer {TOKEN}")


def test_discord_gets_title_and_lines(monkeypatch):
    with discord(monkeypatch) as (receiver, url):
        Service("team", url, VARIABLE).send(NOTICE)
    (post,) = receiver.posts
    assert post.path.endswith(f"/{'1' * 18}/{TOKEN}{TOKEN}")
    said = str(post.json)
    assert "The night of docs was refused" in said and "3 pages" in said and "öfter <b> & " in said


def test_notice_that_is_too_long_for_a_service_is_split_and_whole(monkeypatch):
    long = Notice("id", "report", "docs", "Report", [f"line {n:04} of a long report" for n in range(150)])
    with discord(monkeypatch) as (receiver, url):
        Service("team", url, VARIABLE).send(long)
    said = [str(post.json) for post in receiver.posts]
    assert len(said) > 1 and [n for n in range(150) if f"line {n:04} of" not in "".join(said)] == []


@pytest.mark.parametrize("status", [403, 500, 302])
def test_refusal_has_its_status_and_nothing_of_the_url(status, leaked):
    with (
        WebhookReceiver(status, headers={"Location": "http://127.0.0.1:9/"}) as receiver,
        pytest.raises(NotTold, match=f"phone: .*{status}") as error,
    ):
        Service("phone", ntfy(receiver, f"jane:{PASSWORD}"), VARIABLE, retries=0).send(NOTICE)
    assert len(receiver.posts) == 1
    assert leaked(error.value, TOPIC, PASSWORD, "pa$$word", "jane") == []


@pytest.mark.parametrize("url", ["ntfy://jane:{word}@127.0.0.1:{port}/{topic}", "gotify://127.0.0.1:{port}/{topic}",
                                 "json://jane:{word}@127.0.0.1:{port}/{topic}"])  # fmt: skip
def test_unreachable_service_is_said_without_secrets(url, leaked):
    with closed_port() as port, pytest.raises(NotTold, match="phone: ") as error:
        filled = url.format(port=port, word=PASSWORD, topic=TOPIC)
        Service("phone", filled, VARIABLE, retries=0).send(NOTICE)
    assert leaked(error.value, TOPIC, PASSWORD, "pa$$word", "jane") == []


def test_service_that_is_away_for_a_moment_is_tried_again():
    with WebhookReceiver(503) as receiver:  # json:// is the service for which Apprise never waits
        Service("machine", f"json://{receiver.host}/hook?wait=0", VARIABLE).send(NOTICE)
    assert len(receiver.posts) == 2


@pytest.mark.parametrize(
    "url",
    [
        f"https://discord.com/api/webhooks/{'1' * 18}/{TOKEN}{TOKEN}",
        "tgram://123456789:ABCdefGhIJKlmNoPQRsTUVwxyZabcdefghi/-1001234567890",
        "workflows://prod-01.westeurope.logic.azure.com:443/643e69f83c8944438d68119179a10a64/sdkfjhlskdjf?ver=2016",
        "mmost://mattermost.example.com/3ccdd113474722377935511fc85d3dd4",
        "rocket://user:pass@rocket.example.com/#docs",
        "matrixs://user:pass@matrix.example.com/#docs:example.com",
        "pagerduty://A1BRTD4JD@TIiajkdnlazkcOXrIdevi7FQ/",
        "ntfys://ntfy.sh/docs",
        "gotifys://gotify.example.com/A1b2C3d4E5f6G7h",
        "mailtos://user:pass@mail.example.com?to=docs@example.com&from=raydex@example.com",
    ],
)
def test_urls_of_known_services_are_accepted(url):
    teller = Teller(TellChoices(services=["phone"]), TellSecrets(services={VARIABLE: url}))
    assert teller


@pytest.mark.parametrize("url", ["discord://short", "nothing://x/y", "just words", "https://example.com/hidden-path"])
def test_unusable_url_is_refused_with_its_variable_and_without_its_value(url, leaked):
    with pytest.raises(BadServiceUrl, match=f"{VARIABLE} is not a URL that Apprise can use") as error:
        Teller(TellChoices(services=["phone"]), TellSecrets(services={VARIABLE: url}))
    assert leaked(error.value, url, "hidden-path", "short") == []


def test_service_without_its_variable_is_refused_with_the_name_to_set():
    with pytest.raises(MissingSecret, match=f"night.tell.services names 'phone': set {VARIABLE}"):
        Teller(TellChoices(services=["phone"]))
    with pytest.raises(ValueError, match="services"):
        TellChoices(services=["https://example.com/token"])
    assert TOKEN not in repr(TellSecrets(services={VARIABLE: TOKEN}))


def test_failed_service_does_not_keep_others_from_hearing():
    with WebhookReceiver(403, 403, 403) as down, WebhookReceiver(accepted=200) as up, MailReceiver() as mails:
        mail = MailChoices(to=["a@x.test"], sender="r@x.test", host="127.0.0.1", port=mails.port)
        secrets = TellSecrets(services={"RAYDEX_NOTICE_A": f"{ntfy(down)}&retry=0", "RAYDEX_NOTICE_B": ntfy(up)})
        told, failed = Teller(TellChoices(mail=mail, services=["a", "b"]), secrets).tell(NOTICE)
    assert told == ["e-mail", "b"] and len(failed) == 1 and failed[0].startswith("a: ") and "403" in failed[0]


@pytest.mark.parametrize(("status", "code", "said"), [(200, 0, "sent by phone"), (403, 1, "not sent by phone: ")])
def test_report_command_tries_notices_without_a_database(tmp_path, monkeypatch, capsys, status, code, said):
    file = tmp_path / "docs.yaml"
    values = {"sites": [{"start_urls": ["https://d.test/"]}], "night": {"tell": {"services": ["phone"]}}}
    file.write_text(yaml.safe_dump(values))
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:9/none")
    with WebhookReceiver(status, accepted=200) as receiver:
        monkeypatch.setenv(VARIABLE, f"{ntfy(receiver)}&retry=0")
        assert run_job(app, [str(file), "--test"]) == code
    (post,) = receiver.posts
    shown = "".join(capsys.readouterr())
    assert "a test notice for docs" in post.json["title"] and said in shown
    assert TOKEN not in shown and TOPIC not in shown and urlsplit(receiver.url).path == "/hook"


def test_report_test_without_recipients_says_what_to_set(tmp_path, capsys):
    file = tmp_path / "docs.yaml"
    file.write_text(yaml.safe_dump({"sites": [{"start_urls": ["https://d.test/"]}]}))
    assert run_job(app, [str(file), "--test"]) == 2
    assert "names nobody: give night.tell.webhook, slack, mail or services" in capsys.readouterr().err
