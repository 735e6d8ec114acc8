"""Requests and replies of OpenAI's API: their fields, limits and examples."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from pipelines.answering.question import Question
from pipelines.records import Message
from serve.api.requests import MOST_MESSAGES, EmbeddedText, FiltersIn, K, Name, Text, examples_of

# This model stands for the default collection: the service's setting, or the only collection.
DEFAULT_MODEL = "raydex"
# OpenAI takes as many in one request.
MOST_INPUTS = 2048

# ---------------------------------------------------------------------------------------------- requests


class MessagePart(BaseModel):
    """A part of a message. Only text can be read; a user's other parts are refused, those of others ignored."""

    type: str
    text: Text = ""


class ChatMessage(BaseModel):
    """One message. System messages and tool replies are ignored: only the operator instructs the service."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[MessagePart] | None = None

    @field_validator("content")
    @classmethod
    def is_text_of_a_user(cls, content: Any, other: ValidationInfo) -> Any:
        parts = content if isinstance(content, list) else []
        if other.data.get("role") == "user" and any(part.type != "text" for part in parts):
            raise PydanticCustomError("no_text", "only text can be read, leave other parts out")
        return content

    @property
    def text(self) -> str:
        parts = [self.content] if isinstance(self.content, str) else [part.text for part in self.content or ()]
        return "\n".join(parts).strip()


class RaydexOptions(BaseModel):
    """Options that OpenAI's format has no field for: the client's `extra_body={"raydex": {…}}`."""

    model_config = ConfigDict(extra="forbid")

    footnotes: Annotated[bool | None, Field(description="add the sources to the text as Markdown footnotes")] = None
    k: K | None = None
    filters: FiltersIn | None = None
    mode: Name | None = None
    variables: dict[Name, Text] = {}
    conversation: Name | None = None


class StreamOptions(BaseModel):
    """`include_usage` adds a last chunk with the token counts."""

    include_usage: bool = False


class ResponseFormat(BaseModel):
    """The format of the answer: text."""

    type: Literal["text"]


def _only_if(*harmless: Any) -> AfterValidator:
    """Refuse a value that asks for something else than a text from the documentation; `harmless` ones are ignored."""

    def check(value: Any) -> None:
        if value is not None and value not in harmless:
            raise PydanticCustomError("unsupported", "not supported, leave it out: answers are text from documentation")

    return AfterValidator(check)


class ChatIn(BaseModel):
    """A chat whose last user message is the question.

    What the service can't do is refused. Sampling parameters are ignored, as any field that is not listed here; the
    reply names them in `raydex.ignored`.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=examples_of("ChatIn"))

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1, description="number of answers: only 1")] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[Any, _only_if([])] = None
    tool_choice: Annotated[Any, _only_if("none", "auto")] = None
    functions: Annotated[Any, _only_if([])] = None
    function_call: Annotated[Any, _only_if("none", "auto")] = None
    logprobs: Annotated[Any, _only_if(False)] = None
    top_logprobs: Annotated[Any, _only_if(0)] = None
    modalities: Annotated[Any, _only_if(["text"], [])] = None
    audio: Annotated[Any, _only_if()] = None
    web_search_options: Annotated[Any, _only_if()] = None
    raydex: RaydexOptions | None = None

    @field_validator("messages")
    @classmethod
    def hold_a_question(cls, messages: list[ChatMessage]) -> list[ChatMessage]:
        if not _question(messages):
            raise PydanticCustomError("no_question", "no user message has text")
        return messages

    @property
    def ignored(self) -> list[str]:
        """The fields that were given and have no effect."""
        return sorted(name for name, value in (self.model_extra or {}).items() if value is not None)

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages of user and assistant before the question."""
        last = max(n for n, message in enumerate(self.messages) if message.role == "user")
        earlier = [Message(m.role, m.text) for m in self.messages[:last] if m.role in ("user", "assistant") and m.text]
        return tuple(earlier[-MOST_MESSAGES:])

    def to_question(self) -> Question:
        options = self.raydex or RaydexOptions()
        return Question(
            _question(self.messages),
            collection=collection_of(self.model),
            k=options.k,
            filters=(options.filters or FiltersIn()).to_filters(),
            history=self.history,
            mode=options.mode,
            variables=options.variables,
        )


class EmbeddingsIn(BaseModel):
    """Texts to embed with the embedding model of a collection, as its questions are embedded."""

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


def _question(messages: list[ChatMessage]) -> str:
    """Return the user's last message."""
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def collection_of(model: str) -> str | None:
    """Return the collection that a model stands for; None: the default one."""
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
    """Tokens of the language models that wrote the answer; where none did, estimates of the messages and the text."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatOut(BaseModel):
    """A chat completion; `raydex` holds the reply of /query without the text and the hits."""

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
