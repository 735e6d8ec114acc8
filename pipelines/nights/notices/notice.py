"""A notice: title, lines, JSON, and an id that stays the same when it is sent again.

Knows no channel to send it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

NoticeKind = Literal["night.refused", "night.failed", "report", "test"]


class NotTold(RuntimeError):
    """A notice could not be sent; the message names the channel and the reason."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message; `data` has only values, and no question's text unless the collection file allows it."""

    id: str
    kind: NoticeKind
    collection: str
    title: str
    lines: Sequence[str]
    data: Mapping[str, Any] = field(default_factory=dict)
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def text(self) -> str:
        """The lines as one string."""
        return "\n".join(self.lines)

    def as_json(self) -> bytes:
        """Return the notice as a request body."""
        return json.dumps(asdict(self), ensure_ascii=False, default=str).encode()
