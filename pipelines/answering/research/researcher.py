"""Lets a model search again before it answers, in rounds, with tools that search the index.

The tools reach only the question's collection, through its filters. Their results become the hits of the answer, which
is written and checked like any other. This module knows nothing about HTTP.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pipelines.answering.conversation.reader import Reading
from pipelines.answering.hit_finder import HitFinder
from pipelines.answering.hits import heading
from pipelines.answering.research.gathered import Gathered
from pipelines.answering.retrieval.neighbours import EXTRA
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.synthesis.base import Task
from pipelines.answering.synthesis.packing import PromptPacker, in_turn
from pipelines.answering.synthesis.prompts import as_data
from pipelines.answering.trace import Trace
from pipelines.answering.writing.agents import ResearchAgent
from pipelines.llm.errors import LLMFailed
from pipelines.llm.session import OPENING, SEARCHING, LLMSession, Status
from pipelines.llm.tool_calls import Tool
from pipelines.llm.window import WindowTooSmall
from pipelines.records import Message, ToolCall
from pipelines.text.cleaning import clean_for_model
from pipelines.text.parsing import parse_json
from pipelines.text.phrases import read_table

STEP = "research"  # the name of the step, also in `degraded` if it failed
FOUND = 6  # sections per search; an estimate, like the limits below
MOST_TOKENS, LEAST_TOKENS = 4_000, 200  # per result of a call; with less room than LEAST_TOKENS, no tool is called
MOST_CALLS = 5  # at once
MOST_MISTAKES = 4  # invalid calls; a model that makes more won't learn
LONGEST_QUERY, LONGEST_URL = 400, 2_000  # characters
LONGEST_ABOUT = 120  # characters of a query or title in a Status
SHORT_REPLY = 200  # characters; bare numbers in a reply up to this length are section numbers

TOOLS: Sequence[Tool] = [
    {"type": "function", "function": {"name": name, **described}}
    for name, described in read_table("pipelines.answering.research.tools").items()
]

log = logging.getLogger(__name__)


class BadCall(ValueError):
    """An invalid call; the message tells the model what to do instead."""


class Researcher:
    """Searches again with `finder`, in at most `rounds` rounds and `seconds`."""

    def __init__(self, finder: HitFinder, rounds: int, seconds: float) -> None:
        self._finder, self._rounds, self._seconds = finder, rounds, seconds

    async def research(
        self,
        reading: Reading,
        retrieval: Retrieval,
        task: Task,
        agent: ResearchAgent,
        trace: Trace,
        tell: Callable[[Status], None],
    ) -> Retrieval | None:
        """Return `retrieval` with the hits of the agent's model, in the order in which the answer should use them.

        The result is None if the rounds failed before they found anything; then `degraded` has STEP. Raises
        TemplateError.
        """
        session = agent.open(task, tell)
        found = [hit for hit in retrieval.hits if hit.score_kind != EXTRA]
        rounds = Rounds(self._finder, reading, session, Gathered(found, session.llm.count), trace, tell)
        try:
            with trace.step(STEP):
                async with asyncio.timeout(self._seconds):
                    await rounds.run(task, agent, self._rounds)
        except (LLMFailed, TimeoutError, WindowTooSmall) as error:
            log.warning("answering without further research: %s: %s", type(error).__name__, error)
            trace.mark_degraded(STEP)
            if not rounds.looked:
                return None
        finally:
            trace.add_usage(session.usage, session.exchanges)
        extra = [hit for hit in retrieval.hits if hit.score_kind == EXTRA and not rounds.gathered.number_of(hit)]
        hits = (*rounds.gathered.ordered(rounds.chosen), *extra)
        return replace(retrieval, hits=hits, queries=(*retrieval.queries, *rounds.searched))


@dataclass(slots=True)
class Rounds:
    """The rounds of one question; `searched` has its queries, `chosen` the sections that the model names at the end."""

    finder: HitFinder
    reading: Reading
    session: LLMSession
    gathered: Gathered
    trace: Trace
    tell: Callable[[Status], None]
    searched: dict[str, None] = field(default_factory=dict)
    chosen: tuple[int, ...] = ()
    mistakes: int = 0

    @property
    def looked(self) -> bool:
        """Whether any search was made besides the one for the question itself."""
        return len(self.gathered.lists) > 1

    async def run(self, task: Task, agent: ResearchAgent, most: int) -> None:
        """Let the model call tools in up to `most` rounds, then name sections. Raises LLMFailed and WindowTooSmall."""
        prompt, said = await in_turn(partial(self._first_prompt, task, agent)), list[Message]()
        for left in range(most, -1, -1):
            room = await in_turn(partial(self._room, prompt, said)) // max(left, 1)
            may_call = left > 0 and room >= LEAST_TOKENS and self.mistakes <= MOST_MISTAKES
            reply = await self.session.call(prompt, said, TOOLS, may_call=may_call)
            if not (reply.calls and may_call):
                self.chosen = numbers_in(reply.text)
                return
            calls = reply.calls[:MOST_CALLS]
            results = await self._carry_out(calls, room)
            self.session.passages = self.gathered.seen
            said += [Message("assistant", reply.text, calls), *results]

    def _first_prompt(self, task: Task, agent: ResearchAgent) -> str:
        """Return the prompt with the sections that were found for the question itself."""
        packer = PromptPacker(task, self.session, agent.prompts_of(task), "research")
        pieces = packer.first(self.gathered.first(), least=1)
        self.gathered.mark_shown([piece.n for piece in pieces])
        return packer.prompt("research", packer.context(packer.pieces(pieces)))

    def _room(self, prompt: str, said: Sequence[Message]) -> int:
        """Return the number of tokens left for the results of all further calls."""
        llm = self.session.llm
        used = llm.count(prompt) + sum(llm.count(message.said) for message in said if message.said)
        return self.session.window - llm.max_tokens - self.session.overhead() - used

    async def _carry_out(self, calls: Sequence[ToolCall], room: int) -> list[Message]:
        """Return the results of the calls, in at most `room` tokens together.

        One call follows another, so that the same calls number the sections alike, and a short result leaves room.
        """
        results = list[Message]()
        for left, call in zip(range(len(calls), 0, -1), calls, strict=True):
            text = await self._result(call, min(room // left, MOST_TOKENS))
            room -= await in_turn(partial(self.session.llm.count, text))
            results.append(Message("tool", text, call_id=call.id))
        return results

    async def _result(self, call: ToolCall, room: int) -> str:
        """Return the result of a call, or its error, as text for the model."""
        tools: Mapping[str, Callable[[Mapping[str, Any], int], Awaitable[str]]]
        tools = {"search": self._search, "read_page": self._read_page}
        try:
            if call.name not in tools:
                raise BadCall(f"there is no tool {call.name[:60]!r}; the tools are {', '.join(tools)}")
            return await tools[call.name](_arguments(call), room)
        except BadCall as error:
            self.mistakes += 1
            return as_data(clean_for_model(f"Error: {error}"))
        except Exception as error:
            self.mistakes += 1
            log.warning("%s failed: %s: %s", call.name, type(error).__name__, error)
            return "Error: the documentation can't be searched now; name the sections to answer from"

    async def _search(self, arguments: Mapping[str, Any], room: int) -> str:
        query = " ".join(clean_for_model(_only(arguments, "query")).split())[:LONGEST_QUERY]
        if query in self.searched:
            raise BadCall("this was searched for before; search in other words, or name the sections to answer from")
        self.searched[query] = None
        self._tell(SEARCHING, query)
        found = await self.finder.find_more(query, self.reading, FOUND, self.trace)
        shown = await in_turn(lambda: self.gathered.show(self.gathered.add(found), room))
        return shown or "Nothing was found: search in other words."

    async def _read_page(self, arguments: Mapping[str, Any], room: int) -> str:
        page = _only(arguments, "page").strip().strip("[]<>")
        start = int(page) if page.isdecimal() and len(page) < 6 else 0
        if start and start > len(self.gathered):
            raise BadCall(f"there is no section [{start}]; the sections have the numbers 1 to {len(self.gathered)}")
        url = self.gathered[start].url if start else page[:LONGEST_URL]
        sections = await self.finder.read_page(url, self.reading)
        if not sections:
            raise BadCall(f"{url} is not a page of this documentation: `search` for its words")
        numbers = self.gathered.add(sections)
        start = start if start in numbers else self._anchored(numbers, url)
        self._tell(OPENING, heading(self.gathered[start]))
        return await in_turn(partial(self.gathered.show_page, numbers, start, room))

    def _anchored(self, numbers: Sequence[int], url: str) -> int:
        """Return the section of a page that the anchor of a URL names, otherwise the first."""
        anchor = url.partition("#")[2]
        return next((n for n in numbers if anchor and anchor in self.gathered[n].anchors), numbers[0])

    def _tell(self, stage: str, about: str) -> None:
        """Send a Status about a query or page, on one line and cleaned, because a model or a page wrote its words."""
        line = " ".join(clean_for_model(about).split())
        self.tell(Status(stage, about=line if len(line) <= LONGEST_ABOUT else f"{line[: LONGEST_ABOUT - 1]}…"))


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a call. Raises BadCall."""
    try:
        arguments = parse_json(call.arguments or "{}")
    except ValueError as error:
        raise BadCall(
            f"the arguments are not JSON ({error}): write one object, such as {_EXAMPLES[call.name]}"
        ) from None
    if not isinstance(arguments, dict):
        raise BadCall(f"the arguments must be one object, such as {_EXAMPLES[call.name]}")
    return arguments


_EXAMPLES = {"search": '{"query": "…"}', "read_page": '{"page": "3"}'}


def _only(arguments: Mapping[str, Any], name: str) -> str:
    """Return the argument `name`, which must be the only one. Raises BadCall."""
    if others := sorted(set(arguments) - {name}):
        raise BadCall(f"there is no argument {', '.join(map(repr, others))[:200]}; the only one is {name!r}")
    value = arguments.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise BadCall(f"{name!r} must be a text that is not empty")
    return value


def numbers_in(reply: str) -> tuple[int, ...]:
    """Return the section numbers in a reply: bracketed ones, or the bare ones of a short reply."""
    named = re.findall(r"\[(\d{1,4})\]", reply)
    if not named and len(reply) <= SHORT_REPLY:
        named = re.findall(r"(?<![\w.])\d{1,4}(?!\.?\w)", reply)
    return tuple(dict.fromkeys(map(int, named)))
