"""Runs receivers of notices on loopback: an HTTP server for posts and a mail server for messages.

Both run in threads. A notice is available once its sender has the reply.
"""

import json
import socketserver
import ssl
from base64 import b64decode
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from kit.web import Answer, Handler, Running, Server


@dataclass
class Post:
    """A received request."""

    headers: dict[str, str]
    body: bytes
    path: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WebhookReceiver(Server):
    """Stores every post in `posts`, and replies with the next of `statuses`, then with `accepted`."""

    def __init__(self, *statuses: int, headers: dict[str, str] | None = None, accepted: int = 204) -> None:
        super().__init__()
        self.url += "/hook"
        self.posts: list[Post] = []
        self.statuses, self.headers = list(statuses), {"Connection": "close", **(headers or {})}
        self.accepted = accepted

    def answer(self, handler: Handler) -> Answer:
        self.posts.append(Post(dict(handler.headers), handler.body, handler.path))
        return Answer(status=self.statuses.pop(0) if self.statuses else self.accepted, headers=self.headers)


@dataclass
class Mail:
    """A message with its envelope."""

    sender: str
    to: list[str] = field(default_factory=list)
    message: EmailMessage = field(default_factory=EmailMessage)


class MailReceiver(Running):
    """Speaks enough SMTP for a client: stores messages in `mails`, and refuses the recipients in `refused`.

    With a `certificate` (and its key, in one file) it uses TLS from the start and requires the `login` "user:password".
    """

    def __init__(self, *refused: str, certificate: Path | None = None, login: str = "") -> None:
        self.mails: list[Mail] = []
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.say("220 ready")
                mail = Mail("")
                while line := self.rfile.readline().decode().strip():
                    verb, _, rest = line.partition(" ")
                    address = rest.partition("<")[2].partition(">")[0]
                    match verb.upper():
                        case "EHLO" if login:
                            self.say("250-ready\r\n250 AUTH PLAIN")
                            continue
                        case "AUTH":
                            given = b64decode(rest.removeprefix("PLAIN ")).decode()
                            self.say("235 known" if given == "\0" + login.replace(":", "\0") else "535 unknown")
                            continue
                        case "MAIL":
                            mail = Mail(address)
                        case "RCPT" if address in refused:
                            self.say("550 nobody of that name")
                            continue
                        case "RCPT":
                            mail.to.append(address)
                        case "DATA":
                            self.say("354 go on")
                            mail.message = self.read_message()
                            receiver.mails.append(mail)
                        case "QUIT":
                            self.say("221 bye")
                            return
                    self.say("250 done")

            def read_message(self) -> EmailMessage:
                lines = iter(self.rfile.readline, b".\r\n")
                body = b"".join(line.removeprefix(b".") for line in lines)
                return message_from_bytes(body, policy=policy.default)  # type: ignore[return-value]

            def say(self, reply: str) -> None:
                self.wfile.write(f"{reply}\r\n".encode())

        self._server = server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        self.port = server.server_address[1]
