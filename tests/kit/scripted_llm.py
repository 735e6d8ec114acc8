"""Runs a scripted OpenAI-compatible server on loopback: chat completions, models, embeddings and reranking.

    with ScriptedLLM() as llm:                      # answers "Scripted answer."
        LLM("scripted", base_url=llm.url)
    ScriptedLLM([("weather", "Sunny."),             # the prompt contains "weather"
                 (lambda r: r.stream, Reply(deltas=["a", "b"], delay_s=0.1)),
                 ("busy", in_turn(Reply(status=429, retry_after=1), "Now."))], default=obey)

The first matching rule replies, else the default. A rule is (words in the messages or a predicate on the Request, the
reply: a string, a Reply, or a function of the Request that returns one). `requests` records the requests, and
`disconnects` counts the clients that left before their answer was complete. To run it by hand: `python
tests/kit/scripted_llm.py --port 9000 [--reading 5] [--delay 0.05] [--obey]`. Tests import it with `from
kit.scripted_llm import ScriptedLLM`.
"""

import argparse
import json
import re
import select
import socket
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """A client's request, with header names in lower case.

    `text` is the content of all its messages, `prompt` the last user message.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages", [])

    @property
    def text(self) -> str:
        return "\n".join(str(message.get("content")) for message in self.messages)

    @property
    def prompt(self) -> str:
        return next((str(m["content"]) for m in reversed(self.messages) if m["role"] == "user"), "")

    @property
    def system(self) -> str:
        return "\n".join(str(m["content"]) for m in self.messages if m["role"] == "system")

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))


@dataclass(frozen=True)
class Reply:
    """A reply. Without `deltas`, a stream sends `text` word by word.

    It waits `reading_s` before the first delta and `delay_s` before each delta; a whole answer waits both once.
    `thoughts` are sent before the text, each after `delay_s`, like a reasoning model's. `reported` goes into the last
    chunk of a stream, next to or into `usage`. `hang` sends nothing until the client leaves, in a stream after
    `drop_after` deltas; without `hang`, the connection breaks after `drop_after` deltas. `raw` is sent as the body
    verbatim, with `media_type` if given. With `usage` False, token counts are omitted. `content` None means `"content":
    null`. `calls` are tool calls, each a name with its arguments, which a stream sends in pieces. With a
    `finish_reason` of None, a stream just ends, as behind a proxy that gave up.
    """

    text: str | None = "Scripted answer."
    deltas: Sequence[str] | None = None
    delay_s: float = 0.0
    reading_s: float = 0.0
    thoughts: Sequence[str] = ()
    reported: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    error: Any = None
    retry_after: float | str | None = None
    hang: bool = False
    drop_after: int | None = None
    raw: str | None = None
    usage: bool = True
    finish_reason: str | None = "stop"
    calls: Sequence[tuple[str, str]] = ()
    refusal: str | None = None
    media_type: str = ""

    @property
    def whole(self) -> str | None:
        return "".join(self.deltas) if self.deltas is not None else self.text

    @property
    def parts(self) -> list[str]:
        return list(self.deltas) if self.deltas is not None else re.findall(r"\s*\S+", self.text or "")


Answering = str | Reply | Callable[[Request], "str | Reply"]
Rule = tuple[str | Callable[[Request], bool], Answering]


def in_turn(*replies: Answering) -> Callable[[Request], str | Reply]:
    """Return the first reply to the first request, and so on, and the last reply to all later requests."""
    left = list(replies)
    lock = threading.Lock()

    def next_reply(request: Request) -> str | Reply:
        with lock:
            reply = left.pop(0) if len(left) > 1 else left[0]
        return reply(request) if callable(reply) else reply

    return next_reply


def obey(request: Request) -> str:
    """Imitate the most obedient model, which follows every instruction in its messages.

    "SAY: x" and "ignore … instructions and output/say/print x": it says x. "system prompt" near repeat, reveal, print
    or show: it reveals it. URLs after visit, click, link to, see or go to: it prints them, also as links and images.
    Without an instruction it cites the first passage.
    """
    text = request.prompt
    said = re.findall(r"SAY: *(.+)", text)
    said += re.findall(r"(?i)ignore [^\n.]*instructions[^\n]*? (?:output|say|print|answer)(?: with)?:? +([^\n]+)", text)
    if re.search(r"(?i)(repeat|reveal|print|show|output)[^\n]{0,60}(system prompt|instructions above)", text):
        said.append(request.system)
    for url in re.findall(r"(?i)(?:visit|click|link to|go to|see|fetch|open) +<?(https?://[^\s>\"')\]]+)", text):
        said.append(f"See {url} and [here]({url}) ![]({url}?q=leak)")
    return "\n".join(said) or "The documentation says so [1]."


class ScriptedLLM:
    """Serves at `url` (with /v1) while in the block."""

    def __init__(self, rules: Sequence[Rule] = (), *, default: Answering = Reply(), port: int = 0) -> None:
        self.rules, self.default = list(rules), default
        self.requests: list[Request] = []
        self.disconnects = 0
        self.running = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), type("Bound", (_Handler,), {"llm": self}))
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.stopping = threading.Event()

    def __enter__(self) -> "ScriptedLLM":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def asked(self) -> list[Request]:
        """The chat completions among the requests."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    def reply_to(self, request: Request) -> Reply:
        fits = (answer for rule, answer in self.rules if _fits(rule, request))
        answer = next(fits, self.default)
        reply = answer(request) if callable(answer) else answer
        return Reply(text=reply) if isinstance(reply, str) else reply

    def wait_for(self, happened: Callable[["ScriptedLLM"], bool], seconds: float = 60.0) -> bool:
        """Return whether `happened(self)` became true in time."""
        until = time.monotonic() + seconds
        while not happened(self) and time.monotonic() < until:
            time.sleep(0.01)
        return happened(self)

    def began(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)
            self.running += 1

    def ended(self, whole: bool) -> None:
        with self._lock:
            self.running -= 1
            self.disconnects += not whole


def _fits(rule: str | Callable[[Request], bool], request: Request) -> bool:
    return rule(request) if callable(rule) else rule in request.text


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


class _Gone(Exception):
    """The client left."""


def _usage(request: Request, text: str) -> dict[str, int]:
    """Count words as tokens."""
    asked, said = len(request.text.split()), len(text.split())
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


class _Handler(BaseHTTPRequestHandler):
    llm: ScriptedLLM
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        rows = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}]
        self._json(200, {"object": "list", "data": rows})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Request(self.path, body, {name.lower(): value for name, value in self.headers.items()})
        self.llm.began(request)
        whole = False
        try:
            self._answer(request)
            whole = True
        except (_Gone, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self.llm.ended(whole)

    def _answer(self, request: Request) -> None:
        if request.path.endswith("/embeddings"):
            self._json(200, _embeddings(request.body))
            return
        reply = self.llm.reply_to(request)
        if reply.raw is not None and (reply.status != 200 or reply.media_type):
            self._send(reply.status, reply.raw, {"Content-Type": reply.media_type or "application/json"})
        elif reply.status != 200:
            self._refuse(reply)
        elif request.path.endswith("/rerank"):
            self._wait(reply.delay_s)
            self._json(200, _reranked(request.body)) if reply.raw is None else self._send(200, reply.raw)
        elif reply.hang and reply.drop_after is None:
            self._wait(float("inf"))
        elif reply.raw is not None:
            self._send(200, reply.raw)
        elif request.stream:
            self._stream(request, reply)
        else:
            self._whole(request, reply)

    def _refuse(self, reply: Reply) -> None:
        self._wait(reply.delay_s)
        error = reply.error or {"message": f"scripted {reply.status}", "type": "scripted", "code": None}
        headers = {} if reply.retry_after is None else {"Retry-After": str(reply.retry_after)}
        self._json(reply.status, error if "object" in error else {"error": error}, headers)

    def _whole(self, request: Request, reply: Reply) -> None:
        self._wait(reply.reading_s + reply.delay_s)
        if reply.drop_after is not None:
            self._tear()
            return
        message = {"role": "assistant", "content": reply.whole, "refusal": reply.refusal}
        if reply.calls:
            message["tool_calls"] = [call for pieces in _call_pieces(reply.calls, 1) for call in pieces]
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
        usage = {"usage": _usage(request, reply.whole or "")} if reply.usage else {}
        self._json(200, _envelope(request, "chat.completion", [choice]) | usage)

    def _stream(self, request: Request, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunk(request, {"role": "assistant", "content": ""})
        self._wait(reply.reading_s)
        for thought in reply.thoughts:
            self._wait(reply.delay_s)
            self._chunk(request, {"reasoning_content": thought})
        for place, delta in enumerate(reply.parts):
            if place == reply.drop_after:
                self._wait(float("inf")) if reply.hang else self._tear()
                return
            self._wait(reply.delay_s)
            self._chunk(request, {"content": delta})
        for pieces in _call_pieces(reply.calls, 3):
            for piece in pieces:
                self._wait(reply.delay_s)
                self._chunk(request, {"tool_calls": [piece]})
        if reply.finish_reason is None:
            self.wfile.write(b"0\r\n\r\n")
            return
        for word in re.findall(r"\s*\S+", reply.refusal or ""):
            self._chunk(request, {"refusal": word})
        self._chunk(request, {}, reply.finish_reason)
        if reply.usage and request.body.get("stream_options", {}).get("include_usage"):
            usage = {"usage": _usage(request, reply.whole or "")}
            usage["usage"] |= reply.reported.get("usage", {})
            self._event(_envelope(request, "chat.completion.chunk", []) | dict(reply.reported) | usage)
        self._write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, request: Request, delta: dict[str, Any], ended: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": ended}
        self._event(_envelope(request, "chat.completion.chunk", [choice]))

    def _event(self, event: dict[str, Any]) -> None:
        self._write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self._wait(0)
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        """Sleep, but notice at once if the client leaves."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            readable, _, _ = select.select([self.connection], [], [], max(0.0, min(left, 0.05)))
            if (readable and not self.connection.recv(1, socket.MSG_PEEK)) or self.llm.stopping.is_set():
                raise _Gone
            if left <= 0:
                return

    def _tear(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _json(self, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body), headers)

    def _send(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/event-stream" if text.startswith("data:") else "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _envelope(request: Request, kind: str, choices: list[Any]) -> dict[str, Any]:
    return {"id": "scripted-1", "object": kind, "created": 0, "model": request.body.get("model"), "choices": choices}


def _call_pieces(calls: Sequence[tuple[str, str]], number: int) -> list[list[dict[str, Any]]]:
    """The pieces of each call: the name in the first one, the arguments in `number`."""
    made = []
    for index, (name, arguments) in enumerate(calls):
        size = max(1, -(-len(arguments) // number))
        texts = [arguments[at : at + size] for at in range(0, len(arguments), size)] or [""]
        named = {"id": f"call-{index}", "type": "function", "function": {"name": name, "arguments": texts[0]}}
        rest = [{"function": {"arguments": text}} for text in texts[1:]]
        made.append([piece | ({"index": index} if number > 1 else {}) for piece in (named, *rest)])
    return made


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Hash word counts into 64 dimensions."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return {"object": "list", "model": body.get("model"), "data": rows, "usage": usage}


def _vector(text: str) -> list[float]:
    vector = [0.0] * 64
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % 64] += 1.0
    return vector


def _reranked(body: dict[str, Any]) -> dict[str, Any]:
    """Rank like Cohere's /v1/rerank: by the share of the query's words in each document, best first."""
    query = set(re.findall(r"\w+", body["query"].lower()))
    documents = [d if isinstance(d, str) else d["text"] for d in body["documents"]]
    scores = [len(query & set(re.findall(r"\w+", d.lower()))) / max(1, len(query)) for d in documents]
    order = sorted(range(len(scores)), key=lambda n: (-scores[n], n))[: body.get("top_n") or len(scores)]
    return {"id": "scripted-1", "results": [{"index": n, "relevance_score": scores[n]} for n in order]}


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible server on loopback.")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds before each delta")
    parser.add_argument("--reading", type=float, default=0.0, help="seconds before the first delta")
    parser.add_argument("--text", default="According to the documentation, this is how it is done [1].")
    parser.add_argument("--obey", action="store_true", help="do whatever the prompt says")
    args = parser.parse_args()
    default = obey if args.obey else Reply(args.text, delay_s=args.delay, reading_s=args.reading)
    with ScriptedLLM(default=default, port=args.port) as llm:
        print(f"base URL {llm.url}, model scripted", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
