"""ASGI middleware that refuses JSON of too many values, or too deep, before anything parses it.

What is wrong with each of 70,000 fields takes a second to find, and nobody reads it. Pure ASGI, as in keys.py.
"""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from serve.failure import Failure, is_openai, path_of
from serve.guard.bodies import replay

# The largest requests have 1,000 texts with 100 messages, or 2,000 URLs.
MOST_VALUES = 2_500
# A chat of 2,000 messages in parts, the tools of an agent; inputs to embed.
MOST_OPEN_VALUES = 20_000
# Of one object: no request has more than 50 by itself.
MOST_FIELDS = 500
# Schemas of an agent's tools have a dozen levels.
MOST_DEPTH = 40
# Two strings, two brackets and a comma; strings that stand beside each other are no JSON.
MOST_SIGNS_PER_VALUE = 5
# A string, which may lack its end; or a sign outside of strings.
TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)


class ShapeLimit:
    """Lets a body through that is no JSON, or one of bounded size and depth; answers 422 otherwise.

    The body has been read whole (see BodyLimit). Only UTF-8 is read: in another encoding signs could not be counted.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            body = (await receive()).get("body", b"")
            if wrong := fault_of(body, most_values(path_of(scope))):
                await Failure(422, f"body: {wrong}", "body").response(scope)(scope, receive, send)
                return
            receive = replay(body, receive)
        await self._app(scope, receive, send)


def most_values(path: str) -> int:
    """Return how many values a request for `path` may have."""
    return MOST_OPEN_VALUES if is_openai(path) else MOST_VALUES


def fault_of(body: bytes, most: int) -> str:
    """Return what is too much in JSON of `most` values, MOST_FIELDS in an object, MOST_DEPTH; "" if nothing is.

    Reads no further than that, and strings at once.
    """
    if b"\0" in body:
        return "send JSON in UTF-8"
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MOST_DEPTH and opened + body.count(b",") < MOST_FIELDS:
        return ""
    values, fields = 1, list[int]()  # the fields of each object that is open; of a list none are counted
    for number, token in enumerate(TOKEN.finditer(body)):
        sign = token[0][:1]
        if sign in b"[{":
            fields.append(1 if sign == b"{" else -most)
        elif sign == b"," and fields:
            fields[-1] += 1
        elif sign in b"]}" and fields:
            fields.pop()
        values += sign in b"[{,"
        if len(fields) > MOST_DEPTH:
            return f"more than {MOST_DEPTH} levels of lists and objects: send fewer"
        if values > most or number > MOST_SIGNS_PER_VALUE * most:
            return f"more than {most:,} values: send fewer"
        if fields and fields[-1] > MOST_FIELDS:
            return f"an object of more than {MOST_FIELDS} fields: send fewer"
    return ""
