"""Requests of the API: their fields, limits and examples.

FastAPI validates requests with these models and describes them on the OpenAPI page.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from pipelines.answering.question import Question
from pipelines.answering.settings import MOST_HITS
from pipelines.records import Filters, Message
from pipelines.text.cleaning import clean_for_storage

# Limit for one message before the question, and for one text to answer from.
MOST_CHARACTERS = 100_000
# The id of a chat completion is this and the answer's id.
COMPLETION_PREFIX = "chatcmpl-"
# Fields for readers without a key: a question of a few paragraphs, and where it was asked. Other fields cost the
# operator more tokens, or would give free access to the language model.
READER_FIELDS = frozenset(
    {"question", "collection", "filters", "conversation", "after", "channel", "page", "about_page", "language"}
)
MOST_READER_CHARACTERS = 2_000
# The limit of browsers and servers; the URL of an open page may have a long query.
MOST_URL_CHARACTERS = 8_000
# The longest registered tags are shorter.
MOST_LANGUAGE_CHARACTERS = 40
# Earlier turns do not help to understand the next question.
MOST_MESSAGES = 100
TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
SAID = TABLE["fields"]


def examples_of(model: str) -> dict[str, Any]:
    """Return the examples of a request or reply for its schema, by class name."""
    return {"examples": TABLE["examples"][model]}


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _clean_question(text: str) -> str:
    """Remove NUL characters, which pasted text may contain and Postgres can't store."""
    cleaned = clean_for_storage(text).strip()
    if not cleaned:
        raise ValueError("must not be empty")
    return cleaned


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_storable)]
Text = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS), AfterValidator(_storable)]
# The id of a search includes its results: some bytes for each hit.
ShownId = Annotated[str, StringConstraints(min_length=1, max_length=8_000), AfterValidator(_storable)]
QuestionText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),  # the engine limits its length
    AfterValidator(_clean_question),
]
EmbeddedText = Annotated[QuestionText, StringConstraints(max_length=MOST_CHARACTERS)]
UrlPrefix = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_storable)]
Channel = Annotated[Literal["page", "widget", "slack", "mcp", "api", "openai"], Field(description=SAID["channel"])]
ShortUrl = Annotated[str, StringConstraints(max_length=MOST_URL_CHARACTERS), AfterValidator(_storable)]
PageUrl = Annotated[ShortUrl, Field(description=SAID["page"])]
AboutPage = Annotated[bool, Field(description=SAID["about_page"])]
Tag = Annotated[str, StringConstraints(max_length=MOST_LANGUAGE_CHARACTERS), AfterValidator(_storable)]
Language = Annotated[Tag, Field(description=SAID["language"])]
Variables = Annotated[dict[Name, Text], Field(max_length=50)]
K = Annotated[int, Field(ge=1, le=MOST_HITS, description=SAID["k"])]


class FiltersIn(BaseModel):
    """Restricts the answer to chunks with any of `tags`, of one version, in one language, under one URL prefix."""

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[list[Name], Field(max_length=100)] = []
    version: Name | None = None
    language: Name | None = None
    url_prefix: UrlPrefix | None = None

    def to_filters(self) -> Filters:
        return Filters(tuple(self.tags), self.version, self.language, self.url_prefix)


class SearchIn(BaseModel):
    """A question to `collection`; default: the default collection, or the only one."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, json_schema_extra=examples_of("SearchIn"))

    question: QuestionText = Field(validation_alias=AliasChoices("question", "query"), description=SAID["question"])
    collection: Name | None = None
    k: K | None = None
    filters: FiltersIn | None = None
    channel: Channel = "api"
    page: PageUrl | None = None
    about_page: AboutPage = False
    language: Language = ""

    @property
    def beyond_readers(self) -> str:
        """Why a reader without a key may not ask this; "" if allowed."""
        for field in sorted(self.model_fields_set - READER_FIELDS):
            return f"{field}: this field needs an API key"
        return ""

    def to_question(self) -> Question:
        """Return the question for the engine."""
        return Question(
            self.question,
            collection=self.collection,
            k=self.k,
            filters=(self.filters or FiltersIn()).to_filters(),
            page=self.page or "",
            about_page=self.about_page,
            language=self.language,
        )


class MessageIn(BaseModel):
    """One earlier message of the conversation."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: Text


class QueryIn(SearchIn):
    """A question to answer: by itself, with the messages before it, or in a conversation that the service recorded."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, json_schema_extra=examples_of("QueryIn"))

    history: list[MessageIn] | None = Field(default=None, max_length=MOST_MESSAGES, description=SAID["history"])
    conversation: Name | None = Field(default=None, description=SAID["conversation"])
    after: list[Name] | None = Field(default=None, max_length=MOST_MESSAGES, description=SAID["after"])
    mode: Name | None = Field(default=None, description=SAID["mode"])
    variables: dict[Name, Text] = Field(default={}, max_length=50, description=SAID["variables"])
    structured: bool | None = Field(default=None, description=SAID["structured"])
    templates: dict[Name, Text] = Field(default={}, max_length=20, description=SAID["templates"])
    context: list[Text] = Field(default=[], max_length=1000, description=SAID["context"])
    prompts: bool = Field(default=False, description=SAID["prompts"])

    def to_question(self) -> Question:
        return replace(
            super().to_question(),
            history=tuple(Message(message.role, message.content) for message in self.history or ()),
            mode=self.mode,
            variables=self.variables,
            structured=self.structured,
            templates=self.templates,
            context=tuple(self.context),
        )


def without_completion_prefix(id: str) -> str:
    """Return the answer's id from the id of a chat completion."""
    return id.removeprefix(COMPLETION_PREFIX)


def _parse_rating(value: object) -> object:
    """Convert up and down to 1 and -1; true does not count as 1."""
    if isinstance(value, str):
        return {"up": 1, "down": -1}.get(value, value)
    return None if isinstance(value, bool) else value


Reason = Literal["wrong", "incomplete", "outdated", "not_asked"]


class ClickIn(BaseModel):
    """A source that a reader opened: from an answer, by its id, or from a search, by the `id` of its reply."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=examples_of("ClickIn"))

    id: ShownId = Field(description=SAID["shown"])
    source: ShortUrl = Field(min_length=1, description=SAID["opened"])


class FeedbackIn(BaseModel):
    """A rating of your own answer, or of a shared one."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, json_schema_extra=examples_of("FeedbackIn"))

    id: Annotated[Name, AfterValidator(without_completion_prefix)] = Field(
        validation_alias=AliasChoices("id", "answer_id"), description=SAID["id"]
    )
    rating: Annotated[Literal[-1, 0, 1], BeforeValidator(_parse_rating)] = Field(
        json_schema_extra={"enum": [1, 0, -1, "up", "down"], "type": ["integer", "string"]}, description=SAID["rating"]
    )
    comment: Annotated[str, StringConstraints(max_length=10_000), AfterValidator(_storable)] = ""
    reasons: list[Reason] = Field(default=[], max_length=10, description=SAID["reasons"])
    rater: Name | None = Field(default=None, description=SAID["rater"])

    @property
    def beyond_readers(self) -> str:
        """Why a reader without a key may not send this; "" if allowed: a reader has one rating."""
        return "" if self.rater is None else "rater: this field needs an API key"
