"""Tool calls in the chat protocol: offering tools in a request, and reading the calls of a reply.

Knows the forms in which servers send calls; no tool.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.records import Message, ToolCall

Tool = Mapping[str, Any]
"""A tool as OpenAI's API describes it: `{"type": "function", "function": {"name", "description", "parameters"}}`."""


def offered(tools: Sequence[Tool], may_call: bool) -> dict[str, Any]:
    """Return the fields of a request that offers `tools`; without `may_call` the model is to reply in words."""
    return {"tools": list(tools), **({} if may_call else {"tool_choice": "none"})}


def as_sent(message: Message) -> dict[str, Any]:
    """Return a message as a request holds it."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        sent["content"] = message.content or None  # some servers refuse an empty text
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


@dataclass(slots=True)
class _Begun:
    """A call whose arguments are still coming."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class CallReader:
    """Puts together the calls of a reply, which come whole or in pieces: several in a delta, or several deltas a call.

    A piece belongs to the call of its `index`. Some servers send none, or the same one for every call: then another id
    begins another call.
    """

    def __init__(self) -> None:
        self._calls: list[_Begun] = []
        self._at: dict[int, _Begun] = {}

    @property
    def text(self) -> str:
        """All that has come, to count its tokens."""
        return "\n".join(f"{call.name}({call.arguments})" for call in self._calls)

    def feed(self, pieces: Sequence[Any]) -> None:
        """Take the `tool_calls` of a delta, or of a whole message."""
        for place, piece in enumerate(pieces):
            index, id, function = (_field(piece, name) for name in ("index", "id", "function"))
            begun = self._begun(index if isinstance(index, int) else place, str(id or ""))
            begun.name = begun.name or str(_field(function, "name") or "")
            begun.arguments += _as_text(_field(function, "arguments"))

    def close(self) -> tuple[ToolCall, ...]:
        """Return the calls; one without an id gets one."""
        return tuple(
            ToolCall(call.id or f"call_{n}", call.name, call.arguments) for n, call in enumerate(self._calls, 1)
        )

    def _begun(self, index: int, id: str) -> _Begun:
        known = self._at.get(index)
        if known is None or (id and known.id and id != known.id):
            known = self._at[index] = _Begun()
            self._calls.append(known)
        known.id = known.id or id
        return known


def length_of(pieces: Any) -> int:
    """Return how many characters of calls a delta has."""
    reader = CallReader()
    reader.feed(pieces if isinstance(pieces, list) else ())
    return len(reader.text)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _as_text(arguments: Any) -> str:
    """Return arguments as JSON; some servers send the object itself."""
    return arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
