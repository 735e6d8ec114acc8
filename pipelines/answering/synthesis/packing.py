"""Renders the prompts of a question, and cuts and packs its passages to fit them.

This module works with prompts and context windows; it sends nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from pipelines.answering.retrieval.neighbours import EXTRA
from pipelines.answering.synthesis.base import Task
from pipelines.answering.synthesis.prompts import Piece, Prompts, as_data, drafts, neutralize, passages
from pipelines.llm.session import LLMSession
from pipelines.llm.window import Window, greatest, pack, shorten, split, squeeze
from pipelines.records import FULL, Hit
from pipelines.text.cleaning import clean_for_model
from pipelines.text.languages import say

# The share of the context window for passages, unless the settings have one. Whole sections (the form `full`) may fill
# as much as in the graded answers (benchmarks/results/readers-own-words.md). The rest of the prompt and the answer keep
# their room, so passages get less of a small window.
SHARE, FULL_SHARE = 0.5, 0.75
# A question may take this share of a prompt; a longer one is cut in the middle. Questions of 10,000 words exist.
QUESTION_SHARE = 0.25
# Tokens of passages that even the slowest model gets: five titles with a sentence or two each.
FEWEST_TOKENS = 400
# A passage includes its title if this much text fits as well; otherwise only its number.
ROOMY = "word " * 40
# The tokens of joined passages may differ from the sum of their tokens by this share of it, and by this number for each
# passage. Only where that decides, the joined text is counted: counting 24,000 tokens takes 5 ms.
DIFFER, DIFFER_EACH = 0.01, 8

_PACKING = ThreadPoolExecutor(1, "packing")

T = TypeVar("T")


class PromptPacker:
    """Makes the prompts of one question; `names` are its mode's prompts, and passages are packed to fit each of them.

    A draft in `refine` may be as long as an answer. With `structured`, each prompt ends with the prompt "structured".
    Raises TemplateError for reserved or unknown variables, and WindowTooSmall.
    """

    def __init__(
        self, task: Task, session: LLMSession, prompts: Prompts, *names: str, structured: bool = False
    ) -> None:
        prompts.check(task.variables)
        self._session, llm = session, session.llm
        count = lru_cache(32)(llm.count)  # packing and sending count the same texts
        self._weigh = lru_cache(256)(lambda piece: llm.count(piece.shown))
        self._adds_up, self._compared = True, 0  # whether tokens of passages add up, as known for this many tokens
        share = llm.context_share or (FULL_SHARE if task.form == FULL else SHARE)
        self.window = Window.of(session.window, share, llm.max_tokens, session.overhead(), count)
        self._prompts, self._names, self._structured = prompts, names, structured
        self._refusal = refusal(task)
        self._variables = {name: clean_for_model(value) for name, value in task.variables.items()}
        most = int(self.window.prompt * QUESTION_SHARE)
        question = as_data(clean_for_model(task.question))
        self._question = shorten(question, lambda text: self.window.count(text) <= most)
        room = session.room(self._render(names[0], "", ""))
        self._room = self.window.context if room is None else max(room, FEWEST_TOKENS)
        self._most = min(
            self.window.context, *(self.window.prompt - self._tokens_needed(name, "") for name in self._names)
        )

    def prompt(self, name: str, context: str = "", answer: str = "") -> str:
        """Return the prompt `name`; a draft that is too long is cut at the end. Raises WindowTooSmall."""
        [answer] = squeeze([answer], lambda cut: self._size(name, context, cut[0]) <= self.window.prompt)
        prompt = self._render(name, context, answer)
        if self.window.count(prompt) > self.window.prompt:
            raise self.window.too_small(self._size(name))
        return prompt

    def context(self, pieces: Sequence[Piece]) -> str:
        """Return the passages as one text."""
        return passages(pieces)

    def is_read_in_time(self, pieces: Sequence[Piece]) -> bool:
        """Return whether the model reads these passages within its `context_seconds`."""
        if self._room >= self.window.context:
            return True
        known = self._is_within(pieces, self._room)
        return self.window.count(self.context(pieces)) <= self._room if known is None else known

    def pieces(self, given: Sequence[Piece]) -> list[Piece]:
        """Return the passages, without blank ones, in parts that each fit into a call. Raises WindowTooSmall."""
        filled = self._filled(given)
        return filled if self._fit(filled) else [part for piece in filled for part in self._parts(piece)]

    def fill(self, hits: Sequence[Hit]) -> list[Piece]:
        """Return the first hits as passages, as many as fit into one call and are read in time, but at least one.

        First come the found chunks of all hits, then their whole passages, best hits first, then the extra sections.
        """
        numbered = list(enumerate(hits, 1))
        found = [(n, hit) for n, hit in numbered if hit.score_kind != EXTRA]
        extra = [Piece.of(n, hit) for n, hit in numbered if hit.score_kind == EXTRA]
        pieces = self.first([Piece.of(n, hit, hit.text) for n, hit in found], least=1)
        for place, (n, hit) in enumerate(found[: len(pieces)]):
            wider = [*pieces[:place], Piece.of(n, hit), *pieces[place + 1 :]]
            pieces = wider if self._fits_in_time(wider) else pieces
        return self.first(extra, before=pieces)

    def first(self, more: Sequence[Piece], least: int = 0, before: Sequence[Piece] = ()) -> list[Piece]:
        """Return `before` and as many of the first of `more` as fit, but at least `least`."""
        pieces = before
        most = greatest(len(more), lambda n: self._fits_in_time([*pieces, *more[:n]]))
        return [*pieces, *more[: max(most, least)]]

    def _fits_in_time(self, pieces: Sequence[Piece]) -> bool:
        return self._fit(pieces) and self.is_read_in_time(pieces)

    def packs(self, pieces: Sequence[Piece]) -> list[list[Piece]]:
        """Pack parts in order, as many per call as fit."""
        return pack(pieces, self._fit)

    def truncate(self, given: Sequence[Piece]) -> list[Piece]:
        """Return all passages for one call, the longest cut to a common length.

        If not even one character of each fits, return as many of the first ones as fit. Raises WindowTooSmall.
        """
        pieces = self._filled(given)

        def cut(texts: Sequence[str]) -> list[Piece]:
            return [replace(piece, text=text) for piece, text in zip(pieces, texts, strict=True)]

        shared = cut(squeeze([piece.text for piece in pieces], lambda texts: self._fit(cut(texts))))
        if pieces and not any(piece.text for piece in shared):
            return self.packs(self.pieces(pieces))[0]
        return shared

    def drafts(self, answers: Sequence[str]) -> str:
        """Return answers for one `tree` call, the longest cut to a common length if they do not fit together."""
        return drafts(squeeze(answers, self.drafts_fit))

    def drafts_fit(self, answers: Sequence[str]) -> bool:
        """Return whether these answers fit into one `tree` call."""
        return self._fits(drafts(answers), "tree")

    def _filled(self, given: Sequence[Piece]) -> list[Piece]:
        """Return the passages that have text, and record their number in the session."""
        filled = [piece for piece in given if piece.text.strip()]
        self._session.passages = len(filled)
        return filled

    def _parts(self, piece: Piece) -> list[Piece]:
        if self._fit([piece]):
            return [piece]
        shown = piece if self._fit([replace(piece, text=ROOMY)]) else Piece(piece.n, piece.text)
        texts = split(shown.text, lambda text: self._fit([replace(shown, text=text)]), self.window.count)
        if not texts:
            raise self.window.too_small(
                max(self._tokens_needed(name, self.context([Piece(piece.n, "")])) for name in self._names)
            )
        return [replace(shown, text=text) for text in texts]

    def _fit(self, pieces: Sequence[Piece]) -> bool:
        known = self._is_within(pieces, self._most)
        return self._fits(self.context(pieces), *self._names) if known is None else known

    def _is_within(self, pieces: Sequence[Piece], most: int) -> bool | None:
        """Return whether passages have at most `most` tokens, or None if only counting them together tells.

        Whether their tokens add up is checked again each time that their number has doubled.
        """
        tokens = sum(map(self._weigh, pieces))
        unsure = DIFFER * tokens + DIFFER_EACH * (len(pieces) + 1)
        if self._adds_up and len(pieces) > 1 and 2 * self._compared <= tokens < most - unsure:
            self._compared = tokens
            self._adds_up = abs(self.window.count(self.context(pieces)) - tokens) <= unsure / 2
        return tokens < most if self._adds_up and abs(tokens - most) > unsure else None

    def _fits(self, context: str, *names: str) -> bool:
        return self.window.count(context) <= self.window.context and all(
            self._tokens_needed(name, context) <= self.window.prompt for name in names
        )

    def _tokens_needed(self, name: str, context: str) -> int:
        """Return the number of tokens of a prompt with this context, including the longest draft if it has one."""
        return self._size(name, context) + (self.window.answer if name == "refine" else 0)

    def _size(self, name: str, context: str = "", answer: str = "") -> int:
        return self.window.count(self._render(name, context, answer))

    def _render(self, name: str, context: str, answer: str) -> str:
        given = {"question": self._question, "context": context, "answers": context, "answer": neutralize(answer)}
        prompt = self._prompts.render(name, {**given, **self._refusal}, self._variables)
        if not self._structured:
            return prompt
        return f"{prompt}\n\n{self._prompts.render('structured', self._refusal, self._variables)}"


def refusal(task: Task) -> dict[str, str]:
    """Return the values that every prompt of a task gets: the sentence for "I do not know" in the reader's language."""
    return {"unknown": say("unknown", task.language)}


async def in_turn(work: Callable[[], T]) -> T:
    """Run `work` in the thread that packs prompts, so that the event loop stays free.

    All questions share one thread: with many threads at work, the event loop would wait for each of them.
    """
    return await asyncio.get_running_loop().run_in_executor(_PACKING, copy_context().run, work)
