"""Rewrites questions before the search: further queries, an imagined passage, a standalone question.

Knows questions, turns and a language model that may fail, be late, refuse or babble, not what is searched. The
question itself is always searched for, whatever the model does.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.answering.trace import Trace
from pipelines.llm.errors import LLMFailed
from pipelines.llm.replies import item_key, read_items, read_prose
from pipelines.llm.session import ChatModel, LLMSession
from pipelines.llm.window import shorten
from pipelines.records import FINISHED, Exchange, Message, Usage
from pipelines.text.cleaning import clean_for_model
from pipelines.text.phrases import read_phrases, read_table

log = logging.getLogger(__name__)

_PHRASES, _PROMPTS = read_phrases(__name__), read_table(__name__)["prompts"]

# Each costs a call of a model before the search; docs/experiments.md has what it gains.
NUM_QUERIES = 0
HYDE = False  # moves the right page up: benchmarks/results/language-model-in-retrieval.md
TIMEOUT_S = 5.0
LONGEST_QUERY = 300  # characters; a longer line is an answer or an explanation, not a query
# Of the model, so that one that babbles is cut off early: a query, and the passage, which is 60 words of prose.
LIKELY = 0.5  # of the most tokens that a reply may have, is what it has
QUERY_TOKENS, PASSAGE_TOKENS = 30, 90
SHORTEST_PASSAGE = 20  # characters; less is a title or a remark
# Tokens of the conversation and of one turn of it that a follow-up is read with: what "it" stands for is mostly in the
# questions and at the beginnings of answers, and a small model reads 60 tokens a second.
HISTORY_TOKENS, TURN_TOKENS = 400, 80


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The question to search for, and the cost of writing it.

    `further` are other queries for it. `passage` could stand in the documentation and answer the question, "" for none.
    `failed`: there was a model, but it gave nothing usable, and the question is as it was.
    """

    question: str
    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()
    failed: bool = False
    passage: str = ""
    further: tuple[str, ...] = ()

    def record(self, trace: Trace) -> None:
        """Record its cost, and that a part is missing."""
        trace.add_usage(self.usage, self.exchanges)
        if self.failed:
            trace.mark_degraded("rewrite")


class Rewriter:
    """Rewrites with `llm`; if there is none, or it fails or exceeds `timeout_s`, the question stays as it is.

    A model that is known to be too slow for that is not asked. It writes `num_queries` further queries: searching for
    several queries of a question and fusing what they find is RAG-Fusion (Rackauckas 2024). With `hyde` it writes a
    passage that could answer, whose vector is searched for with the question's: hypothetical document embeddings (Gao,
    Ma, Lin, Callan: "Precise Zero-Shot Dense Retrieval without Relevance Labels", 2022). Never raises.
    """

    def __init__(
        self, llm: ChatModel | None, *, num_queries: int = NUM_QUERIES, hyde: bool = HYDE, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.llm, self.num_queries, self.hyde, self.timeout_s = llm, num_queries, hyde, timeout_s

    async def rewrite(self, question: str) -> Rewrite:
        """Return `question` with `num_queries` further queries and, with `hyde`, a passage; each is one call."""
        if self.llm is None or not clean_for_model(question).strip():
            return Rewrite(question)
        calls = [self._diversify(self.llm, question)] if self.num_queries else []
        calls += [self._imagine(self.llm, question)] if self.hyde else []
        written = await asyncio.gather(*calls)
        return Rewrite(
            question,
            sum((one.usage for one in written), Usage()),
            tuple(exchange for one in written for exchange in one.exchanges),
            any(one.failed for one in written),
            next((one.passage for one in written if one.passage), ""),
            next((one.further for one in written if one.further), ()),
        )

    async def _diversify(self, llm: ChatModel, question: str) -> Rewrite:
        """Return `question` with further queries."""
        session, most = LLMSession(llm, system=_PROMPTS["condense_system"]), self.num_queries * QUERY_TOKENS
        shown = _shorten(llm, clean_for_model(question), _room(llm, session, _PROMPTS["diversify"], most))
        prompt = _PROMPTS["diversify"].format(count=self.num_queries, question=shown) if shown else ""
        text = await self._ask(session, prompt, most)
        further = parse_queries(text, question, self.num_queries)
        return replace(_rewrite(question, session, failed=not read_items(text)), further=further)

    async def _imagine(self, llm: ChatModel, question: str) -> Rewrite:
        """Return `question` with a passage that could answer it."""
        session = LLMSession(llm, system=_PROMPTS["imagine_system"])
        room = _room(llm, session, _PROMPTS["imagine"], PASSAGE_TOKENS)
        shown = _shorten(llm, clean_for_model(question), room)
        prompt = _PROMPTS["imagine"].format(question=shown) if shown else ""
        passage = parse_passage(await self._ask(session, prompt, PASSAGE_TOKENS), question)
        return _rewrite(question, session, failed=not passage, passage=passage)

    async def condense(self, question: str, history: Sequence[Message]) -> Rewrite:
        """Return `question` as it is understood without `history`, the turns before it, oldest first.

        The first question of a conversation stays as it is, without a call. So does a question for which the model
        gives anything but one line of sensible length.
        """
        if self.llm is None or not _turns(history) or not clean_for_model(question).strip():
            return Rewrite(question)
        session = LLMSession(self.llm, system=_PROMPTS["condense_system"])
        most = 2 * QUERY_TOKENS + self.llm.count(question)
        room = _room(self.llm, session, _PROMPTS["condense"], most)
        shown = _shorten(self.llm, clean_for_model(question), room // 2)
        before = _transcript(self.llm, history, min(HISTORY_TOKENS, room - self.llm.count(shown)))
        prompt = _PROMPTS["condense"].format(history=before, question=shown) if before and shown else ""
        text = await self._ask(session, prompt, most)
        cut = any(exchange.finish_reason != FINISHED for exchange in session.exchanges)
        standalone = "" if cut or _is_copied(text, before + shown) else parse_standalone(text, question)
        return _rewrite(standalone or question, session, failed=not standalone)

    async def _ask(self, session: LLMSession, prompt: str, most: int) -> str:
        """Return the model's reply, "" if it fails; an empty `prompt` means that its window was too small for one."""
        if not prompt:
            log.warning(
                "a question has no room in the window of %s (%d tokens)", session.llm.model, session.llm.context_window
            )
            return ""
        if (needed := session.seconds_for(prompt, int(most * LIKELY))) > self.timeout_s:
            log.info("%s is not asked to rewrite: it would take %.0f s", session.llm.model, needed)
            return ""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await session.complete(prompt, max_tokens=min(most, session.llm.max_tokens))
        except TimeoutError:
            log.warning("%s rewrote nothing within %g s", session.llm.model, self.timeout_s)
        except LLMFailed as error:
            log.warning("%s rewrote nothing: %s", session.llm.model, error)
        except Exception:  # a custom model may raise anything, and must not fail the question
            log.exception("%s rewrote nothing", session.llm.model)
        return ""


def _rewrite(question: str, session: LLMSession, *, failed: bool, passage: str = "") -> Rewrite:
    return Rewrite(question, session.usage, tuple(session.exchanges), failed, passage)


# ---------------------------------------------------------------------------------------------- prompts


def _room(llm: ChatModel, session: LLMSession, prompt: str, answer: int) -> int:
    """Return the tokens left in the window for the values of `prompt`."""
    return llm.context_window - session.overhead() - llm.count(prompt) - min(answer, llm.max_tokens)


def _shorten(llm: ChatModel, text: str, room: int) -> str:
    return shorten(text, lambda part: llm.count(part) <= room)


def _transcript(llm: ChatModel, history: Sequence[Message], room: int) -> str:
    """Return the newest turns that fit into `room` tokens together, oldest first; a long turn loses its middle."""
    turns: list[str] = []
    for turn in reversed(_turns(history)):
        speaker = "Reader" if turn.role == "user" else "Assistant"
        line = f"{speaker}: {_shorten(llm, clean_for_model(turn.content), min(TURN_TOKENS, room // 4))}"
        if llm.count("\n".join([line, *turns])) > room:
            break
        turns.insert(0, line)
    return "\n".join(turns)


def _turns(history: Sequence[Message]) -> list[Message]:
    """Return the turns of reader and assistant."""
    return [turn for turn in history if turn.role != "system" and turn.content.strip()]


# ---------------------------------------------------------------------------------------------- replies


def parse_passage(text: str, question: str) -> str:
    """Return the prose that a model wrote as a passage, without remarks about it; "" for none and for a refusal."""
    passage = read_prose(_PHRASES["label"].sub("", text.strip(), count=1))
    return passage if len(passage) >= SHORTEST_PASSAGE and not _is_copied(passage, question) else ""


def parse_queries(text: str, question: str, most: int) -> tuple[str, ...]:
    """Return the queries that a model wrote: each once, `most` of them, not `question` and none too long."""
    others = [item for item in read_items(text) if item_key(item) != item_key(question)]
    return tuple(item for item in others if len(item) <= LONGEST_QUERY and not _is_copied(item, question))[:most]


def parse_standalone(text: str, question: str) -> str:
    """Return the one question that a model wrote; "" for none, several lines, a refusal or an essay."""
    queries = read_items(_PHRASES["label"].sub("", text.strip(), count=1))
    longest = max(LONGEST_QUERY, 2 * len(question))
    return queries[0] if len(queries) == 1 and len(queries[0]) <= longest else ""


def _is_copied(reply: str, asked: str) -> bool:
    """Return whether `reply` has words of the prompts' examples that were not `asked` about."""
    return bool(_PHRASES["copied"].search(reply)) and not _PHRASES["copied"].search(asked)
