"""Defines a draft: everything from which an answer is written."""

from dataclasses import dataclass

from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.synthesis.base import Task
from pipelines.records import Citation, Route


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything from which an answer is written: a final `text`, or a `task` for an agent.

    The agent of `route` gets the task first, then its fallbacks. With neither text nor task, the answer is only the
    hits of `retrieval`. `notes` go at the start of the answer. `cited` has the citations of the person who wrote
    `text`. `astray` is the subject that the question continues, if no hit is about it.
    """

    retrieval: Retrieval
    route: Route
    notes: tuple[str, ...] = ()
    task: Task | None = None
    text: str = ""
    cited: tuple[Citation, ...] | None = None
    astray: str = ""
