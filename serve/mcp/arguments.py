"""Arguments of the tools: fields, limits and defaults, as agents see them in each schema."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from pipelines.text.cleaning import clean_for_storage
from pipelines.text.phrases import read_table
from serve.mcp.results import MOST_SECTIONS

SAID = read_table("serve.mcp.server")["arguments"]
MOST_QUESTION_CHARACTERS = 2_000  # same limit as for readers without a key over HTTP: a few paragraphs
HITS = 5
MOST_SEEN = 100


def _blank(value: Any) -> Any:
    """Treat null, which some clients send for omitted arguments, as omitted."""
    return "" if value is None else value


def _clean(text: str) -> str:
    return clean_for_storage(text).strip()


def _filled(text: str) -> str:
    if not (text := _clean(text)):
        raise ValueError("must not be empty")
    return text


Words = Annotated[str, StringConstraints(max_length=MOST_QUESTION_CHARACTERS), AfterValidator(_filled)]
Url = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_filled)]
Optional = Annotated[str, BeforeValidator(_blank), StringConstraints(max_length=500), AfterValidator(_clean)]
Collection = Annotated[Optional, Field(description=SAID["collection"])]
Version = Annotated[Optional, Field(description=SAID["version"])]


class ToolArguments(BaseModel):
    """The arguments of a tool; unknown ones are rejected."""

    model_config = ConfigDict(extra="forbid")


class SearchArguments(ToolArguments):
    """The arguments of search_docs."""

    query: Words = Field(description=SAID["query"])
    collection: Collection = ""
    version: Version = ""
    k: int = Field(default=HITS, ge=1, le=MOST_SECTIONS, description=SAID["k"])
    seen: list[Url] = Field(default=[], max_length=MOST_SEEN, description=SAID["seen"])


class AskArguments(ToolArguments):
    """The arguments of ask_docs."""

    question: Words = Field(description=SAID["question"])
    collection: Collection = ""
    version: Version = ""
    conversation: Optional = Field(default="", description=SAID["conversation"])


class PageArguments(ToolArguments):
    """The arguments of read_page."""

    url: Url = Field(description=SAID["url"])
    section: Optional = Field(default="", description=SAID["section"])
    part: int = Field(default=1, ge=1, description=SAID["part"])
    collection: Collection = ""


class NoArguments(ToolArguments):
    """The arguments of list_collections: none."""
