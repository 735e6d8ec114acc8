"""Requests and replies of OpenAI's API: their fields, limits and examples."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pipelines.answering.conversation.background import find_background_task
from pipelines.answering.question import BackgroundTask, Question
from pipelines.records import Message, Role
from pipelines.text.cleaning import clean_for_storage
from serve.api.requests import (
    MOST_CHARACTERS,
    MOST_MESSAGES,
    EmbeddedText,
    FiltersIn,
    K,
    Name,
    Variables,
    examples_of,
)

# This model stands for the default collection: the service's setting, or the only collection.
DEFAULT_MODEL = "raydex"
# OpenAI's limit per request.
MOST_INPUTS = 2048
# The types of message parts with text: of chat completions, and of the Responses API, which some clients mix in.
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})

# Roles of a background task's messages, mapped to the roles that every model knows.
ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}

# ---------------------------------------------------------------------------------------------- requests


# A long history must not cause a refusal: the engine limits the question, and earlier turns are cut.
SaidText = Annotated[str, AfterValidator(clean_for_storage)]


class MessagePart(BaseModel):
    """A part of a message. Only text is read: images, sounds and files are ignored."""

    type: Name = "text"
    text: SaidText | None = None

    @model_validator(mode="before")
    @classmethod
    def may_be_a_string(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given

    @property
    def is_text(self) -> bool:
        """Whether it is a part that can be read."""
        return self.type in TEXT_PARTS


class ChatMessage(BaseModel):
    """One message. System messages and tool replies are ignored: only the operator instructs the service."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: SaidText | Annotated[list[MessagePart], Field(max_length=1000)] | None = None

    @property
    def parts(self) -> list[MessagePart]:
        return [MessagePart(text=self.content)] if isinstance(self.content, str) else list(self.content or ())

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.is_text and part.text).strip()

    @property
    def unread(self) -> set[str]:
        """The types of the parts that can't be read."""
        return {part.type for part in self.parts if not part.is_text}


class RaydexOptions(BaseModel):
    """Options without a field in OpenAI's format: the client's `extra_body={"raydex": {…}}`."""

    model_config = ConfigDict(extra="forbid")

    footnotes: Annotated[bool | None, Field(description="add the sources to the text as Markdown footnotes")] = None
    k: K | None = None
    filters: FiltersIn | None = None
    mode: Name | None = None
    variables: Variables = {}
    conversation: Name | None = None


class StreamOptions(BaseModel):
    """`include_usage` adds a last chunk with the token counts."""

    include_usage: bool = False


class ResponseFormat(BaseModel):
    """The format of the answer: text."""

    type: Literal["text"]


def _only_if(*harmless: Any) -> AfterValidator:
    """Reject a value that the client depends on, unless it is one of `harmless`, which request nothing."""

    def check(value: Any) -> Any:
        if value is not None and value not in harmless:
            raise PydanticCustomError("unsupported", "not supported, leave it out: answers are text from documentation")
        return value

    return AfterValidator(check)


def _no_forced_call(choice: Any) -> Any:
    """Reject a tool choice that requires a call: the client would wait for a call that never comes."""
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    mode = allowed.get("mode") if isinstance(allowed, dict) else choice
    if mode not in (None, "none", "auto"):
        raise PydanticCustomError("unsupported", "no tool is ever called: leave it out, or say auto or none")
    return choice


ToolChoice = Annotated[Any, AfterValidator(_no_forced_call)]


class ChatIn(BaseModel):
    """A chat whose last non-empty user message is the question.

    Options that a client depends on are refused: forced tool calls, response formats, several answers, log
    probabilities, media other than text. All other options without an effect are ignored, including unlisted fields;
    the reply names them in `raydex.ignored` and in a header. Tools may always be listed, because a model need not call
    one.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=examples_of("ChatIn"))

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000), FailFast()]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1, description="number of answers: only 1")] | None = None
    response_format: ResponseFormat | None = None
    tool_choice: ToolChoice = None
    function_call: ToolChoice = None
    logprobs: Annotated[Any, _only_if(False)] = None
    top_logprobs: Annotated[Any, _only_if(0)] = None
    modalities: Annotated[Any, _only_if(["text"], [])] = None
    raydex: RaydexOptions | None = None

    @field_validator("messages")
    @classmethod
    def hold_a_question(cls, messages: list[ChatMessage]) -> list[ChatMessage]:
        asked = messages[_asking(messages)]
        if asked.role != "user" or not (asked.text or asked.unread):
            raise PydanticCustomError("no_question", "no user message has text")
        if not asked.text:
            unread = {"unread": _listed(asked.unread)}
            raise PydanticCustomError("no_text", "the last user message has only {unread}: add text", unread)
        return messages

    @property
    def ignored(self) -> list[str]:
        """The given fields, and parts of the user's messages, that have no effect."""
        fields = {name for name, value in (self.model_extra or {}).items() if value not in (None, [])}
        return sorted(fields.union(*(message.unread for message in self.messages if message.role == "user")))

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages of user and assistant before the question."""
        before = self.messages[: _asking(self.messages)]
        said = [m for m in before if m.role in ("user", "assistant") and m.text]
        earlier = [Message(ROLES[m.role], m.text[:MOST_CHARACTERS]) for m in said]
        return tuple(earlier[-MOST_MESSAGES:])

    @property
    def question(self) -> str:
        """The text of the question."""
        return self.messages[_asking(self.messages)].text

    @property
    def background(self) -> BackgroundTask | None:
        """The client's background task that this chat is; None for a question."""
        said = [Message(ROLES[m.role], m.text) for m in self.messages[: _asking(self.messages) + 1] if m.role in ROLES]
        return find_background_task([message for message in said if message.content])

    def to_question(self) -> Question:
        options = self.raydex or RaydexOptions()
        return Question(
            self.question,
            collection=collection_of(self.model),
            k=options.k,
            filters=(options.filters or FiltersIn()).to_filters(),
            history=self.history,
            mode=options.mode,
            variables=options.variables,
            background=self.background,
        )


class EmbeddingsIn(BaseModel):
    """Texts to embed with a collection's embedding model, in the same way as its questions."""

    model_config = ConfigDict(json_schema_extra=examples_of("EmbeddingsIn"))

    model: Name
    input: Annotated[list[EmbeddedText], Field(min_length=1, max_length=MOST_INPUTS)]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int, Field(ge=1, description="must be the dimension of the model")] | None = None

    @field_validator("input", mode="before", json_schema_input_type=EmbeddedText | list[EmbeddedText])
    @classmethod
    def is_text(cls, given: Any) -> Any:
        texts = given if isinstance(given, list) else [given]
        if not all(isinstance(text, str) for text in texts):
            raise PydanticCustomError("no_text", "token ids can't be embedded, send the text")
        return texts


def _asking(messages: list[ChatMessage]) -> int:
    """Return the index of the question: the user's last non-empty message; -1 if there is none."""
    asking = (n for n, one in enumerate(messages) if one.role == "user" and (one.text or one.unread))
    return max(asking, default=-1)


def _listed(types: set[str]) -> str:
    return ", ".join(sorted(types))


def collection_of(model: str) -> str | None:
    """Return the collection that a model name means; None: the default one."""
    return None if model == DEFAULT_MODEL else model


# ---------------------------------------------------------------------------------------------- replies


class OpenAIErrorOut(BaseModel):
    """An error in OpenAI's shape."""

    class Detail(BaseModel):
        message: str
        type: str
        code: str | None
        param: str | None

    error: Detail


class ModelOut(BaseModel):
    """A collection with a published index."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = DEFAULT_MODEL


class ModelsOut(BaseModel):
    """All collections with a published index."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


class TokenCountsOut(BaseModel):
    """Tokens of the language models that wrote the answer; without one, estimates for the messages and the text."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatOut(BaseModel):
    """A chat completion; `raydex` contains the reply of /query without the text and the hits."""

    class Choice(BaseModel):
        class AssistantMessageOut(BaseModel):
            role: Literal["assistant"] = "assistant"
            content: str
            refusal: None = None

        index: int = 0
        message: AssistantMessageOut
        finish_reason: str
        logprobs: None = None

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: TokenCountsOut
    raydex: dict[str, Any]


class EmbeddingsOut(BaseModel):
    """Unit vectors, as lists or as base64 of little-endian float32."""

    class EmbeddingOut(BaseModel):
        object: Literal["embedding"] = "embedding"
        index: int
        embedding: list[float] | str

    object: Literal["list"] = "list"
    data: list[EmbeddingOut]
    model: str
    usage: dict[str, int]
