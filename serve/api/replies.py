"""Replies of the API: their fields, and how the engine's records become them."""

from dataclasses import asdict
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from pipelines.answering.retrieval.search import Retrieval
from pipelines.llm.session import Status
from pipelines.records import Answer, Citation, CitedBy, Claims, Confidence, Exchange, Hit, WrittenBy
from pipelines.text.cleaning import clean_for_storage


class CitationOut(BaseModel):
    """The source of `[n]` in the answer; `supported` is whether it supports the claim that cites it.

    `by` is who put the number there: the language model, Raydex (`attributed`), or the person who wrote the answer.
    """

    n: int
    source: str
    title: str
    snippet: str
    headings: list[str]
    scores: dict[str, float]
    supported: bool
    support: float
    by: CitedBy

    @classmethod
    def of(cls, citation: Citation) -> Self:
        return cls(
            n=citation.n,
            source=clean_for_storage(citation.source),
            title=clean_for_storage(citation.title),
            snippet=clean_for_storage(citation.snippet),
            headings=[clean_for_storage(heading) for heading in citation.headings],
            scores=citation.scores,
            supported=citation.supported,
            support=citation.support,
            by=citation.by,
        )


class HitOut(BaseModel):
    """A chunk with its score, and its rank and score in each search leg; `context` is its text with its neighbours."""

    chunk_id: str
    source: str
    sources: list[str]
    title: str
    headings: list[str]
    text: str
    context: str
    score: float
    score_kind: str
    ranks: dict[str, int]
    scores: dict[str, float]

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls(
            chunk_id=hit.chunk_id,
            source=hit.source,
            sources=list(hit.sources),
            title=hit.title,
            headings=list(hit.headings),
            text=hit.text,
            context=hit.context,
            score=hit.score,
            score_kind=hit.score_kind,
            ranks=hit.ranks,
            scores=hit.scores,
        )


class SearchOut(BaseModel):
    """Hits in one revision of one index; `queries` were searched for, `timings` are seconds."""

    hits: list[HitOut]
    queries: list[str]
    degraded: list[str]
    timings: dict[str, float]
    index: int
    revision: int

    @classmethod
    def of(cls, retrieval: Retrieval) -> Self:
        return cls(
            hits=[HitOut.of(hit) for hit in retrieval.hits],
            queries=[clean_for_storage(query) for query in retrieval.queries],
            degraded=list(retrieval.degraded),
            timings=retrieval.timings,
            index=retrieval.index.id,
            revision=retrieval.revision,
        )


class RouteOut(BaseModel):
    """The agent that the question was routed to, and why."""

    agent: str
    why: str


class UsageOut(BaseModel):
    """Calls of language models and their tokens; `cost` is in US dollars."""

    prompt_tokens: int
    completion_tokens: int
    calls: int
    cost: float


class ExchangeOut(BaseModel):
    """One call of a language model: the prompt as sent, and the completion."""

    class MessageOut(BaseModel):
        role: str
        content: str

    model: str
    messages: list[MessageOut]
    completion: str


class ClaimsOut(BaseModel):
    """How many claims an answer makes, how many of them cite a passage, and how many one that supports them.

    `unsupported` are the texts of the others.
    """

    total: int
    cited: int
    supported: int
    unsupported: list[str]


class AnswerOut(BaseModel):
    """An answer with its sources. `known` is false if the answer is that it does not know.

    `written_by` is `person`, `model`, or `quotes` for an answer that quotes the documentation.
    `finish_reason` is `stop`, or why the language model was cut off: `length` or `content_filter`.
    """

    hits: list[HitOut]
    queries: list[str]
    notes: list[str]
    degraded: list[str]
    timings: dict[str, float]
    index: int
    revision: int
    id: str
    question: str
    answer: str
    known: bool
    finish_reason: str
    claims: ClaimsOut
    confidence: Confidence
    citations: list[CitationOut]
    agent: str
    written_by: WrittenBy
    route: RouteOut | None
    usage: UsageOut
    conversation: str
    exchanges: Annotated[list[ExchangeOut] | None, Field(description="only with `prompts`")] = None

    @classmethod
    def of(cls, answer: Answer, conversation: str, prompts: bool = False, *, reading: bool = False) -> Self:
        """Return the reply for `answer`; with `prompts`, it holds every prompt that was sent.

        A reader without a key (`reading`) is not told why an agent was chosen: it may name models and their addresses.
        """
        more = {"exchanges": [_exchange(exchange) for exchange in answer.exchanges]} if prompts else {}
        return cls(
            id=answer.id,
            question=answer.question,
            answer=clean_for_storage(answer.text),
            known=answer.known,
            finish_reason=answer.finish_reason,
            claims=_claims(answer.claims),
            confidence=answer.confidence,
            citations=[CitationOut.of(citation) for citation in answer.citations],
            hits=[HitOut.of(hit) for hit in answer.hits],
            agent=answer.agent,
            written_by=answer.written_by,
            route=_route(answer, reading),
            degraded=list(answer.degraded),
            usage=_usage(answer),
            timings=answer.timings,
            queries=[clean_for_storage(query) for query in answer.queries],
            notes=[clean_for_storage(note) for note in answer.notes],
            index=answer.index,
            revision=answer.revision,
            conversation=conversation,
            **more,
        )


def _route(answer: Answer, reading: bool) -> RouteOut | None:
    return RouteOut(agent=answer.route.agent, why=answer.route.why) if answer.route and not reading else None


def _claims(claims: Claims) -> ClaimsOut:
    unsupported = [clean_for_storage(text) for text in claims.unsupported]
    return ClaimsOut(total=claims.total, cited=claims.cited, supported=claims.supported, unsupported=unsupported)


def _usage(answer: Answer) -> UsageOut:
    used = answer.usage
    return UsageOut(
        prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens, calls=used.calls, cost=used.cost
    )


def _exchange(exchange: Exchange) -> ExchangeOut:
    messages = [ExchangeOut.MessageOut(role=m.role, content=clean_for_storage(m.content)) for m in exchange.messages]
    return ExchangeOut(model=exchange.model, messages=messages, completion=clean_for_storage(exchange.completion))


class StatusOut(BaseModel):
    """What is under way while nothing of an answer has come; `seconds` until the agent has read, null if unknown.

    It names no model: a reader without a key may not know it.
    """

    stage: Literal["loading", "reading", "thinking"]
    agent: str
    passages: int
    tokens: int
    seconds: float | None

    @classmethod
    def of(cls, status: Status) -> Self:
        """Return the reply for `status`."""
        return cls.model_validate(asdict(status))


class FeedbackOut(BaseModel):
    """The rating as it was recorded."""

    id: str
    rating: int


class ErrorOut(BaseModel):
    """Every error: what is wrong, its kind, the `field` at fault, its `choices`, the id of the `request` in the log.

    `retry_after` is in how many seconds the same request may succeed.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"error": "k: Input should be less than or equal to 100", "kind": "invalid", "field": "k"}]
        }
    )

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
        "unavailable",
        "model",
        "internal",
    ]
    field: str | None = None
    choices: list[str] | None = None
    retry_after: int | None = None
    request: str | None = None
