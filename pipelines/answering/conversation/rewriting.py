"""Rewrites questions before the search: more queries, a hypothetical passage, a standalone question.

This module works with questions, turns and a language model, but without the index. The model may fail, time out,
refuse or ramble; the question itself is always searched.
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

# Each costs a model call before the search; benchmarks/results/parts-off-by-default.md has the gains.
NUM_QUERIES = 0
HYDE = False  # ranks the right page higher: benchmarks/results/language-model-in-retrieval.md
TIMEOUT_S = 5.0
LONGEST_QUERY = 300  # characters; a longer line is an answer or an explanation, not a query
# Limits for the model's output, so that a rambling reply is cut off early: a query, and a passage of 60 words of prose.
LIKELY = 0.5  # the expected length of a reply, as a share of its most tokens
QUERY_TOKENS, PASSAGE_TOKENS = 30, 90
SHORTEST_PASSAGE = 20  # characters; a shorter one is a title or a remark
# The most tokens of the conversation, and of one turn, in the prompt of a follow-up. The referent of "it" is mostly in
# the questions and at the start of the answers, and a small model reads 60 tokens a second.
HISTORY_TOKENS, TURN_TOKENS = 400, 80


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The question to search for, and the cost of rewriting it.

    `further` has additional queries. `passage` is a hypothetical passage of the documentation that answers the
    question, or "". `failed` means that there was a model but its reply was unusable; the question is then unchanged.
    """

    question: str
    usage: Usage = Usage()
    exchanges: tuple[Exchange, ...] = ()
    failed: bool = False
    passage: str = ""
    further: tuple[str, ...] = ()

    def record(self, trace: Trace) -> None:
        """Add the cost to the trace, and mark a failure there."""
        trace.add_usage(self.usage, self.exchanges)
        if self.failed:
            trace.mark_degraded("rewrite")


class Rewriter:
    """Rewrites with `llm`; if there is none, or it fails or exceeds `timeout_s`, the question stays unchanged.

    A model known to be too slow for `timeout_s` isn't called. The model writes `num_queries` further queries: searching
    several queries and fusing their hits is RAG-Fusion (Rackauckas 2024). With `hyde`, it writes a passage that could
    answer the question, and that passage's vector is searched too: hypothetical document embeddings (Gao, Ma, Lin,
    Callan: "Precise Zero-Shot Dense Retrieval without Relevance Labels", 2022). Never raises.
    """

    def __init__(
        self, llm: ChatModel | None, *, num_queries: int = NUM_QUERIES, hyde: bool = HYDE, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.llm, self.num_queries, self.hyde, self.timeout_s = llm, num_queries, hyde, timeout_s

    async def rewrite(self, question: str) -> Rewrite:
        """Return `question` with `num_queries` further queries and, with `hyde`, a passage; each takes one call."""
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
        """Return `question` with a hypothetical passage that answers it."""
        session = LLMSession(llm, system=_PROMPTS["imagine_system"])
        room = _room(llm, session, _PROMPTS["imagine"], PASSAGE_TOKENS)
        shown = _shorten(llm, clean_for_model(question), room)
        prompt = _PROMPTS["imagine"].format(question=shown) if shown else ""
        passage = parse_passage(await self._ask(session, prompt, PASSAGE_TOKENS), question)
        return _rewrite(question, session, failed=not passage, passage=passage)

    async def condense(self, question: str, history: Sequence[Message]) -> Rewrite:
        """Return `question` rewritten to make sense without `history`, the previous turns, oldest first.

        The first question of a conversation stays unchanged, without a call. The question also stays unchanged if the
        model's reply is anything but one line of reasonable length.
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
        """Return the model's reply, "" if it fails; an empty `prompt` means that its context window was too small."""
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
    """Return the number of tokens left in the context window for the values of `prompt`."""
    return llm.context_window - session.overhead() - llm.count(prompt) - min(answer, llm.max_tokens)


def _shorten(llm: ChatModel, text: str, room: int) -> str:
    return shorten(text, lambda part: llm.count(part) <= room)


def _transcript(llm: ChatModel, history: Sequence[Message], room: int) -> str:
    """Return the newest turns that fit into `room` tokens together, oldest first; long turns are cut in the middle."""
    turns: list[str] = []
    for turn in reversed(_turns(history)):
        speaker = "Reader" if turn.role == "user" else "Assistant"
        line = f"{speaker}: {_shorten(llm, clean_for_model(turn.content), min(TURN_TOKENS, room // 4))}"
        if llm.count("\n".join([line, *turns])) > room:
            break
        turns.insert(0, line)
    return "\n".join(turns)


def _turns(history: Sequence[Message]) -> list[Message]:
    """Return the turns of the reader and the assistant."""
    return [turn for turn in history if turn.role != "system" and turn.content.strip()]


# ---------------------------------------------------------------------------------------------- replies


def parse_passage(text: str, question: str) -> str:
    """Return the prose passage in a model's reply, without remarks; "" if there is none, or for a refusal."""
    passage = read_prose(_PHRASES["label"].sub("", text.strip(), count=1))
    return passage if len(passage) >= SHORTEST_PASSAGE and not _is_copied(passage, question) else ""


def parse_queries(text: str, question: str, most: int) -> tuple[str, ...]:
    """Return at most `most` queries from a model's reply: no duplicates, not `question` itself, none too long."""
    others = [item for item in read_items(text) if item_key(item) != item_key(question)]
    return tuple(item for item in others if len(item) <= LONGEST_QUERY and not _is_copied(item, question))[:most]


def parse_standalone(text: str, question: str) -> str:
    """Return the only question in a model's reply; "" for none, several lines, a refusal or an essay."""
    queries = read_items(_PHRASES["label"].sub("", text.strip(), count=1))
    longest = max(LONGEST_QUERY, 2 * len(question))
    return queries[0] if len(queries) == 1 and len(queries[0]) <= longest else ""


def _is_copied(reply: str, asked: str) -> bool:
    """Return whether `reply` has words from the prompts' examples that do not occur in `asked`."""
    return bool(_PHRASES["copied"].search(reply)) and not _PHRASES["copied"].search(asked)
