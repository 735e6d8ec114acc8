"""The task that every synthesizer takes, and the interface of a synthesizer."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.synthesis.quotes import Quote
from pipelines.llm.session import LLMSession
from pipelines.records import WRITTEN, Form, Hit, Message
from pipelines.text.languages import ENGLISH

DEFAULT_MODE = "compact"


@dataclass(frozen=True, slots=True)
class Task:
    """A question with the hits to answer it from: passage n is `hits[n - 1].passage`.

    `mode` names the synthesizer, `variables` fill its prompt templates, `history` are the turns before, `context`
    the given texts of the mode `context_only`. `quotes` are what an extractive answer quotes, None if they are not
    chosen yet, with the model of `collection`; without `vectors` that is not asked, as it has just failed. `evidence`
    is how well the index fits the question, None where none was searched; `about` is the subject that a follow-up goes
    on about, "" for none; `parts` are the two questions that it asks at once. `form` is how the answer comes about,
    `language` that of what it says beside the passages.
    """

    question: str
    hits: tuple[Hit, ...] = ()
    history: tuple[Message, ...] = ()
    mode: str = DEFAULT_MODE
    variables: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    collection: str | None = None
    vectors: bool = True
    quotes: tuple[Quote, ...] | None = None
    evidence: Evidence | None = None
    about: str = ""
    parts: tuple[str, ...] = ()
    form: Form = WRITTEN
    language: str = ENGLISH


class UnknownMode(ValueError):
    """No synthesis mode has that name; `choices` are the names that exist."""

    def __init__(self, mode: str, choices: Iterable[str]) -> None:
        self.mode, self.choices = mode, tuple(choices)
        super().__init__(f"no synthesis mode is called {mode!r}; there are {', '.join(self.choices)}")

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...]]]:
        return type(self), (self.mode, self.choices)


class ModeNeedsModel(UnknownMode):
    """The mode asks a language model alone, and there is none; `choices` are the modes that work without one."""

    def __init__(self, mode: str, choices: Iterable[str]) -> None:
        ValueError.__init__(
            self,
            f"the mode {mode!r} needs a language model, and none is set: set llm_url and llm_model (the variables "
            f"RAYDEX_LLM_URL and RAYDEX_LLM_MODEL), or choose one of {', '.join(choices)}",
        )
        self.mode, self.choices = mode, tuple(choices)


class Synthesizer(ABC):
    """Makes an answer from a task. A custom one is one subclass with this one method."""

    @abstractmethod
    def synthesize(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        """Yield the deltas of the last call where there is one last call, else whole pieces.

        Raises LLMFailed, TemplateError and WindowTooSmall.
        """
