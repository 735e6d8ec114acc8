"""What requests and replies of the service's own API look like, with examples; and how records become replies.

Knows no HTTP: FastAPI reads these for validation and for the OpenAPI page.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from pipelines.answering.engine import Ask
from pipelines.answering.retrieval.retriever import Retrieval
from pipelines.records import Answer, Citation, Filters, Hit, Message
from pipelines.store import clean

# Ten thousand words are a question; a book is not.
MOST_CHARACTERS = 100_000
MOST_HITS = 100
# How the id of a chat completion begins; the rest is the answer's.
COMPLETION = "chatcmpl-"
# More turns than this say nothing about the next question that the last ones do not say.
MOST_MESSAGES = 100


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _asked(text: str) -> str:
    """A question as it can be searched and stored: pasted text may hold a NUL, which says nothing."""
    cleaned = text.replace("\0", "").strip()
    if not cleaned:
        raise ValueError("must not be empty")
    return cleaned


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_storable)]
Text = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS), AfterValidator(_storable)]
QuestionText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS),
    AfterValidator(_asked),
]
K = Annotated[int, Field(ge=1, le=MOST_HITS, description="how many hits to use; the service's own number if not given")]


class FiltersIn(BaseModel):
    """Which chunks may answer: having any of `tags`, of one version, one language, under one URL prefix."""

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[list[Name], Field(max_length=100)] = []
    version: Name | None = None
    language: Name | None = None
    url_prefix: Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_storable)] | None = (
        None
    )

    def record(self) -> Filters:
        return Filters(tuple(self.tags), self.version, self.language, self.url_prefix)


class SearchIn(BaseModel):
    """A question to a collection (default: the service's, or the only one)."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"question": "How do I read a CSV file?", "k": 5, "filters": {"tags": ["guide"]}}]
        },
    )

    question: QuestionText
    collection: Name | None = None
    k: K | None = None
    filters: FiltersIn | None = None

    def ask(self) -> Ask:
        """The question as the engine takes it."""
        filters = self.filters.record() if self.filters else Filters()
        return Ask(self.question, collection=self.collection, k=self.k, filters=filters)


class MessageIn(BaseModel):
    """One earlier turn."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: Text

    def record(self) -> Message:
        return Message(self.role, self.content)


class QueryIn(SearchIn):
    """A question to be answered: alone, with the turns before it, or in a conversation that the service remembers."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"question": "How do I read a CSV file?"},
                {
                    "question": "And Parquet?",
                    "conversation": "mP1cT0vXq9w",
                    "mode": "compact",
                    "filters": {"version": "latest"},
                },
            ]
        },
    )

    history: Annotated[
        list[MessageIn] | None, Field(max_length=MOST_MESSAGES, description="the turns before, oldest first")
    ] = None
    conversation: Annotated[
        Name | None, Field(description="as an earlier reply gave it; without `history`, its last turns are looked up")
    ] = None
    mode: Annotated[Name | None, Field(description="how the answer is made, e.g. compact, refine, no_text")] = None
    variables: Annotated[
        dict[Name, Text], Field(max_length=50, description="values of further variables of the prompt templates")
    ] = {}
    context: Annotated[
        list[Text], Field(max_length=1000, description="the texts to answer from, for the mode context_only")
    ] = []
    prompts: Annotated[bool, Field(description="include every prompt that was sent")] = False

    def ask(self) -> Ask:
        filters = self.filters.record() if self.filters else Filters()
        return Ask(
            self.question,
            collection=self.collection,
            k=self.k,
            filters=filters,
            history=tuple(message.record() for message in self.history or ()),
            mode=self.mode,
            variables=self.variables,
            context=tuple(self.context),
        )


class CitationOut(BaseModel):
    """`[n]` in the answer points here; `supported`: whether the source bears out what is claimed by it."""

    n: int
    source: str
    title: str
    snippet: str
    headings: list[str]
    scores: dict[str, float]
    supported: bool
    support: float

    @classmethod
    def of(cls, citation: Citation) -> Self:
        return cls(
            n=citation.n,
            source=clean(citation.source),
            title=clean(citation.title),
            snippet=clean(citation.snippet),
            headings=[clean(heading) for heading in citation.headings],
            scores=citation.scores,
            supported=citation.supported,
            support=citation.support,
        )


class HitOut(BaseModel):
    """A chunk with its score and what each leg said of it; `context` is its text with its neighbours, if joined."""

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
    """Hits of one revision of one index; `queries` are what was searched for, `timings` seconds."""

    hits: list[HitOut]
    queries: list[str]
    degraded: list[str]
    timings: dict[str, float]
    index: int
    revision: int

    @classmethod
    def found(cls, found: Retrieval) -> Self:
        return cls(
            hits=[HitOut.of(hit) for hit in found.hits],
            queries=[clean(query) for query in found.queries],
            degraded=list(found.degraded),
            timings=found.timings,
            index=found.index.id,
            revision=found.revision,
        )


class RouteOut(BaseModel):
    """Which agent the question went to, and why."""

    agent: str
    why: str


class UsageOut(BaseModel):
    """What language models were asked; `cost` in US dollars."""

    prompt_tokens: int
    completion_tokens: int
    calls: int
    cost: float


class ExchangeOut(BaseModel):
    """One call of a language model: the prompt as sent and what came back."""

    class MessageOut(BaseModel):
        role: str
        content: str

    model: str
    messages: list[MessageOut]
    completion: str


class AnswerOut(SearchOut):
    """An answer with its sources. `known` is false where it says that it does not know."""

    id: str
    question: str
    answer: str
    known: bool
    citations: list[CitationOut]
    agent: str
    route: RouteOut | None
    usage: UsageOut
    conversation: str
    exchanges: Annotated[list[ExchangeOut] | None, Field(description="only with `prompts`")] = None

    @classmethod
    def of(cls, answer: Answer, conversation: str, prompts: bool = False) -> Self:
        """The reply for `answer`; with `prompts`, every prompt that was sent."""
        more = {"exchanges": [_exchange(exchange) for exchange in answer.exchanges]} if prompts else {}
        return cls(
            id=answer.id,
            question=answer.question,
            answer=clean(answer.text),
            known=answer.known,
            citations=[CitationOut.of(citation) for citation in answer.citations],
            hits=[HitOut.of(hit) for hit in answer.hits],
            agent=answer.agent,
            route=RouteOut(agent=answer.route.agent, why=answer.route.why) if answer.route else None,
            degraded=list(answer.degraded),
            usage=usage(answer),
            timings=answer.timings,
            queries=[clean(query) for query in answer.queries],
            index=answer.index,
            revision=answer.revision,
            conversation=conversation,
            **more,
        )


def usage(answer: Answer) -> UsageOut:
    used = answer.usage
    return UsageOut(
        prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens, calls=used.calls, cost=used.cost
    )


def _exchange(exchange: Any) -> ExchangeOut:
    messages = [ExchangeOut.MessageOut(role=m.role, content=clean(m.content)) for m in exchange.messages]
    return ExchangeOut(model=exchange.model, messages=messages, completion=clean(exchange.completion))


class CollectionOut(BaseModel):
    """A collection and its live index, if it has one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "docs",
                    "index": 4,
                    "revision": 2,
                    "published_at": "2026-01-31T12:00:00+00:00",
                    "stats": {"chunks": 15000, "pages": 900, "sections": 7000},
                }
            ]
        }
    )

    name: str
    index: int | None
    revision: int | None
    published_at: str | None
    stats: dict[str, Any]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        published = row["published_at"].isoformat() if row["published_at"] else None
        return cls(
            name=row["name"],
            index=row["index"],
            revision=row["revision"],
            published_at=published,
            stats=row["stats"] or {},
        )


def _rating(said: object) -> object:
    """1 and -1 may be said as up and down; true is not 1."""
    if isinstance(said, str):
        return {"up": 1, "down": -1}.get(said, said)
    return None if isinstance(said, bool) else said


class FeedbackIn(BaseModel):
    """What one thinks of an answer. It may arrive before the answer has been written down."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"id": "1f0c…", "rating": "up", "comment": "Just what I looked for."}]},
    )

    id: Annotated[
        Name,
        AfterValidator(lambda id: id.removeprefix(COMPLETION)),
        Field(validation_alias=AliasChoices("id", "answer_id"), description="of a reply, or of a chat completion"),
    ]
    rating: Annotated[
        Literal[-1, 0, 1],
        BeforeValidator(_rating),
        Field(
            json_schema_extra={"enum": [1, 0, -1, "up", "down"], "type": ["integer", "string"]},
            description="1 or up, 0 to take it back, -1 or down",
        ),
    ]
    comment: Annotated[str, StringConstraints(max_length=10_000), AfterValidator(_storable)] = ""


class FeedbackOut(BaseModel):
    """What was written down."""

    id: str
    rating: int


class ReadyOut(BaseModel):
    """The index that answers now."""

    status: Literal["ready"] = "ready"
    collection: str
    index: int
    revision: int


class HealthOut(BaseModel):
    """The process lives."""

    status: Literal["ok"] = "ok"


class ErrorOut(BaseModel):
    """Every error: what is wrong and what to do; the `field` at fault and its `choices`, where there are such."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error": "k: Input should be less than or equal to 100", "field": "k"}]}
    )

    error: str
    field: str | None = None
    choices: list[str] | None = None
    request: str | None = None
