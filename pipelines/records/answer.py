"""Answers with their citations and claims, and the calls of the models that wrote them."""

import functools
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from operator import add
from typing import Any, Literal

from pydantic import TypeAdapter

from pipelines.records.indexes import Hit

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool by a language model; `arguments` are JSON as the model wrote it, which may be none."""

    id: str
    name: str
    arguments: str

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation: a model's may have `calls`, a tool's is the result of the call `call_id`."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    @property
    def said(self) -> str:
        """The content with the calls: all of it that a model reads."""
        return "\n".join(filter(None, [self.content, *map(str, self.calls)])) if self.calls else self.content


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of language models: tokens, calls and their price in US dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))


# Why a completion ended, in OpenAI's terms: this if it was complete, or else "length" or "content_filter".
FINISHED = "stop"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call of a language model: the prompt as sent, the completion, and why it ended (see FINISHED)."""

    model: str
    messages: tuple[Message, ...]
    completion: str
    finish_reason: str = FINISHED


@dataclass(frozen=True, slots=True)
class Route:
    """The agent that a question goes to, and why."""

    agent: str
    why: str


# Who put a citation's number into the answer: the language model, Raydex, or the person who wrote the answer.
CitedBy = Literal["model", "attributed", "person"]
MODEL: CitedBy = "model"
ATTRIBUTED: CitedBy = "attributed"
PERSON: CitedBy = "person"

# Who wrote an answer's text: a person, a language model, or the documentation itself, which it quotes.
WrittenBy = Literal["person", "model", "quotes"]
VERIFIED = "verified"  # the agent name of an answer that a person wrote
WITHOUT_MODEL = ("extractive", "smalltalk")  # the agents that call no language model


def written_by(agent: str) -> WrittenBy:
    """Return who wrote the text of an answer by `agent`."""
    return "person" if agent == VERIFIED else "quotes" if agent in WITHOUT_MODEL else "model"


# How answers are made with a language model: it writes them from passages, or from whole sections, which needs a
# capable model; or passages are quoted, with or without a summary by the model.
Form = Literal["written", "full", "summary", "quoted"]
WRITTEN: Form = "written"
FULL: Form = "full"
SUMMARY: Form = "summary"
QUOTED: Form = "quoted"

# An answer's text either answers the question, or it is results: sections that may contain the answer, for the reader
# to choose from.
AnswerForm = Literal["answer", "results"]
ANSWER: AnswerForm = "answer"
RESULTS: AnswerForm = "results"
FOLLOWED = 2  # results that a follow-up builds on: more would mislead it

# How far a reader can rely on an answer; grounding/confidence.py defines it.
Confidence = Literal["high", "some", "low"]
HIGH: Confidence = "high"
SOME: Confidence = "some"
LOW: Confidence = "low"


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source of an answer: `[n]` in its text refers to it.

    `supported` says whether the source supports the claims that cite it, and `support` how well (0 to 1, for the
    weakest claim); for a quoted source, whether it answers the question. `scores` are the scores of each leg for its
    hit. `by` is MODEL if the language model wrote the number anywhere, PERSON in an answer by a person, else
    ATTRIBUTED. `checked` and `changed` are the times when its page was last checked and last changed (ISO 8601, "":
    unknown).
    """

    n: int
    source: str
    title: str = ""
    snippet: str = ""
    headings: tuple[str, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    supported: bool = True
    support: float = 1.0
    by: CitedBy = MODEL
    checked: str = ""
    changed: str = ""


# Why a claim is not supported: its words say so, a name or number of it is in no passage, or a passage denies it or
# says it with less force.
ReasonKind = Literal["words", "nowhere", "denied"]
WORDS: ReasonKind = "words"
NOWHERE: ReasonKind = "nowhere"
DENIED: ReasonKind = "denied"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a claim is not supported: `text` is NOWHERE in the passages, or is the sentence by which it is DENIED."""

    kind: ReasonKind = WORDS
    text: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """Counts of an answer's claims: all of them, with a citation, and with a passage that supports them.

    `unsupported` are the texts of the unsupported claims, in order, and `reasons` why each is not supported.
    """

    total: int = 0
    cited: int = 0
    supported: int = 0
    unsupported: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    def __add__(self, other: "Claims") -> "Claims":
        return Claims(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its citations, the hits it was made from and the seconds that each step took.

    `degraded` names the parts that failed. `known` is False if the answer is that the sources contain none. `queries`
    are the search queries. `exchanges` are the prompts that were sent, if they were requested. `finish_reason` is
    FINISHED unless the model was cut off. `claims` counts its claims, `confidence` is how far it can be relied on.
    `collection` is the one that answered, even if the question named none. `form` is RESULTS if no section certainly
    answers and all are only candidates. An answer is stored in the format of `to_dict`, so a new field needs a default
    for older answers.
    """

    question: str
    text: str
    agent: str = ""
    citations: tuple[Citation, ...] = ()
    hits: tuple[Hit, ...] = ()
    degraded: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    index: int = 0
    revision: int = 0
    id: str = ""
    known: bool = True
    route: Route | None = None
    queries: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()
    finish_reason: str = FINISHED
    claims: Claims = Claims()
    confidence: Confidence = LOW
    collection: str = ""
    form: AnswerForm = ANSWER

    @property
    def written_by(self) -> WrittenBy:
        """Who wrote the text."""
        return written_by(self.agent)

    @property
    def llm(self) -> str:
        """The language model that wrote it, "" for a quotation and for an answer by a person."""
        return self.exchanges[-1].model if self.written_by == "model" and self.exchanges else ""

    @property
    def as_of(self) -> str:
        """When the least recently checked page among its sources was checked, "" if unknown."""
        return min((citation.checked for citation in self.citations if citation.checked), default="")

    @property
    def also_found(self) -> tuple[Hit, ...]:
        """The first hit of each section that was found and that no citation names.

        Empty if a person answered, or if nothing did: the citations of "I do not know" are the closest sections.
        """
        named = {citation.source for citation in self.citations}
        sections: dict[str, Hit] = {}
        for hit in self.hits if self.known and self.agent != VERIFIED else ():
            if named.isdisjoint((hit.source, *hit.sources)):
                sections.setdefault(hit.source, hit)
        return tuple(sections.values())

    @property
    def cited(self) -> tuple[str, ...]:
        """The ids of the chunks that it cites: for each source the n-th hit, or the first hit with that source.

        For results, only the first FOLLOWED count, because the others are only candidates and a follow-up would build
        on them.
        """
        citations = self.citations[:FOLLOWED] if self.form == RESULTS else self.citations
        found = (self._hit_of(citation) for citation in citations)
        return tuple(hit.chunk_id for hit in found if hit)

    def _hit_of(self, citation: Citation) -> Hit | None:
        nth = self.hits[citation.n - 1 : citation.n] if citation.n > 0 else ()
        return next((hit for hit in (*nth, *self.hits) if citation.source in (hit.source, *hit.sources)), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole answer in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Answer":
        """Return the answer that `to_dict` converted. Raises ValidationError.

        Null and missing fields get their defaults.
        """
        return _answers().validate_python(_without_nulls(values))

    def __str__(self) -> str:
        sources = "\n".join(f"[{c.n}] {c.title}\n    {c.source}" for c in self.citations)
        return f"{self.text}\n\n{sources}" if sources else self.text


@functools.cache
def _answers() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, (list, tuple)) else value
