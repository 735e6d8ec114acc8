"""A question asked in a chat, with its place there."""

import hashlib
from dataclasses import dataclass

from pipelines.text.detection import find_language
from pipelines.text.languages import choose_language


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its place: workspace, channel, thread (its first message) and the message itself.

    It names no person.
    """

    team: str
    channel: str
    thread: str
    ts: str
    question: str

    @property
    def id(self) -> str:
        """The id of the message, the same for every delivery to any process."""
        return _digest("message", self.team, self.channel, self.ts)

    @property
    def language(self) -> str:
        """The language of text around the answer: the question's, as the service detects it, else English."""
        return choose_language(find_language(self.question))

    @property
    def conversation(self) -> str:
        """The id of the thread's conversation: derived, so that a follow-up needs no stored state."""
        return _digest("thread", self.team, self.channel, self.thread)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
