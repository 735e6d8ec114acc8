"""ASGI middleware that rejects JSON with too many values or levels before anything parses it.

Finding the mistakes in 70,000 fields takes a second, and nobody reads them. Pure ASGI, like keys.py.
"""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.text.counts import counted
from serve.failure import Failure, is_openai, path_of
from serve.guard.bodies import replay

# The largest requests have 1,000 texts with 100 messages, or 2,000 URLs.
MOST_VALUES = 2_500
# A chat of 2,000 messages in parts, the tools of an agent; inputs to embed.
MOST_OPEN_VALUES = 20_000
# Maximum per object: no request defines more than 50.
MOST_FIELDS = 500
# Schemas of an agent's tools have about a dozen levels.
MOST_DEPTH = 40
# Two strings, two brackets and a comma; adjacent strings are not valid JSON.
MOST_SIGNS_PER_VALUE = 5
# A string, which may lack its end, or a punctuation character outside strings.
TOKEN = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"?|[\[\]{},]', re.DOTALL)


class ShapeLimit:
    """Passes bodies that are not JSON, or JSON of limited size and depth; answers 422 otherwise.

    The body has been read completely (see BodyLimit). Only UTF-8 is accepted, because characters could not be counted
    in other encodings.
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
    """Return the maximum number of values in a request for `path`."""
    return MOST_OPEN_VALUES if is_openai(path) else MOST_VALUES


def fault_of(body: bytes, most: int) -> str:
    """Return which limit JSON exceeds: `most` values, MOST_FIELDS in an object, MOST_DEPTH; "" if none.

    Reads no further than the limit, and skips strings in one step.
    """
    if b"\0" in body:
        return "send JSON in UTF-8"
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MOST_DEPTH and opened + body.count(b",") < MOST_FIELDS:
        return ""
    values, fields = 1, list[int]()  # the fields of each open object; list items are not counted
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
            return f"more than {counted(MOST_DEPTH, 'level')} of lists and objects: send fewer"
        if values > most or number > MOST_SIGNS_PER_VALUE * most:
            return f"more than {counted(most, 'value')}: send fewer"
        if fields and fields[-1] > MOST_FIELDS:
            return f"an object of more than {counted(MOST_FIELDS, 'field')}: send fewer"
    return ""
