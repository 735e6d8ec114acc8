"""Creates recorded questions, as the service stores them, in one line."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pipelines.records import Answer, Citation, Hit
from pipelines.store import RecordedQuestion

OF_QUESTION = set(RecordedQuestion.__dataclass_fields__) - {"answer"}


def hit_at(source: str, **more: Any) -> Hit:
    """Return a hit with this source, `url#anchor`."""
    url, _, anchor = source.partition("#")
    return Hit(**{"chunk_id": "", "url": url, "anchors": (anchor,) if anchor else (), "sources": (source,), **more})


def recorded(
    id: str,
    question: str,
    collection: str = "",
    *,
    text: str = "",
    cited: Iterable[str] = (),
    found: Iterable[Hit | str] = (),
    standalone: str = "",
    **more: Any,
) -> RecordedQuestion:
    """Return a question with an answer that cites the sources `cited`, from the hits (or sources) `found`.

    With an `error` there is no answer. `more` sets other fields.
    """
    of_question = {name: value for name, value in more.items() if name in OF_QUESTION}
    of_answer = {name: value for name, value in more.items() if name not in OF_QUESTION}
    if of_question.get("error"):
        return RecordedQuestion(id, question, None, collection, **of_question)
    answer = Answer(
        question,
        text,
        citations=tuple(Citation(n, source) for n, source in enumerate(cited, 1)),
        hits=tuple(hit_at(hit) if isinstance(hit, str) else hit for hit in found),
        queries=(standalone,) if standalone else (),
        id=id,
    )
    answer = replace(answer, **of_answer)
    return RecordedQuestion(id, question, answer, collection, **of_question)
