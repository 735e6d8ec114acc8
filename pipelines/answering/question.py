"""A question with its options, and the engine's defaults for the options that it omits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.search import HITS
from pipelines.records import Filters, Message
from pipelines.text.counts import counted


class QuestionTooLong(ValueError):
    """A question of `characters` characters exceeds the limit `most`; `whose` says to whom the limit applies."""

    def __init__(self, characters: int, most: int, whose: str = "") -> None:
        who = f" {whose}" if whose else ""
        super().__init__(
            f"the question has {counted(characters, 'character')}, and at most {most:,} are answered{who}: shorten it"
        )
        self.most = most


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """A program's request to a model about a conversation, such as its title: `messages`, unchanged.

    `empty` is the reply if no model answers: a reply without content, in the format that the messages request.
    """

    messages: tuple[Message, ...]
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its options.

    `k` is the number of hits for the answer. `previous` lists the ids of the chunks that the previous turn cited.
    `mode` names the synthesizer, and `variables` fill its prompts. `context` has the texts for mode `context_only`.
    `page` is the URL of the page that the reader has open, to which "this page" refers; with `about_page`, the question
    is about that page however it is worded. `language` is the reader's (BCP 47), for questions whose own language can't
    be detected. `structured` (structured answer filtering) and `templates` (prompts by name, such as `qa` and `refine`)
    override the settings. With `background`, it isn't a reader's question: a model answers it unchanged, and it isn't
    recorded.
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
    """How many hits an answer uses, how they are chosen, and how the answer is written.

    `mode` names the synthesizer and `k` is the number of hits, for questions that name none. The reranker gets `depth`
    hits. With `pages_first`, the hits come from as many pages as possible. At most `max_per_page` hits come from one
    page (0: no limit). `longest_question` is in characters. In the mode "research", a model searches again
    in at most `rounds` rounds, for at most `rounds_s` seconds.
    """

    mode: str = "compact"
    k: int = HITS
    depth: int = 30
    pages_first: bool = Fusion().pages_first
    max_per_page: int = 0
    longest_question: int = 8_000
    rounds: int = 4  # an estimate, not measured
    rounds_s: float = 60.0


def check_length(question: str, most: int) -> None:
    """Raise QuestionTooLong if `question` has more than `most` characters."""
    if len(question) > most:
        raise QuestionTooLong(len(question), most)
