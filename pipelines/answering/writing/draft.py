"""What an answer is written from."""

from dataclasses import dataclass

from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.synthesis.base import Task
from pipelines.records import Citation, Route


@dataclass(frozen=True, slots=True)
class Draft:
    """What an answer is written from: `text` that is there, or a `task` for the agent of `route` and its stand-ins.

    With neither the answer is the hits of `retrieval` alone. `notes` are what the answer begins with, `cited` is what
    the person who wrote `text` cited in it. `astray` is what the question goes on about, if nothing that was found is
    about that.
    """

    retrieval: Retrieval
    route: Route
    notes: tuple[str, ...] = ()
    task: Task | None = None
    text: str = ""
    cited: tuple[Citation, ...] | None = None
    astray: str = ""
