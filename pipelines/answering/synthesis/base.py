"""Defines the task of every synthesizer, and the interface of a synthesizer."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from anyio.from_thread import start_blocking_portal

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.synthesis.quotes import Quote
from pipelines.llm.session import ChatModel, LLMSession
from pipelines.records import WRITTEN, Form, Hit, Message
from pipelines.text.languages import ENGLISH

DEFAULT_MODE = "compact"


@dataclass(frozen=True, slots=True)
class Task:
    """A question with the hits to answer it from: passage n is `hits[n - 1].passage`.

    `mode` names the synthesizer, and `variables` fill its prompt templates. `history` has the previous turns, and
    `context` the given texts of the mode `context_only`. `quotes` are the quotes of an extractive answer, None if not
    chosen yet. They are chosen with the model of `collection`, but only by words if `vectors` is False, because the
    model has just failed. `evidence` is how well the index fits the question, None if no index was searched. `about` is
    the subject that a follow-up continues, or "". `parts` are the two questions in it, if it asks two. `form` is the
    form of the answer, and `language` is the language of its text outside the passages. If `sent` is set, exactly these
    messages are sent. `structured` and `templates` override the settings.
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
    sent: tuple[Message, ...] = ()
    structured: bool | None = None
    templates: Mapping[str, str] = field(default_factory=dict)


class UnknownMode(ValueError):
    """No synthesis mode has that name; `choices` are the existing names."""

    def __init__(self, mode: str, choices: Iterable[str]) -> None:
        self.mode, self.choices = mode, tuple(choices)
        super().__init__(f"no synthesis mode is called {mode!r}; there are {', '.join(self.choices)}")

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...]]]:
        return type(self), (self.mode, self.choices)


class ModeNeedsModel(UnknownMode):
    """The mode needs a language model, and there is none; `choices` are the modes that work without one."""

    def __init__(self, mode: str, choices: Iterable[str]) -> None:
        ValueError.__init__(
            self,
            f"the mode {mode!r} needs a language model, and none is set: set llm_url and llm_model (the variables "
            f"RAYDEX_LLM_URL and RAYDEX_LLM_MODEL), or choose one of {', '.join(choices)}",
        )
        self.mode, self.choices = mode, tuple(choices)


class Synthesizer(ABC):
    """Makes an answer from texts. To write your own, implement `stream` in a subclass.

    `llm` is the default model of `synthesize`. An engine uses its own model.
    """

    llm: ChatModel | None = None

    @abstractmethod
    def stream(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        """Yield the deltas of the last call if there is a single last call, otherwise whole pieces.

        Raises LLMFailed, TemplateError and WindowTooSmall.
        """

    def synthesize(self, question: str, texts: Sequence[str], *, llm: ChatModel | None = None, **variables: str) -> str:
        """Return a model's answer to `question` from `texts` (or hits), without a retriever or store.

        In the answer, `[n]` cites the n-th text. `variables` fill the prompts. Raises NoModel and the errors of
        `stream`.
        """
        with start_blocking_portal() as portal:
            return portal.call(partial(self.asynthesize, question, texts, llm=llm, **variables))

    async def asynthesize(
        self, question: str, texts: Sequence[str], *, llm: ChatModel | None = None, **variables: str
    ) -> str:
        """Return the answer like `synthesize`, in the running event loop."""
        model = llm or self.llm
        if model is None:
            raise NoModel(f"{type(self).__name__} asks a language model: give one as llm=")
        hits = tuple(Hit(f"text:{n}", f"text:{n}", text=text) for n, text in enumerate(texts, 1))
        task = Task(question, hits, variables=variables, context=tuple(texts))
        async with aclosing(self.stream(task, LLMSession(model))) as deltas:
            return "".join([delta async for delta in deltas])


class NoModel(ValueError):
    """A synthesizer was called without a language model."""
