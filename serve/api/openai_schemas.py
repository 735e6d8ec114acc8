"""What requests and replies look like in OpenAI's words, with examples. Knows no HTTP."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.answering.engine import Ask
from pipelines.records import Filters, Message
from serve.api.schemas import MOST_CHARACTERS, MOST_MESSAGES, FiltersIn, K, Name, QuestionText, Text

# The model of a service that has one collection, or a collection that it means where none is named.
DEFAULT_MODEL = "raydex"
# As many as OpenAI takes in one request.
MOST_INPUTS = 2048

# ---------------------------------------------------------------------------------------------- requests


class Part(BaseModel):
    """A piece of a message. Pictures, sounds and files can't be read."""

    type: Literal["text"]
    text: Text


class ChatMessage(BaseModel):
    """One message. System messages and tools' replies are passed over: what the service may say is its operator's."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[Part] | None = None

    @property
    def text(self) -> str:
        parts = [self.content] if isinstance(self.content, str) else [part.text for part in self.content or ()]
        return "\n".join(parts).strip()


class Options(BaseModel):
    """What the protocol has no field for: `extra_body={"raydex": {…}}` of the client."""

    model_config = ConfigDict(extra="forbid")

    footnotes: Annotated[bool | None, Field(description="sources as Markdown footnotes in the text")] = None
    k: K | None = None
    filters: FiltersIn | None = None
    mode: Name | None = None
    variables: dict[Name, Text] = {}
    conversation: Name | None = None


class StreamOptions(BaseModel):
    """`include_usage`: a last chunk with the tokens."""

    include_usage: bool = False


class ResponseFormat(BaseModel):
    """Answers are text with citations."""

    type: Literal["text"]


class ChatIn(BaseModel):
    """A chat whose last user message is the question. Sampling parameters and tools are taken and not used."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "docs", "messages": [{"role": "user", "content": "How do I read a CSV file?"}]},
                {
                    "model": "docs",
                    "messages": [{"role": "user", "content": "How do I read a CSV file?"}],
                    "stream": True,
                    "raydex": {"footnotes": True, "k": 8},
                },
            ]
        }
    )

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1, description="one answer")] | None = None
    response_format: ResponseFormat | None = None
    raydex: Options | None = None

    @model_validator(mode="after")
    def has_a_question(self) -> "ChatIn":
        if not self.question:
            raise ValueError("messages: there is no user message with text in it")
        if len(self.question) > MOST_CHARACTERS:
            raise ValueError(f"messages: the question has more than {MOST_CHARACTERS} characters")
        return self

    @property
    def question(self) -> str:
        """The last message of the user."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def history(self) -> tuple[Message, ...]:
        """What user and assistant said before the question."""
        last = max(n for n, message in enumerate(self.messages) if message.role == "user")
        said = [Message(m.role, m.text) for m in self.messages[:last] if m.role in ("user", "assistant") and m.text]
        return tuple(said[-MOST_MESSAGES:])

    def ask(self) -> Ask:
        options = self.raydex or Options()
        return Ask(
            self.question,
            collection=collection_of(self.model),
            k=options.k,
            filters=options.filters.record() if options.filters else Filters(),
            history=self.history,
            mode=options.mode,
            variables=options.variables,
        )


class EmbeddingsIn(BaseModel):
    """Texts to embed with the model of a collection, as its questions are embedded."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "docs", "input": ["How do I read a CSV file?"]}]}
    )

    model: Name
    input: QuestionText | Annotated[list[QuestionText], Field(min_length=1, max_length=MOST_INPUTS)]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int, Field(ge=1, description="that of the model; no other can be had")] | None = None

    @model_validator(mode="before")
    @classmethod
    def is_text(cls, given: Any) -> Any:
        texts = given.get("input") if isinstance(given, dict) else None
        if isinstance(texts, list) and texts and not all(isinstance(text, str) for text in texts):
            raise ValueError("input: token ids can't be embedded here, send the text itself")
        return given


def collection_of(model: str) -> str | None:
    """The collection that a model stands for; None: the service's own."""
    return None if model == DEFAULT_MODEL else model


# ---------------------------------------------------------------------------------------------- replies


class OpenAIError(BaseModel):
    """OpenAI's shape of an error."""

    class Detail(BaseModel):
        message: str
        type: str
        code: str | None
        param: str | None

    error: Detail


class ModelOut(BaseModel):
    """A collection that can be asked."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = DEFAULT_MODEL


class ModelsOut(BaseModel):
    """All collections that can be asked."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


class UsageOut(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatOut(BaseModel):
    """A chat completion; `raydex` holds the reply of /query but for the text and the hits."""

    class Choice(BaseModel):
        class MessageOut(BaseModel):
            role: Literal["assistant"] = "assistant"
            content: str
            refusal: None = None

        index: int = 0
        message: MessageOut
        finish_reason: Literal["stop"] = "stop"
        logprobs: None = None

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: UsageOut
    raydex: dict[str, Any]


class EmbeddingsOut(BaseModel):
    """Vectors of length 1, as lists or as base64 of little-endian float32."""

    class EmbeddingOut(BaseModel):
        object: Literal["embedding"] = "embedding"
        index: int
        embedding: list[float] | str

    object: Literal["list"] = "list"
    data: list[EmbeddingOut]
    model: str
    usage: dict[str, int]
