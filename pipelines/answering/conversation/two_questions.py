"""Splits a message that asks two questions at once, so that each is searched and answered separately."""

from pipelines.answering.conversation.followup import complete
from pipelines.text.phrases import read_phrases

_TWO = read_phrases(__name__)["two"]


def questions_in(question: str) -> tuple[str, ...]:
    """Return the two questions in `question`, each self-contained; an empty tuple if there is only one.

    "Do I need a GPU, and how do I use one?" becomes "Do I need a GPU" and "how do I use a GPU?".
    """
    found = _TWO.match(question.strip())
    return (found[1], complete(found[2], [found[1]]).question) if found else ()
