"""A chat platform is a `Channel` and a listener: a small one answers like Slack, without any code of Slack."""

import asyncio

import pytest
from kit.scripted_server import Raw, ScriptedServer
from kit.slack_bot import answer, citation, stream

from pipelines.service_client import ServiceClient
from pipelines.text.languages import say_beside
from serve.chat.bot import ChatBot
from serve.chat.channel import ChannelRefused, MessageGone, WritingTurns
from serve.chat.inbox import Inbox
from serve.chat.packing import Fragment, pack
from serve.chat.question import Asked
from serve.chat.rating import rater_of, store_rating
from serve.chat.reply import HELP
from serve.chat.running import BackgroundBot, ChatRefused, check_service

ASKED = Asked("team", "channel", "1", "1", "How?")
MOST = 80


class PinBoard:
    """A platform of plain notes with up to 80 characters."""

    def __init__(self, refuses=None):
        self.turns, self.refuses = WritingTurns(0.0, 0.0), refuses
        self.notes, self.written = {}, []

    def render(self, reply):
        lines = [reply.text, reply.failure, *(f"{one.n} {one.url}" for one in reply.sources)]
        return pack([Fragment(line) for line in lines if line], MOST) or [""]

    async def write(self, asked, part, message, id=""):
        if self.refuses and len(self.written) == 1:
            raise self.refuses
        id = id or f"note {len(self.written)}"
        self.notes[id] = message
        self.written.append((id, part, message))
        return id

    async def delete(self, asked, id):
        del self.notes[id]

    async def replied(self, asked):
        return bool(self.notes)


def served(reply, asked=None):
    def take(body):
        if asked is not None:
            asked.append(body)
        return reply

    return ScriptedServer({"/query/stream": take, "/feedback": take, "/collections": [{"name": "ray", "index": 1}]})


async def answered(board, service, question=ASKED, folder=None, **how):
    bot = ChatBot("pins", ServiceClient(service.url), Inbox(folder), lambda team: board, lambda asked: "ray")
    began = bot.take(question, **how)
    assert bot.take(question) is None
    await began.wait()
    await bot.end()
    return list(board.notes.values())


def test_question_gets_an_immediate_note_that_becomes_the_answer():
    bodies, text = [], " ".join(f"word{n}" for n in range(30))
    with served(stream(answer(text, [citation()])), bodies) as service:
        board = PinBoard()
        notes = asyncio.run(answered(board, service))
    assert board.written[0] == ("note 0", 0, "*Searching…* **ray**")
    assert " ".join(notes).split() == [*text.split(), "1", "https://d.test/data#csv"] and max(map(len, notes)) <= MOST
    assert bodies == [{
        "question": "How?", "conversation": f"pins-{ASKED.conversation}", "channel": "pins", "collection": "ray",
    }]  # fmt: skip


def test_mention_without_a_question_explains_how_to_ask():
    with served(stream(answer("So."))) as service:
        notes = asyncio.run(answered(PinBoard(), service, Asked("team", "channel", "1", "1", "")))
    assert " ".join(notes).split() == HELP.split()


def test_redelivered_and_already_answered_question_is_left_alone():
    board = PinBoard()
    board.notes["of another process"] = "So."
    with served(stream(answer("No."))) as service:
        assert asyncio.run(answered(board, service, again=True)) == ["So."]


@pytest.mark.parametrize(("refuses", "left"), [
    (MessageGone("deleted"), "{}"), (ChannelRefused("no"), "{}"), (OSError("away"), '{"asked"'),
])  # fmt: skip
def test_refused_note_is_final_and_an_undelivered_one_is_left_for_later(tmp_path, refuses, left):
    with served(stream(answer("So."))) as service:
        asyncio.run(answered(PinBoard(refuses), service, folder=tmp_path))
    (file,) = tmp_path.glob("*.json")
    assert file.read_text().startswith(left)


class BrokenBoard(PinBoard):
    """A platform with a bug: `broken` fails, a method of PinBoard, for an answer's text if it renders."""

    def __init__(self, broken):
        super().__init__()
        self.broken = broken

    def render(self, reply):
        if self.broken == "render" and "So." in reply.text:
            raise KeyError("blocks")
        return super().render(reply)

    async def write(self, asked, part, message, id=""):
        if self.broken == "first write" and not self.written:
            self.broken = ""
            raise KeyError("ts")
        return await super().write(asked, part, message, id)

    async def replied(self, asked):
        raise AssertionError("no such field")


@pytest.mark.parametrize("broken", ["render", "first write"])
def test_bug_of_a_channel_is_shown_to_the_reader_and_closes_the_message(tmp_path, broken):
    with served(stream(answer("So."))) as service:
        notes = asyncio.run(answered(BrokenBoard(broken), service, folder=tmp_path))
    assert notes == [say_beside("failed", "en")]
    (file,) = tmp_path.glob("*.json")
    assert file.read_text() == "{}"


def test_bug_before_the_first_note_closes_the_message(tmp_path):
    with served(stream(answer("So."))) as service:
        assert asyncio.run(answered(BrokenBoard("replied"), service, folder=tmp_path, again=True)) == []
        assert Inbox(tmp_path).take(ASKED) is None
    (file,) = tmp_path.glob("*.json")
    assert file.read_text() == "{}"


def test_rating_names_no_person_and_returns_its_outcome(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # requests to this machine must not use it

    async def rated(service):
        client = ServiceClient(service.url)
        return await store_rating(client, "a1", -1, rater_of("secret", "a1", "ann"), "old", ["outdated", "odd"], "de")

    bodies = []
    with served({"id": "a1", "rating": -1}, bodies) as service:
        assert asyncio.run(rated(service)) == ""
    (body,) = bodies
    assert body.pop("rater") == rater_of("secret", "a1", "ann") != rater_of("secret", "a1", "bob")
    assert body == {"id": "a1", "rating": -1, "comment": "old", "reasons": ["outdated"]}
    with served(Raw(403)) as service:  # a public service accepts a `rater` only with a key
        assert asyncio.run(rated(service)) == "Nicht gesendet: Im Dienst ist ein Fehler aufgetreten."


def test_service_without_the_named_collections_is_reported():
    said = []
    with served({}) as service:
        assert asyncio.run(check_service(ServiceClient(service.url), {"ray"}, said.append)) and not said
        assert not asyncio.run(check_service(ServiceClient(service.url), {"gone"}, said.append))
    assert said == ["the service has no published index of gone; those that it has: ray"]


def test_bot_refused_by_the_platform_is_healthy_until_it_ends():
    async def refuse(stop):
        raise ChatRefused("the token is not good")

    bot = BackgroundBot("Pins", refuse)
    bot.check()
    bot.close()
    with pytest.raises(RuntimeError, match="the Pins bot has ended"):
        bot.check()
