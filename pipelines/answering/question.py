"""A question, its options, and how the engine answers those that name none."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.search import HITS
from pipelines.records import Filters, Message


class QuestionTooLong(ValueError):
    """A question has `characters`, and at most `most` are answered; `whose` says to whom that limit applies."""

    def __init__(self, characters: int, most: int, whose: str = "") -> None:
        who = f" {whose}" if whose else ""
        super().__init__(
            f"the question has {characters:,} characters, and at most {most:,} are answered{who}: shorten it"
        )
        self.most = most


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """What a program asks a model about a conversation, such as its title: `messages` as they stand.

    `empty` is the reply without content in the format that they name, for where no model answers.
    """

    messages: tuple[Message, ...]
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its options.

    `k` is the number of hits for the answer; `previous` are the ids of the chunks that the turn before cited; `mode`
    names the synthesizer; `variables` fill its prompts; `context` are the texts of mode `context_only`; `page` is the
    URL of the page that the reader has open, which "this page" means; with `about_page` it is meant in any words.
    `language` is the reader's (BCP 47), for a question whose own can't be told. `structured` (structured answer
    filtering) and `templates` (prompts by name, such as `qa` and `refine`) replace those of the settings. With
    `background` it is no question of a reader: a model answers it as it stands, and nobody records it.
    """

    question: str
    collection: str | None = None
    k: int | None = None
    filters: Filters = Filters()
    history: tuple[Message, ...] = ()
    previous: tuple[str, ...] = ()
    mode: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    id: str = ""
    page: str = ""
    about_page: bool = False
    language: str = ""
    structured: bool | None = None
    templates: Mapping[str, str] = field(default_factory=dict)
    background: BackgroundTask | None = None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How many and which hits an answer is made from, and how.

    `mode` names the synthesizer and `k` is the number of hits, for questions that name none. The reranker gets `depth`
    hits. With `pages_first` the hits are of as many pages as possible; at most `max_per_page` are of one page (0: any
    number). `longest_question` is in characters.
    """

    mode: str = "compact"
    k: int = HITS
    depth: int = 30
    pages_first: bool = Fusion().pages_first
    max_per_page: int = 0
    longest_question: int = 8_000


def check_length(question: str, most: int) -> None:
    """Raise QuestionTooLong if `question` has more than `most` characters."""
    if len(question) > most:
        raise QuestionTooLong(len(question), most)
