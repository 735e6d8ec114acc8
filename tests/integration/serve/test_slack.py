"""The Slack bot with a fake Slack: one immediate answer within Slack's limits, despite any crash."""

import asyncio
import itertools
import json
import re

import pytest
from kit.api import FakeEngine, FakeStore, run_server
from kit.scripted_server import Raw, ScriptedServer
from kit.slack_bot import RunningBot, answer, run_slack_bot, start_slack_command, stream
from kit.slack_server import HTML, Limit, SlackServer

from pipelines.store import StoreUnavailable
from serve.routes import create_app
from serve.slack.text.answer import RATE_DOWN, RATE_UP
from serve.slack.workspaces import WorkspaceFile, Workspaces

pytestmark = pytest.mark.slow


class PacedEngine(FakeEngine):
    """Waits before each delta, like a model."""

    def __init__(self, store: FakeStore, delay_s: float = 0.0) -> None:
        super().__init__(store)
        self.delay_s = delay_s

    async def _midway(self) -> None:
        await asyncio.sleep(self.delay_s)
        await super()._midway()


@pytest.fixture
def engine():
    return PacedEngine(FakeStore())


@pytest.fixture
def service(engine):
    with run_server(create_app(engine, engine._store)) as url:
        yield url


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def bot(slack, service, tmp_path):
    with run_slack_bot(slack, service, tmp_path / "slack") as running:
        yield running


def scripted(reply, asked=None):
    """Run a service that streams `reply`, or its result for a question's body, which is appended to `asked`."""

    def answer_query(body):
        if asked is not None:
            asked.append(body)
        return reply(body) if callable(reply) else reply

    rows = [{"name": name, "index": 1} for name in ("docs", "ray", "pg")]
    return ScriptedServer({"/query/stream": answer_query, "/collections": rows, "/feedback": answer_query})


def streamed(data):
    return Raw(200, f"event: delta\ndata: {json.dumps(data)}\n\n", "text/event-stream")


def texts(messages):
    return [message["text"] for message in messages]


def questions(engine):
    return [ask.question for ask in engine.asks]


# ---------------------------------------------------------------------------------------------- one answer


def test_mention_gets_an_immediate_message_that_becomes_the_answer(slack, bot, engine):
    ts = slack.say("How do I read a CSV file?")
    (message,) = slack.wait_for_answer(ts)
    first, *rest = slack.of("chat.postMessage", "chat.update")
    assert (first.method, first.text) == ("chat.postMessage", "_Searching…_")
    assert {call.method for call in rest} == {"chat.update"}
    assert "Call `read_csv(x[1])` to load it <https://d.test/data#csv|[1]>. Größe 😀" in message["text"]
    assert questions(engine) == ["How do I read a CSV file?"]
    assert slack.wait_for(lambda: slack.acknowledged)
    for call in (first, *rest):
        assert (call.arguments["parse"], call.arguments["link_names"]) == ("none", False)
        assert call.method == "chat.update" or call.arguments["unfurl_links"] is call.arguments["unfurl_media"] is False
        assert all(b["text"]["verbatim"] for b in call.arguments["blocks"] if b["type"] == "section")


def test_direct_messages_are_answered_in_their_thread(slack, bot, engine):
    ts = slack.write("How do I read a CSV file?")
    assert len(slack.wait_for_answer(ts, "D1")) == 1
    assert questions(engine) == ["How do I read a CSV file?"]


def test_edits_joins_and_bots_are_acknowledged_but_not_answered(slack, bot, engine):
    event = slack.mention("How?")
    ignored = [
        {**event, "bot_id": "B9"}, {**event, "edited": {"ts": "1"}}, {**event, "user": "U0BOT"},
        {"type": "message", "subtype": "message_changed", "channel": "D1", "channel_type": "im", "message": event},
        {"type": "member_joined_channel", "user": "U1", "channel": "C1"}, {"type": "app_home_opened", "user": "U1"},
        {**event, "type": "message", "channel_type": "channel", "text": "no mention"},
    ]  # fmt: skip
    envelopes = [slack.deliver(one) for one in ignored]
    slack.wait_for(lambda: set(envelopes) <= set(slack.acknowledged))
    slack.wait_for_answer(slack.say("And this?"))
    assert questions(engine) == ["And this?"]
    assert len(slack.of("chat.postMessage")) == 1


def test_thread_follow_ups_share_a_conversation_even_after_a_restart(slack, tmp_path):
    asked = []
    with scripted(stream(answer("So [1].")), asked) as service:
        with run_slack_bot(slack, service.url, tmp_path):
            ts = slack.say("How do I read a CSV file?")
            slack.wait_for_answer(ts)
        with run_slack_bot(slack, service.url, tmp_path):
            slack.say("And Parquet?", thread=ts)
            slack.wait_for(lambda: len(slack.thread(ts)) == 2 and slack.wait_for_answer(ts))
            slack.wait_for_answer(slack.say("Another thing?"))
    first, second, other = asked
    assert first["conversation"] == second["conversation"] != other["conversation"]
    assert {one["channel"] for one in asked} == {"slack"}
    assert "U0READER" not in str(asked)


# ---------------------------------------------------------------------------------------------- long, code, tables


def test_long_answer_is_split_into_messages_without_cutting_a_code_block(slack):
    text = "\n\n".join(f"## Step {n}\n\n{'word ' * 150}[1]\n\n```python\nstep({n})\nrun({n})\n```" for n in range(12))
    with scripted(stream(answer(text), deltas=re.findall(r"(?s).{1,900}", text))) as service, \
            run_slack_bot(slack, service.url):  # fmt: skip
        messages = slack.wait_for_answer(slack.say("How?"))
    assert len(messages) > 2
    assert [int(n) for n in re.findall(r"step\((\d+)\)", "".join(texts(messages)))] == list(range(12))
    sections = [b["text"]["text"] for m in messages for b in m["blocks"] if b["type"] == "section"]
    assert all(one.count("```") % 2 == 0 for one in sections)
    assert all(call.ok for call in slack.calls if call.status == 200)
    *others, rated = [any(b["type"] == "actions" for b in m["blocks"]) for m in messages]
    assert rated and not any(others)


def test_voided_text_is_deleted(slack):
    whole = stream(answer("short")).text
    deltas = [{"text": "word " * 1800}, {"text": "short", "reset": True}]
    events = "".join(streamed(delta).text for delta in deltas)
    head, mark, tail = whole.partition("event: answer")
    reply = Raw(200, f"{head}{events}{mark}{tail}", "text/event-stream")
    with scripted(reply) as service, run_slack_bot(slack, service.url):
        (message,) = slack.wait_for_answer(slack.say("How?"))
    assert message["text"] == "short"


# ---------------------------------------------------------------------------------------------- Slack's limits


def test_stream_is_edited_about_once_a_second_and_its_end_is_never_lost(service, engine, tmp_path):
    engine.delay_s = 0.7
    with SlackServer(limited=True) as slack, run_slack_bot(slack, service, tmp_path, paced=True):
        (message,) = slack.wait_for_answer(slack.say("How?"))
        calls = slack.of("chat.postMessage", "chat.update")
    assert 3 <= len(calls) <= 6
    assert [call.status for call in calls] == [200] * len(calls)
    assert all(after.at - before.at >= 0.9 for before, after in itertools.pairwise(calls))
    assert message["text"].endswith("done")


@pytest.mark.parametrize(
    "limit", [Limit(2, 1), Limit(1, None), Limit(1, 1, body=False)], ids=["twice", "unsaid", "empty"]
)
def test_refused_edit_is_resent_after_the_time_slack_gives(slack, bot, limit):
    slack.limits["chat.update"] = limit
    (message,) = slack.wait_for_answer(slack.say("How?"))
    calls = slack.of("chat.update")
    assert [c.status for c in calls if c.status == 429]
    assert all(after.at - before.at >= 0.99 for before, after in itertools.pairwise(calls) if before.status == 429)
    assert message["text"].endswith("done")


def test_refused_first_message_is_resent_and_acknowledged_in_time(slack, bot):
    slack.limits["chat.postMessage"] = Limit(1, 3)
    ts = slack.say("How?")
    slack.wait_for(lambda: slack.acknowledged)
    assert not slack.thread(ts)  # Slack wants an acknowledgement within 3 s, and the message comes after that
    assert len(slack.wait_for_answer(ts)) == 1
    refused, posted = slack.of("chat.postMessage")
    assert posted.at - refused.at >= 3.0


@pytest.mark.parametrize("fault", ["internal_error", HTML])
def test_temporary_slack_failure_loses_nothing(slack, bot, fault):
    slack.refusals["chat.update"] = fault
    ts = slack.say("How?")
    slack.wait_for(lambda: slack.of("chat.update"))
    del slack.refusals["chat.update"]
    assert len(slack.wait_for_answer(ts)) == 1


def test_blocks_refused_by_slack_are_sent_as_text(slack, bot):
    slack.refuse_blocks = True
    ts = slack.say("How?")
    (message,) = slack.wait_for(lambda: [m for m in slack.thread(ts) if m["text"].endswith("done")])
    assert message["blocks"] == []


def test_answer_that_can_no_longer_be_edited_is_posted(slack, bot):
    slack.refusals["chat.update"] = "edit_window_closed"
    ts = slack.say("How?")
    messages = slack.wait_for_answer(ts)
    assert texts(messages)[-1].endswith("done")


def test_answer_that_someone_deleted_is_not_posted_again(slack, bot, engine):
    engine.delay_s = 0.5
    ts = slack.say("How?")
    (message,) = slack.wait_for(lambda: slack.thread(ts))
    del slack.messages["C1"][message["ts"]]
    slack.wait_for_answer(slack.say("And this?", channel="C2"), "C2")
    assert slack.thread(ts) == []


# ---------------------------------------------------------------------------------------------- answered once


def test_redelivered_event_is_answered_once_even_after_a_restart(slack, service, engine, tmp_path):
    event = slack.mention("How?")
    with run_slack_bot(slack, service, tmp_path):
        envelopes = [slack.deliver(event, attempt=attempt) for attempt in (0, 1, 2)]
        slack.wait_for_answer(event["ts"])
        envelopes.append(slack.deliver(event, attempt=3))
        envelopes.append(slack.deliver({**event, "type": "message", "channel_type": "channel"}))
        slack.wait_for(lambda: set(envelopes) <= set(slack.acknowledged))
    with run_slack_bot(slack, service, tmp_path):
        envelope = slack.deliver(event)
        slack.wait_for(lambda: envelope in slack.acknowledged)
    assert len(slack.of("chat.postMessage")) == len(engine.asks) == 1


def test_two_bots_on_one_machine_answer_an_event_once(slack, service, engine, tmp_path):
    event = slack.mention("How?")
    with run_slack_bot(slack, service, tmp_path), run_slack_bot(slack, service, tmp_path):
        envelopes = [slack.deliver(event, socket=socket) for socket in (0, 1, 0, 1)]
        slack.wait_for_answer(event["ts"])
        slack.wait_for(lambda: set(envelopes) <= set(slack.acknowledged))
    assert len(slack.of("chat.postMessage")) == len(engine.asks) == 1


def test_bot_on_another_machine_finds_the_answer_in_the_thread(slack, service, engine, tmp_path):
    event = slack.mention("How?")
    with run_slack_bot(slack, service, tmp_path / "one"), run_slack_bot(slack, service, tmp_path / "other"):
        slack.deliver(event, socket=0)
        slack.wait_for_answer(event["ts"])
        envelope = slack.deliver(event, attempt=1, socket=1)
        slack.wait_for(lambda: envelope in slack.acknowledged)
    assert len(slack.of("chat.postMessage")) == len(engine.asks) == 1


def test_two_follow_ups_in_a_thread_are_two_questions(slack, bot, engine):
    ts = slack.say("How?")
    slack.wait_for_answer(ts)
    event = slack.mention("And then?", thread=ts)
    slack.deliver(event, attempt=1)  # the first delivery was lost
    slack.wait_for(lambda: len(slack.thread(ts)) == 2)
    slack.wait_for_answer(ts)
    assert questions(engine) == ["How?", "And then?"]


# ---------------------------------------------------------------------------------------------- crashes


def test_next_process_finishes_the_message_of_a_killed_one(slack, service, engine, tmp_path, warm):
    engine.hangs = True
    killed = start_slack_command(slack, service, tmp_path)
    ts = slack.say("How?")
    slack.wait_for(lambda: engine.asks and slack.thread(ts))
    killed.kill()
    killed.communicate()
    engine.hangs = False
    following = start_slack_command(slack, service, tmp_path)
    (message,) = slack.wait_for_answer(ts)
    following.terminate()
    _, said = following.communicate(timeout=60)
    assert following.returncode == 0 and "raydex slack: answering from the service at" in said
    assert message["text"].endswith("done") and len(slack.of("chat.postMessage")) == 1


def test_question_is_repeated_if_a_process_dies_before_its_first_message(slack, service, engine, tmp_path, warm):
    event = slack.mention("How?")
    slack.limits["chat.postMessage"] = Limit(1, 60)
    killed = start_slack_command(slack, service, tmp_path)
    slack.deliver(event)
    slack.wait_for(lambda: slack.of("chat.postMessage"))
    killed.kill()
    killed.communicate()
    with run_slack_bot(slack, service, tmp_path / "slack"):
        slack.deliver(event, attempt=1)
        assert len(slack.wait_for_answer(event["ts"])) == 1
    assert questions(engine) == ["How?"]


def test_stopped_bot_finishes_its_open_answers(slack, service, engine, tmp_path):
    engine.delay_s = 0.4
    with run_slack_bot(slack, service, tmp_path):
        ts = slack.say("How?")
        slack.wait_for(lambda: slack.thread(ts))
    assert texts(slack.wait_for_answer(ts))[0].endswith("done")


@pytest.mark.parametrize("reason", ["refresh_requested", "warning", "link_disabled"])
def test_disconnect_is_followed_by_a_new_connection(slack, bot, reason):
    slack.wait_for_answer(slack.say("How?"))
    slack.disconnect(reason)
    slack.wait_for(lambda: len(slack.sockets) == 2)
    slack.wait_for_answer(slack.say("And now?"))


def test_lost_connection_is_replaced(slack, service, monkeypatch):
    monkeypatch.setattr("serve.slack.bot.PING_S", 0.5)
    with run_slack_bot(slack, service):
        slack.tear()
        slack.wait_for(lambda: len(slack.sockets) == 2)
        slack.wait_for_answer(slack.say("And now?"))


def test_unreachable_service_is_reported_in_the_message(slack, tmp_path):
    with run_slack_bot(slack, "http://127.0.0.1:9", tmp_path) as bot:
        ts = slack.say("How?")
        (message,) = slack.wait_for(lambda: [m for m in slack.thread(ts) if "warning" in m["text"]])
    assert message["text"] == ":warning: The service can't be reached"
    assert any("does not answer yet" in line for line in bot.said)


def test_service_that_stops_midway_keeps_its_partial_text(slack, bot, engine):
    engine.fails_midway = RuntimeError("gone")
    ts = slack.say("How?")
    (message,) = slack.wait_for(lambda: [m for m in slack.thread(ts) if "warning" in m["text"]])
    assert message["text"].startswith("Call `read_csv") or message["text"].startswith("Call \\`read_csv")
    assert message["text"].endswith(":warning: Something went wrong\nThe service failed.")
    assert "gone" not in message["text"]


def test_busy_service_is_asked_again(slack, bot, engine):
    engine.fails = StoreUnavailable("the database can't be reached")
    ts = slack.say("How?")
    slack.wait_for(lambda: engine.asks)
    engine.fails = None
    assert texts(slack.wait_for_answer(ts))[0].endswith("done")


@pytest.mark.parametrize(("reply", "said"), [
    (Raw(401, '{"error": "an API key is required"}'), "The assistant is not set up"),
    (Raw(404, '{"error": "run `raydex index` first"}'), "run `raydex index` first"),
    (Raw(422, '{"error": "question: too long"}'), "question: too long"),
    (Raw(413, '{"error": "9,000 characters", "kind": "too_long"}'), "The question is too long\nShorten it"),
    (Raw(403, '{"error": "it may have 2,000 characters"}'), "it may have 2,000 characters"),
    (Raw(429, '{"error": "slow down"}'), "Too many questions in a short time"),
    (Raw(500, '{"error": "boom"}'), "The service failed."),
    (streamed({"text": "It is"}), "It is\n\n:warning: The answer broke off"),
    (streamed({"words": "It is"}), "Something went wrong"),
])  # fmt: skip
def test_errors_are_explained_in_words_for_readers(slack, reply, said):
    with scripted(reply) as service, run_slack_bot(slack, service.url):
        ts = slack.say("How?")
        slack.wait_for(lambda: said in "".join(texts(slack.thread(ts))))


# ---------------------------------------------------------------------------------------------- ratings


THANKS = "Thank you. This goes to the people who write the documentation."


def test_each_person_rates_an_answer_and_is_acknowledged_privately(slack, bot, engine):
    ts = slack.say("How?")
    (message,) = slack.wait_for_answer(ts)
    slack.press(message, RATE_UP)
    (thanks,) = slack.wait_for(lambda: slack.of("chat.postEphemeral"))
    assert thanks.arguments == {"channel": "C1", "user": "U0READER", "thread_ts": ts, "text": THANKS}
    for user, action in (("U2", RATE_DOWN), ("U0READER", RATE_UP)):
        slack.press(message, action, user=user)
    given = slack.wait_for(lambda: len(engine._store.given) == 3 and engine._store.given)
    assert {(id, rating) for id, rating, *_ in given} == {(engine.asks[0].id, 1), (engine.asks[0].id, -1)}
    first, again, other = (key for _, _, _, key, *_ in sorted(given, key=lambda one: one[1], reverse=True))
    assert first == again != other and "U0READER" not in str(given)


def test_thumbs_down_requests_reasons(slack):
    rated = []
    with scripted(lambda body: stream(answer("So.")) if "question" in body else {"id": "a1", "rating": -1}, rated) as \
            service, run_slack_bot(slack, service.url):  # fmt: skip
        slack.press(slack.wait_for_answer(slack.say("Wie lese ich eine Datei?"))[-1], RATE_DOWN)
        (dialog,) = slack.wait_for(lambda: slack.of("views.open"))
        slack.wait_for(lambda: len(rated) == 2)
        envelope = slack.submit(dialog.arguments["view"], ["wrong", "outdated"], "It is `read_csv` now.")
        slack.wait_for(lambda: len(rated) == 3 and envelope in slack.acknowledged)
        (thanks,) = slack.wait_for(lambda: slack.of("chat.postEphemeral"))
    assert dialog.arguments["view"]["title"]["text"] == "Schlechte Antwort" and thanks.text.startswith("Danke.")
    raters = {one.pop("rater") for one in rated[1:]}
    assert len(raters) == 1 and "U0READER" not in str(raters)
    given = {"id": "a1", "rating": -1, "comment": "", "reasons": []}
    assert rated[1:] == [given, {**given, "comment": "It is `read_csv` now.", "reasons": ["wrong", "outdated"]}]


# ---------------------------------------------------------------------------------------------- workspaces, tokens


def test_channels_of_several_workspaces_use_their_own_collections():
    file = WorkspaceFile.model_validate({
        "collection": "docs",
        "workspaces": {
            "T1": {"token": "A", "channels": {"C7": "gone", "C9": "pg"}}, "T2": {"token": "B", "collection": "ray"},
        },
    })  # fmt: skip
    workspaces = Workspaces(file, {"T1": "xoxb-T1", "T2": "xoxb-T2"})
    asked = []
    with SlackServer(("T1", "T2")) as slack, scripted(stream(answer("So.")), asked) as service, \
            run_slack_bot(slack, service.url, workspaces=workspaces) as bot:  # fmt: skip
        for team, channel in (("T1", "C1"), ("T1", "C9"), ("T2", "C9")):
            slack.wait_for_answer(slack.say("How?", team=team, channel=channel), channel)
        envelope = slack.deliver(slack.mention("How?", channel="C3"), team="T3")
        slack.wait_for(lambda: envelope in slack.acknowledged)
    assert [one["collection"] for one in asked] == ["docs", "pg", "ray"]
    assert [call.token for call in slack.of("chat.postMessage")] == ["xoxb-T1", "xoxb-T1", "xoxb-T2"]
    assert bot.said[:2] == ["workspace Team T1 (T1)", "workspace Team T2 (T2)"]
    assert bot.said[2] == "the service has no published index of gone; those that it has: docs, pg, ray"


@pytest.mark.parametrize(("change", "message"), [
    ({"app_token_error": "invalid_auth"}, "SLACK_APP_TOKEN is refused (invalid_auth): Slack does not know it"),
    ({"app_token_error": "missing_scope"}, "SLACK_APP_TOKEN lacks the scope connections:write"),
    ({"teams": {}}, "SLACK_BOT_TOKEN is refused (invalid_auth)"),
    ({"scopes": {"xoxb-T1": "chat:write"}}, "SLACK_BOT_TOKEN lacks the scopes app_mentions:read, im:history"),
    ({"refusals": {"auth.test": "account_inactive"}}, "the app was removed from the workspace: install it again"),
])  # fmt: skip
def test_token_refused_by_slack_is_an_error_that_says_what_to_do(slack, change, message):
    token = next(iter(slack.teams))
    for name, value in change.items():
        setattr(slack, name, value)
    workspaces = Workspaces(
        WorkspaceFile.model_validate({"workspaces": {"T1": {"token": "SLACK_BOT_TOKEN"}}}), {"T1": token}
    )
    bot = RunningBot(slack, "http://127.0.0.1:9", None, workspaces)
    assert message in str(slack.wait_for(lambda: bot.error))


def test_missing_optional_scopes_are_named(slack):
    slack.scopes["xoxb-T1"] = "app_mentions:read,chat:write,im:history"
    with run_slack_bot(slack, "http://127.0.0.1:9") as bot:
        assert "without channels:history, groups:history, mpim:history a redelivered message" in bot.said[0]


def test_many_concurrent_questions_are_all_answered(service, engine, tmp_path):
    engine.delay_s = 0.1
    with SlackServer(limited=True) as slack, run_slack_bot(slack, service, tmp_path, paced=True):
        asked = [(slack.say(f"How {n}?", channel=f"C{n % 4}"), f"C{n % 4}") for n in range(8)]
        for ts, channel in asked:
            (message,) = slack.wait_for_answer(ts, channel, 60)
            assert message["text"].endswith("done")
    assert len(engine.asks) == 8
