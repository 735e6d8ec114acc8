"""Tells the two questions that a reader asks at once: each is searched and answered for itself."""

from pipelines.answering.conversation.followup import complete
from pipelines.text.phrases import read_phrases

_TWO = read_phrases(__name__)["two"]


def parts_of(question: str) -> tuple[str, ...]:
    """Return the two questions that `question` asks, each as it reads alone; none if it asks a single one.

    "Do I need a GPU, and how do I use one?" asks "Do I need a GPU" and "how do I use a GPU?".
    """
    found = _TWO.match(question.strip())
    return (found[1], complete(found[2], [found[1]]).question) if found else ()
