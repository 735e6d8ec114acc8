"""The synthesis modes: the ways in which a language model makes an answer from hits.

A new mode needs a class here and a line in MODES. The modes define the sequence of prompts; they don't know which model
answers. Every passage keeps its number in every call, so `[n]` means the same in all of them.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import ClassVar, TypeVar

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.synthesis.base import DEFAULT_MODE, Synthesizer, Task, UnknownMode
from pipelines.answering.synthesis.packing import PromptPacker, in_turn
from pipelines.answering.synthesis.prompts import DEFAULT, Piece, Prompts
from pipelines.answering.synthesis.structured import SCHEMA, parse_step
from pipelines.answering.synthesis.trimming import choose_parts
from pipelines.llm.session import ChatModel, LLMSession
from pipelines.llm.window import batches, pack
from pipelines.records import FULL
from pipelines.text.cleaning import clean_for_model
from pipelines.text.languages import say

T = TypeVar("T")

# Separates the answers of the accumulating modes.
SEPARATOR = "\n\n---\n\n"


class Mode(Synthesizer):
    """A built-in mode. `structured` applies to Compact and its subclasses, `num_children` to TreeSummarize only.

    Raises ValueError for fewer than two children, because the tree would have no root.
    """

    retrieves: ClassVar[bool] = True  # whether the mode answers from retrieved hits
    one_by_one = False  # whether each passage, or part of one, gets a separate call
    may_refuse: ClassVar[bool] = True  # whether its text is a single answer from passages, which may be a refusal

    def __init__(
        self, prompts: Prompts = DEFAULT, *, num_children: int | None = None, structured: bool = False
    ) -> None:
        if num_children is not None and num_children < 2:
            raise ValueError(f"num_children is {num_children}; a tree needs at least 2, or None to fill the window")
        self.prompts, self.num_children, self.structured = prompts, num_children, structured

    async def packed(
        self, task: Task, session: LLMSession, *names: str, structured: bool = False
    ) -> tuple[PromptPacker, list[str]]:
        """Return the packer of the prompts `names`, and the passages of each call, cut so that they fit."""

        def pack_all() -> tuple[PromptPacker, list[str]]:
            packer = PromptPacker(task, session, self.prompts, *names, structured=structured)
            pieces = packer.pieces(self.to_pieces(task, packer))
            groups = batches(pieces, 1) if self.one_by_one else packer.packs(pieces)
            return packer, [packer.context(group) for group in groups]

        return await in_turn(pack_all)

    def to_pieces(self, task: Task, packer: PromptPacker) -> list[Piece]:
        """Return the task's passages for the model: shortened for a slow model, few but whole for the form `full`."""
        pieces = [Piece.of(n, hit) for n, hit in enumerate(task.hits, 1)]
        if task.form == FULL:
            pieces = packer.fill(task.hits)
        if packer.is_read_in_time(pieces):
            return pieces

        def brief(texts: Sequence[str]) -> list[Piece]:
            cut = zip(pieces, texts, strict=True)
            return [replace(piece, text=clean_for_model(text)) for piece, text in cut if text]

        hits = [task.hits[piece.n - 1] for piece in pieces]
        return brief(choose_parts(task.question, hits, lambda texts: packer.is_read_in_time(brief(texts))))


class StreamingMode(Mode):
    """A mode whose last call streams the answer; without passages it makes no call."""

    @abstractmethod
    async def last_prompt(self, task: Task, session: LLMSession) -> str | None:
        """Make all calls but the last and return the prompt of the last one; None without passages."""

    async def stream(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        prompt = await self.last_prompt(task, session)
        if prompt is None:
            yield UNKNOWN
            return
        async with aclosing(session.stream(prompt)) as deltas:
            async for delta in deltas:
                yield delta


class Compact(StreamingMode):
    """Packs passages to fill the window; answers from the first pack, and refines the answer with each further one.

    There is one call per pack. With `structured`, each step says whether it satisfies the question; the others are
    skipped, and the answer comes in one piece.
    """

    def stream(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        return self._last_satisfying(task, session) if self.structured else super().stream(task, session)

    async def last_prompt(self, task: Task, session: LLMSession) -> str | None:
        name = "full" if task.form == FULL and not self.prompts.is_own("qa") else "qa"
        packer, contexts = await self.packed(task, session, name, "refine")
        prompt = None
        for context in contexts:
            if prompt:
                prompt = packer.prompt("refine", context, await session.complete(prompt))
            else:
                prompt = packer.prompt(name, context)
        return prompt

    async def _last_satisfying(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        """Yield the answer of the last step that satisfies the question."""
        packer, contexts = await self.packed(task, session, "qa", "refine", structured=True)
        answer = ""
        for context in contexts:
            prompt = packer.prompt("refine" if answer else "qa", context, answer)
            step = parse_step(await session.complete(prompt, schema=SCHEMA))
            answer = step.answer if step.satisfied else answer
        yield answer or UNKNOWN


class Research(Compact):
    """Like Compact, but answers from whole sections that the model gathered, in the order that it chose."""


class Refine(Compact):
    """Answers from the first passage and refines with each further one: one call per passage, or part of one."""

    one_by_one = True


class ContextOnly(Compact):
    """Like Compact, but answers from the task's given context instead of its hits."""

    retrieves = False

    def to_pieces(self, task: Task, packer: PromptPacker) -> list[Piece]:
        return [Piece(n, clean_for_model(text)) for n, text in enumerate(task.context, 1)]


class TreeSummarize(StreamingMode):
    """Answers each pack, then combines answers level by level up to one root; a level's calls run concurrently.

    With `num_children` n, each passage (or part) gets a separate call, and n answers at a time are combined. For p
    parts, that takes p + ⌈p/n⌉ + ⌈⌈p/n⌉/n⌉ + … + 1 calls, or a single call for one part. Without it, answers are packed
    to fill the window, at least two per call. If answers are too long for one call together, the longest are cut to a
    common length.
    """

    def __init__(
        self, prompts: Prompts = DEFAULT, *, num_children: int | None = None, structured: bool = False
    ) -> None:
        super().__init__(prompts, num_children=num_children, structured=structured)
        self.one_by_one = bool(num_children)

    async def last_prompt(self, task: Task, session: LLMSession) -> str | None:
        packer, contexts = await self.packed(task, session, "qa", "tree")
        prompts = [packer.prompt("qa", context) for context in contexts]
        while len(prompts) > 1:
            async with asked(session, prompts) as replies:
                answers = [await reply for reply in replies]
            prompts = await in_turn(partial(self._merging, packer, answers))
        return prompts[0] if prompts else None

    def _merging(self, packer: PromptPacker, answers: Sequence[str]) -> list[str]:
        """Return the prompts that merge answers, as many in each as the mode allows."""
        few, fit = self.num_children, packer.drafts_fit
        families = batches(answers, few) if few else pack(answers, fit, least=2)
        return [packer.prompt("tree", packer.drafts(family)) for family in families]


class SimpleSummarize(StreamingMode):
    """Puts all passages into one call; the longest are cut to a common length, so that each gets a share."""

    async def last_prompt(self, task: Task, session: LLMSession) -> str | None:
        def pack_all() -> str | None:
            packer = PromptPacker(task, session, self.prompts, "qa")
            pieces = packer.truncate(self.to_pieces(task, packer))
            return packer.prompt("qa", packer.context(pieces)) if pieces else None

        return await in_turn(pack_all)


class Generation(StreamingMode):
    """Asks only the question, without passages."""

    retrieves = False
    may_refuse = False

    async def last_prompt(self, task: Task, session: LLMSession) -> str | None:
        return PromptPacker(task, session, self.prompts, "generation").prompt("generation")


class CompactAccumulate(Mode):
    """Answers each pack separately and concurrently; the answer is the numbered list of these answers."""

    may_refuse = False

    async def stream(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        packer, contexts = await self.packed(task, session, "qa")
        prompts = [packer.prompt("qa", context) for context in contexts]
        if not prompts:
            yield UNKNOWN
        async with asked(session, prompts) as replies:
            for n, reply in enumerate(replies, 1):
                yield f"{SEPARATOR if n > 1 else ''}{say('answer_n', task.language, n=n)}\n{await reply}"


class Accumulate(CompactAccumulate):
    """Answers each passage, or part of one, separately and concurrently."""

    one_by_one = True


GENERATION, CONTEXT_ONLY, RESEARCH = "generation", "context_only", "research"
NO_TEXT = "no_text"  # only the hits, without a synthesizer

MODES: Mapping[str, type[Mode]] = {
    "refine": Refine,
    DEFAULT_MODE: Compact,
    "tree_summarize": TreeSummarize,
    "simple_summarize": SimpleSummarize,
    "accumulate": Accumulate,
    "compact_accumulate": CompactAccumulate,
    GENERATION: Generation,
    CONTEXT_ONLY: ContextOnly,
    RESEARCH: Research,
}
NEED_MODEL = (GENERATION, RESEARCH)


def uses_retrieval(mode: str) -> bool:
    """Return whether the mode answers from retrieved hits."""
    return mode not in MODES or MODES[mode].retrieves


def may_refuse(mode: str) -> bool:
    """Return whether the mode gives a single answer from passages, which may be a refusal."""
    return mode not in MODES or MODES[mode].may_refuse


def make_synthesizer(
    mode: str = DEFAULT_MODE,
    *,
    prompts: Prompts = DEFAULT,
    num_children: int | None = None,
    structured: bool = False,
    llm: ChatModel | None = None,
) -> Synthesizer:
    """Return the synthesizer of a mode; `llm` is the default model of its `synthesize`.

    Raises UnknownMode, and ValueError for fewer than two `num_children`.
    """
    if mode not in MODES:
        raise UnknownMode(mode, MODES)
    synthesizer = MODES[mode](prompts, num_children=num_children, structured=structured)
    synthesizer.llm = llm
    return synthesizer


@asynccontextmanager
async def asked(session: LLMSession, prompts: Sequence[str]) -> AsyncGenerator[list[asyncio.Task[str]], None]:
    """Ask all `prompts` concurrently; yield the tasks of the answers in order. Leaving the context cancels the rest."""
    tasks = [asyncio.create_task(session.complete(prompt)) for prompt in prompts]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
