"""Hits become an answer by a language model: the synthesis modes, each a Synthesizer with one method.

Knows which prompts follow which, and how many; not which model answers, nor what becomes of the deltas.
Every passage keeps its number in every call, so `[n]` means the same in all of them.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from pipelines.answering.synthesis.base import Synthesizer, Task, UnknownMode
from pipelines.answering.synthesis.extractive import UNKNOWN
from pipelines.answering.synthesis.packing import PromptPacker
from pipelines.answering.synthesis.prompts import DEFAULT, Piece, Prompts, passages
from pipelines.answering.synthesis.structured import SCHEMA, parse
from pipelines.characters import clean_for_model
from pipelines.llm.session import LLMSession
from pipelines.llm.window import batches, pack

# Between the answers of the modes that accumulate.
SEPARATOR = "\n\n---\n\n"


class Mode(Synthesizer):
    """A built-in mode. `structured` matters to Compact and its kin, `num_children` to TreeSummarize alone.

    Raises ValueError for fewer than two children: such a tree would have no root.
    """

    def __init__(
        self, prompts: Prompts = DEFAULT, *, num_children: int | None = None, structured: bool = False
    ) -> None:
        if num_children is not None and num_children < 2:
            raise ValueError(f"num_children is {num_children}; a tree needs at least 2, or None to fill the window")
        self.prompts, self.num_children, self.structured = prompts, num_children, structured


class StreamingMode(Mode):
    """A mode that ends in one call: its deltas are the answer. Without passages there is none, and no call."""

    @abstractmethod
    async def last_prompt(self, task: Task, calls: LLMSession) -> str | None:
        """The prompt of the last call, after all calls before it; None where there is nothing to answer from."""

    async def synthesize(self, task: Task, calls: LLMSession) -> AsyncGenerator[str, None]:
        prompt = await self.last_prompt(task, calls)
        if prompt is None:
            yield UNKNOWN
            return
        async with aclosing(calls.stream(prompt)) as deltas:
            async for delta in deltas:
                yield delta


class Compact(StreamingMode):
    """Passages packed up to the window; the first pack is answered, each further one refines the answer.

    One call a pack. With `structured` each step says whether it satisfies the question; those that do not are
    skipped, and the answer is whole at once.
    """

    async def synthesize(self, task: Task, calls: LLMSession) -> AsyncGenerator[str, None]:
        if self.structured:
            yield await self._filtered(task, calls)
            return
        async with aclosing(super().synthesize(task, calls)) as deltas:
            async for delta in deltas:
                yield delta

    async def last_prompt(self, task: Task, calls: LLMSession) -> str | None:
        asked = PromptPacker(task, calls, self.prompts, "qa", "refine")
        prompt = None
        for context in self._contexts(asked, task):
            prompt = (
                asked.prompt("refine", context, await calls.complete(prompt)) if prompt else asked.prompt("qa", context)
            )
        return prompt

    async def _filtered(self, task: Task, calls: LLMSession) -> str:
        """The answer of the last step that satisfied the question."""
        asked = PromptPacker(task, calls, self.prompts, "qa", "refine", structured=True)
        answer = ""
        for context in self._contexts(asked, task):
            prompt = asked.prompt("refine" if answer else "qa", context, answer)
            step = parse(await calls.complete(prompt, schema=SCHEMA))
            answer = step.answer if step.satisfied else answer
        return answer or UNKNOWN

    def _contexts(self, asked: PromptPacker, task: Task) -> list[str]:
        return [passages(group) for group in asked.packs(asked.pieces(numbered(task)))]


class Refine(Compact):
    """The first passage is answered, each further one refines the answer: one call a passage, or part of one."""

    def _contexts(self, asked: PromptPacker, task: Task) -> list[str]:
        return [str(piece) for piece in asked.pieces(numbered(task))]


class ContextOnly(Compact):
    """As Compact, from the task's given context instead of its hits."""

    def _contexts(self, asked: PromptPacker, task: Task) -> list[str]:
        given = [Piece(n, clean_for_model(text)) for n, text in enumerate(task.context, 1)]
        return [passages(group) for group in asked.packs(asked.pieces(given))]


class TreeSummarize(StreamingMode):
    """Packs are answered, their answers combined, and again, to one root; the calls of a level run concurrently.

    With `num_children` n each passage (or part) has its own call and n answers at a time are combined: for p parts
    p + ⌈p/n⌉ + ⌈⌈p/n⌉/n⌉ + … + 1 calls, and one for one part. Without, answers are packed to the window, at least
    two a call. Answers too long for one call together are cut to one length.
    """

    async def last_prompt(self, task: Task, calls: LLMSession) -> str | None:
        asked = PromptPacker(task, calls, self.prompts, "qa", "tree")
        pieces = asked.pieces(numbered(task))
        groups = batches(pieces, 1) if self.num_children else asked.packs(pieces)
        prompts = [asked.prompt("qa", passages(group)) for group in groups]
        while len(prompts) > 1:
            async with aclosing(in_order(calls, prompts)) as replies:
                answers = [answer async for answer in replies]
            prompts = [asked.prompt("tree", asked.drafts(family)) for family in self._families(asked, answers)]
        return prompts[0] if prompts else None

    def _families(self, asked: PromptPacker, answers: Sequence[str]) -> list[list[str]]:
        return batches(answers, self.num_children) if self.num_children else pack(answers, asked.drafts_fit, least=2)


class SimpleSummarize(StreamingMode):
    """All passages in one call, the longest cut to one length so that each has its share."""

    async def last_prompt(self, task: Task, calls: LLMSession) -> str | None:
        asked = PromptPacker(task, calls, self.prompts, "qa")
        pieces = asked.truncated(numbered(task))
        return asked.prompt("qa", passages(pieces)) if pieces else None


class Generation(StreamingMode):
    """The question alone, without passages."""

    async def last_prompt(self, task: Task, calls: LLMSession) -> str | None:
        return PromptPacker(task, calls, self.prompts, "generation").prompt("generation")


class CompactAccumulate(Mode):
    """Each pack is answered by itself, concurrently; the answers come one after the other, numbered."""

    async def synthesize(self, task: Task, calls: LLMSession) -> AsyncGenerator[str, None]:
        asked = PromptPacker(task, calls, self.prompts, "qa")
        prompts = [asked.prompt("qa", context) for context in self._contexts(asked, task)]
        if not prompts:
            yield UNKNOWN
        n = 0
        async with aclosing(in_order(calls, prompts)) as answers:
            async for answer in answers:
                n += 1
                yield f"{SEPARATOR if n > 1 else ''}Answer {n}:\n{answer}"

    def _contexts(self, asked: PromptPacker, task: Task) -> list[str]:
        return [passages(group) for group in asked.packs(asked.pieces(numbered(task)))]


class Accumulate(CompactAccumulate):
    """Each passage, or part of one, is answered by itself, concurrently."""

    def _contexts(self, asked: PromptPacker, task: Task) -> list[str]:
        return [str(piece) for piece in asked.pieces(numbered(task))]


MODES: Mapping[str, type[Mode]] = {
    "refine": Refine,
    "compact": Compact,
    "tree_summarize": TreeSummarize,
    "simple_summarize": SimpleSummarize,
    "accumulate": Accumulate,
    "compact_accumulate": CompactAccumulate,
    "generation": Generation,
    "context_only": ContextOnly,
}


def synthesizer(
    mode: str = "compact", *, prompts: Prompts = DEFAULT, num_children: int | None = None, structured: bool = False
) -> Synthesizer:
    """The synthesizer of a mode. Raises UnknownMode, and ValueError for fewer than two `num_children`."""
    if mode not in MODES:
        raise UnknownMode(mode, MODES)
    return MODES[mode](prompts, num_children=num_children, structured=structured)


def numbered(task: Task) -> list[Piece]:
    """The task's passages as a model is shown them."""
    return [Piece.of(n, hit) for n, hit in enumerate(task.hits, 1)]


async def in_order(calls: LLMSession, prompts: Sequence[str]) -> AsyncGenerator[str, None]:
    """The answers to `prompts`, asked concurrently, in their order, each as soon as it and those before it are there.

    One failure, or the end of who listens, cancels what is left.
    """
    tasks = [asyncio.ensure_future(calls.complete(prompt)) for prompt in prompts]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
