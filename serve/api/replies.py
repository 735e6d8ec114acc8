"""Replies of the API: their fields, and how they are made from the engine's records."""

from dataclasses import fields
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.writing.also_found import describe_found
from pipelines.page.stored import readable_text
from pipelines.records import Answer, AnswerForm, CitedBy, Confidence, Route, Usage, WrittenBy
from pipelines.text.cleaning import clean_for_storage
from serve.api.requests import examples_of

Text = Annotated[str, BeforeValidator(clean_for_storage)]
PlainText = Annotated[str, BeforeValidator(readable_text)]


class _FromRecord(BaseModel):
    """A part of a reply, filled from a record's attributes with the same names."""

    model_config = ConfigDict(from_attributes=True)


class CitationOut(_FromRecord):
    """The source of `[n]` in the answer; `supported` is whether it supports the claim that cites it.

    `by` is who added the number: the language model, Raydex (`attributed`), or the person who wrote the answer.
    `checked` and `changed` are the last times its page was checked and changed, "" if unknown.
    """

    n: int
    source: Text
    title: Text
    snippet: Text
    headings: list[Text]
    scores: dict[str, float]
    supported: bool
    support: float
    by: CitedBy
    checked: str
    changed: str


class SectionOut(_FromRecord):
    """A section that was found."""

    source: str
    title: str
    headings: list[str]


class FoundOut(SectionOut):
    """A section that was found but not cited; `snippet` is its sentence closest to the question."""

    snippet: Text


class HitOut(_FromRecord):
    """A chunk with its score, and its rank and score in each search leg.

    `text` is plain text; `context` also includes its neighbours.
    """

    chunk_id: str
    source: str
    sources: list[str]
    title: str
    headings: list[str]
    text: PlainText
    context: PlainText
    score: float
    score_kind: str
    ranks: dict[str, int]
    scores: dict[str, float]


class SearchOut(BaseModel):
    """Hits in one revision of one index; `queries` were searched for, `timings` are in seconds.

    `id` identifies the search for POST /clicks, "" if nothing is recorded.
    """

    id: str = ""
    hits: list[HitOut]
    queries: list[Text]
    degraded: list[str]
    timings: dict[str, float]
    index: int
    revision: int

    @classmethod
    def of(cls, found: Retrieval, id: str = "") -> Self:
        return cls.model_validate(given_by(found) | {"index": found.index.id, "id": id})


class ExchangeOut(_FromRecord):
    """One call of a language model: the prompt as sent, and the completion."""

    class MessageOut(_FromRecord):
        role: str
        content: Text

    model: str
    messages: list[MessageOut]
    completion: Text


class ClaimsOut(_FromRecord):
    """How many claims an answer makes, how many of them cite a passage, and how many are supported by it.

    `unsupported` lists the other claims, and `reasons` why each is not supported: because of its `words`, because
    `text` is `nowhere` in the passages, or because the sentence `text` of a passage says the opposite (`denied`).
    """

    class ReasonOut(_FromRecord):
        kind: Literal["words", "nowhere", "denied"]
        text: Text

    total: int
    cited: int
    supported: int
    unsupported: list[Text]
    reasons: list[ReasonOut]


class AnswerOut(BaseModel):
    """An answer with its sources. `known` is false if the answer is "I do not know".

    `form` is `answer`, or `results` if no section certainly answers: then `answer` shows the best matches. `written_by`
    is `person`, `model`, or `quotes` for an answer that quotes the documentation. `finish_reason` is `stop`, or why the
    language model was cut off: `length` or `content_filter`. Fields have the same names as in `Answer`.
    """

    hits: list[HitOut]
    queries: list[Text]
    notes: list[Text]
    degraded: list[str]
    timings: dict[str, float]
    index: int
    revision: int
    id: str
    question: str
    answer: Text
    sources: Annotated[list[Text], Field(description="what the citations name, each once: `url#anchor`")]
    llm: Annotated[str, Field(description="the model that wrote it; empty for a quotation and for readers")]
    form: AnswerForm
    known: bool
    finish_reason: str
    claims: ClaimsOut
    confidence: Confidence
    citations: list[CitationOut]
    also_found: Annotated[list[FoundOut], Field(description="sections that were found and that no citation names")]
    as_of: Annotated[str, Field(description="the oldest of the times at which the cited pages were checked")]
    agent: str
    written_by: WrittenBy
    route: Route | None
    usage: Usage
    conversation: str
    exchanges: Annotated[list[ExchangeOut] | None, Field(description="only with `prompts`")] = None

    @classmethod
    def of(
        cls, answer: Answer, conversation: str, prompts: bool = False, *, reading: bool = False, **more: object
    ) -> Self:
        """Return the reply for `answer`; with `prompts`, it includes every prompt that was sent.

        A reader without a key (`reading`) is not told why an agent was chosen, because that may name models and their
        addresses.
        """
        given = given_by(answer) | {
            "answer": answer.text,
            "sources": list(dict.fromkeys(citation.source for citation in answer.citations)),
            "llm": "" if reading else answer.llm,
            "written_by": answer.written_by,
            "as_of": answer.as_of,
            "also_found": describe_found(answer),
            **more,
        }
        if not prompts:
            del given["exchanges"]
        return cls.model_validate(given | {"route": None if reading else answer.route, "conversation": conversation})


def given_by(record: Answer | Retrieval) -> dict[str, Any]:
    """Return the fields of a record by name."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


class StatusOut(_FromRecord):
    """The current stage before the answer begins; `seconds` until the agent has finished reading, null if unknown.

    `about` is the query of a search, or the title of the page that is opened. It names no model, because a reader
    without a key may not know it.
    """

    stage: Literal["loading", "reading", "thinking", "searching", "opening"]
    agent: str
    passages: int
    tokens: int
    seconds: float | None
    about: Text


class FeedbackOut(BaseModel):
    """The rating as it was recorded."""

    id: str
    rating: int


class ClickOut(BaseModel):
    """Whether the click was recorded: false if the source was not shown, was opened before, or recording is off."""

    recorded: bool


class ErrorOut(BaseModel):
    """Every error: the problem, its kind, the `field` at fault, its `choices`, the `request` id in the log.

    `retry_after` is the number of seconds until the same request may succeed. `limit` is the maximum length of the
    field in characters.
    """

    model_config = ConfigDict(json_schema_extra=examples_of("ErrorOut"))

    error: str
    kind: Literal[
        "no_key",
        "bad_key",
        "session",
        "forbidden",
        "rate",
        "no_index",
        "not_found",
        "invalid",
        "too_long",
        "unavailable",
        "model",
        "internal",
    ]
    field: str | None = None
    choices: list[str] | None = None
    limit: int | None = None
    retry_after: int | None = None
    request: str | None = None
