"""Runs a fake Slack on loopback: Socket Mode and the methods of the Web API that the bot uses.

    with SlackServer() as slack:                        # one workspace, T1, with the bot token xoxb-T1
        slack.url                                       # for the SDK's base_url
        slack.say("How do I read a CSV file?")          # a mention, delivered over the socket
        slack.wait_for(lambda: slack.thread(ts))        # the bot's current messages in a thread

It refuses the same requests as Slack: unknown tokens, texts, sections and numbers of blocks over the limits, unknown
messages; with `limited` also more than one write per second in a channel. `calls` records every call of a method with
its time. `acknowledged` has the ids of the envelopes that a client acknowledged. It was written from Slack's
documentation and never compared with Slack.
"""

import asyncio
import itertools
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

SCOPES = "app_mentions:read,chat:write,im:history,channels:history,groups:history,mpim:history"
APP_TOKEN, BOT_USER, READER = "xapp-1", "U0BOT", "U0READER"
HTML = "<html>"  # as a method's error: a page with status 502, as a proxy would send
MOST_TEXT, MOST_UPDATE_TEXT, MOST_SECTION, MOST_BLOCKS = 40_000, 4_000, 3_000, 50


@dataclass
class SlackCall:
    """One call of a method: time (seconds), token, arguments, and reply."""

    at: float
    method: str
    token: str
    arguments: dict[str, Any]
    reply: dict[str, Any] = field(default_factory=dict)
    status: int = 200

    @property
    def ok(self) -> bool:
        return bool(self.reply.get("ok"))

    @property
    def text(self) -> str:
        return str(self.arguments.get("text", ""))


@dataclass
class Limit:
    """Answers the next `times` calls of a method with 429, without Retry-After for None, and without a body if told."""

    times: int
    retry_after: float | None = 1
    body: bool = True


class SlackServer:
    """Serves while in the block. `scopes` by bot token, or None for a Slack that does not report them."""

    def __init__(self, teams: Iterable[str] = ("T1",), *, port: int = 0, limited: bool = False) -> None:
        self.teams = {f"xoxb-{team}": team for team in teams}
        self.scopes: dict[str, str | None] = dict.fromkeys(self.teams, SCOPES)
        self.app_token_error = ""
        self.calls: list[SlackCall] = []
        self.messages: dict[str, dict[str, dict[str, Any]]] = {}  # by channel and ts
        self.limits: dict[str, Limit] = {}
        self.refusals: dict[str, str] = {}  # error by method
        self.limited, self.refuse_blocks = limited, False
        self.acknowledged: list[str] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.opened = 0
        self._written: dict[str, float] = {}
        self._numbers = itertools.count(1)
        self._port, self._started = port, threading.Event()
        self.url = self.socket_url = ""

    # ------------------------------------------------------------------------------------------ events from Slack

    def say(self, text: str, *, channel: str = "C1", team: str = "T1", thread: str = "", **more: Any) -> str:
        """Mention the bot as a person, and return the message's ts."""
        event = self.mention(text, channel=channel, thread=thread, **more)
        self.deliver(event, team=team)
        return str(event["ts"])

    def write(self, text: str, *, channel: str = "D1", team: str = "T1", thread: str = "", **more: Any) -> str:
        """Write to the bot directly as a person, and return the message's ts."""
        event = {**self.mention(text, channel=channel, thread=thread), "type": "message", "channel_type": "im"}
        self.deliver({**event, "text": text, **more}, team=team)
        return str(event["ts"])

    def mention(self, text: str, *, channel: str = "C1", thread: str = "", **more: Any) -> dict[str, Any]:
        """Return the event of a mention without delivering it."""
        event = {
            "type": "app_mention",
            "user": READER,
            "channel": channel,
            "ts": self._ts(),
            "text": f"<@{BOT_USER}> {text}".strip(),
            **({"thread_ts": thread} if thread else {}),
            **more,
        }
        self.messages.setdefault(channel, {})[event["ts"]] = event
        return event

    def deliver(self, event: dict[str, Any], *, team: str = "T1", attempt: int = 0, socket: int = -1) -> str:
        """Deliver an event over a socket (the most recently opened one), and return the envelope's id."""
        payload = {"type": "event_callback", "team_id": team, "api_app_id": "A1", "event": event,
                   "event_id": f"Ev{event.get('ts', '')}", "event_time": int(time.time()), "authorizations": [
                       {"team_id": team, "user_id": BOT_USER, "is_bot": True, "enterprise_id": None}]}  # fmt: skip
        retry = {"retry_attempt": attempt, "retry_reason": "timeout" if attempt else ""}
        return self.send({"type": "events_api", "accepts_response_payload": False, "payload": payload, **retry}, socket)

    def press(
        self, message: dict[str, Any], action: str, *, team: str = "T1", channel: str = "C1", user: str = READER
    ) -> str:
        """Press, as a person, the button of a message with the action id `action`."""
        rows = [block for block in message["blocks"] if block["type"] == "actions"]
        row, button = next((row, one) for row in rows for one in row["elements"] if one["action_id"] == action)
        payload = {"type": "block_actions", "team": {"id": team}, "user": {"id": user, "team_id": team},
                   "channel": {"id": channel}, "message": message, "trigger_id": f"trigger-{next(self._numbers)}",
                   "container": {"type": "message", "channel_id": channel, "message_ts": message["ts"]},
                   "actions": [{"type": "button", "action_id": action, "value": button["value"],
                                "block_id": row["block_id"]}]}  # fmt: skip
        return self.send({"type": "interactive", "accepts_response_payload": True, "payload": payload})

    def submit(self, view: dict[str, Any], reasons: Iterable[str], comment: str, *, team: str = "T1") -> str:
        """Submit, as a person, the dialog that was opened with `view`."""
        values = {"reasons": {"reasons": {"type": "checkboxes", "selected_options": [{"value": r} for r in reasons]}},
                  "comment": {"comment": {"type": "plain_text_input", "value": comment or None}}}  # fmt: skip
        payload = {"type": "view_submission", "team": {"id": team}, "user": {"id": READER, "team_id": team},
                   "view": {**view, "id": "V1", "state": {"values": values}}}  # fmt: skip
        return self.send({"type": "interactive", "accepts_response_payload": True, "payload": payload})

    def send(self, message: dict[str, Any], socket: int = -1) -> str:
        envelope = str(uuid.uuid4())
        body = json.dumps({"envelope_id": envelope, **message})
        asyncio.run_coroutine_threadsafe(self.sockets[socket].send_str(body), self._loop).result(60)
        return envelope

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask the client to reconnect, and close its socket."""
        socket = self.sockets[-1]
        body = json.dumps({"type": "disconnect", "reason": reason, "debug_info": {"host": "stand-in"}})
        asyncio.run_coroutine_threadsafe(socket.send_str(body), self._loop).result(60)

    def tear(self) -> None:
        """Break the last socket without a closing handshake."""
        request = self.sockets[-1]._req
        assert request is not None and request.transport is not None
        self._loop.call_soon_threadsafe(request.transport.abort)

    # ------------------------------------------------------------------------------------------ requests from the bot

    def thread(self, ts: str, channel: str = "C1") -> list[dict[str, Any]]:
        """Return the bot's current messages in a thread."""
        return [m for m in self.messages.get(channel, {}).values() if m.get("thread_ts") == ts and "bot_id" in m]

    def of(self, *methods: str) -> list[SlackCall]:
        return [call for call in list(self.calls) if call.method in methods]

    def wait_for(self, condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        """Wait for `condition` to return a true value, and return that value."""
        until = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < until, (
                f"it did not happen; calls: {[(c.method, c.text[:80]) for c in self.calls]}"
            )
            time.sleep(0.01)
        return found

    def wait_for_answer(self, ts: str, channel: str = "C1", seconds: float = 60.0) -> list[dict[str, Any]]:
        """Wait until the last message of a thread has its buttons, and return the thread's messages."""

        def rated() -> list[dict[str, Any]]:
            messages = self.thread(ts, channel)
            return messages if messages and any(b["type"] == "actions" for b in messages[-1]["blocks"]) else []

        return list(self.wait_for(rated, seconds))

    # ------------------------------------------------------------------------------------------ the server

    def __enter__(self) -> "SlackServer":
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link/{number}", self._socket)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port)
        await site.start()
        port = runner.addresses[0][1]
        self.url, self.socket_url = f"http://127.0.0.1:{port}/api/", f"ws://127.0.0.1:{port}/link/"
        self._started.set()
        await self._over.wait()
        for socket in self.sockets:
            await socket.close()
        await runner.cleanup()

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}}))
        self.sockets.append(socket)
        async for message in socket:
            if message.type == WSMsgType.TEXT and message.data.startswith("{"):
                self.acknowledged.append(json.loads(message.data).get("envelope_id"))
        return socket

    async def _call(self, request: web.Request) -> web.Response:
        method, token = request.match_info["method"], request.headers.get("Authorization", "").removeprefix("Bearer ")
        call = SlackCall(time.monotonic(), method, token, await _arguments(request))
        self.calls.append(call)
        limit = self.limits.get(method)
        if limit and limit.times > 0:
            limit.times -= 1
            return self._reply(call, {"ok": False, "error": "ratelimited"}, 429, limit)
        if self.limited and method in ("chat.postMessage", "chat.update"):
            channel = call.arguments["channel"]
            if call.at - self._written.get(channel, -1.0) < 0.9:
                return self._reply(call, {"ok": False, "error": "ratelimited"}, 429, Limit(0, 1))
            self._written[channel] = call.at
        if self.refusals.get(method) == HTML:
            call.status = 502
            return web.Response(status=502, text="<html>Bad gateway</html>", content_type="text/html")
        if error := self.refusals.get(method) or self._refusal(call):
            return self._reply(call, {"ok": False, "error": error})
        known = getattr(self, "_" + method.replace(".", "_"), None)
        return self._reply(call, known(call) if known else {"ok": False, "error": "unknown_method"})

    def _reply(
        self, call: SlackCall, body: dict[str, Any], status: int = 200, limit: Limit | None = None
    ) -> web.Response:
        call.reply, call.status = body, status
        headers = {}
        if limit and limit.retry_after is not None:
            headers["Retry-After"] = f"{limit.retry_after:g}"
        if call.method == "auth.test" and (scopes := self.scopes.get(call.token)) is not None:
            headers["x-oauth-scopes"] = scopes
        if limit and not limit.body:
            return web.Response(status=status, headers=headers)
        return web.json_response(body, status=status, headers=headers)

    def _refusal(self, call: SlackCall) -> str:
        """Return why Slack would refuse a call, or "" if it would not."""
        if call.method == "apps.connections.open":
            return self.app_token_error or ("" if call.token == APP_TOKEN else "invalid_auth")
        if call.token not in self.teams:
            return "invalid_auth"
        return "invalid_blocks" if self.refuse_blocks and call.arguments.get("blocks") else _limits_broken(call)

    def _auth_test(self, call: SlackCall) -> dict[str, Any]:
        team = self.teams[call.token]
        who = {"user_id": BOT_USER, "bot_id": "B1", "user": "raydex"}
        return {"ok": True, "team_id": team, "team": f"Team {team}", **who}

    def _apps_connections_open(self, call: SlackCall) -> dict[str, Any]:
        self.opened += 1
        return {"ok": True, "url": f"{self.socket_url}{self.opened}"}

    def _chat_postMessage(self, call: SlackCall) -> dict[str, Any]:
        message = {**_shown(call.arguments), "ts": self._ts(), "bot_id": "B1", "user": BOT_USER}
        message["thread_ts"] = call.arguments.get("thread_ts", message["ts"])
        self.messages.setdefault(call.arguments["channel"], {})[message["ts"]] = message
        return {"ok": True, "channel": call.arguments["channel"], "ts": message["ts"], "message": message}

    def _chat_update(self, call: SlackCall) -> dict[str, Any]:
        messages = self.messages.get(call.arguments["channel"], {})
        if call.arguments["ts"] not in messages:
            return {"ok": False, "error": "message_not_found"}
        messages[call.arguments["ts"]].update(_shown(call.arguments))
        return {"ok": True, "channel": call.arguments["channel"], "ts": call.arguments["ts"]}

    def _chat_delete(self, call: SlackCall) -> dict[str, Any]:
        found = self.messages.get(call.arguments["channel"], {}).pop(call.arguments["ts"], None)
        return {"ok": True} if found else {"ok": False, "error": "message_not_found"}

    def _chat_postEphemeral(self, call: SlackCall) -> dict[str, Any]:
        return {"ok": True, "message_ts": self._ts()}

    def _views_open(self, call: SlackCall) -> dict[str, Any]:
        return {"ok": True, "view": call.arguments["view"]}

    def _conversations_replies(self, call: SlackCall) -> dict[str, Any]:
        messages = self.messages.get(call.arguments["channel"], {})
        ts = call.arguments["ts"]
        return {"ok": True, "messages": [m for m in messages.values() if ts in (m["ts"], m.get("thread_ts"))]}

    def _ts(self) -> str:
        return f"1763800000.{next(self._numbers):06d}"


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    return {**request.query, **await request.post()}


def _shown(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in ("text", "blocks", "metadata") if name in arguments}


def _limits_broken(call: SlackCall) -> str:
    blocks = call.arguments.get("blocks") or []
    most = MOST_UPDATE_TEXT if call.method == "chat.update" else MOST_TEXT
    if len(call.text) > most:
        return "msg_too_long"
    texts = [block.get("text", {}).get("text", "") for block in blocks if block["type"] == "section"]
    texts += [element["text"] for block in blocks if block["type"] == "context" for element in block["elements"]]
    if len(blocks) > MOST_BLOCKS or any(not 0 < len(text) <= MOST_SECTION for text in texts):
        return "invalid_blocks"
    return "no_text" if call.method == "chat.postMessage" and not call.text and not blocks else ""
