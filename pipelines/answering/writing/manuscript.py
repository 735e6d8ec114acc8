"""Tracks the text of one answer while it is written: what was sent, by which agent, and how it ended."""

import logging
import uuid
from collections.abc import Mapping, Sequence

from pipelines.answering.events import Delta, Send
from pipelines.answering.grounding.answerable import likelihood
from pipelines.answering.grounding.confidence import rate_confidence
from pipelines.answering.grounding.support import SUPPORTED, Support
from pipelines.answering.question import Question
from pipelines.answering.trace import Trace
from pipelines.answering.writing.agents import AgentResult
from pipelines.answering.writing.citations import (
    CheckedStatement,
    cite_closest,
    cite_quotes,
    count_claims,
    count_quotes,
    first_support,
    make_citations,
)
from pipelines.answering.writing.draft import Draft
from pipelines.records import ANSWER, FINISHED, HIGH, RESULTS, Answer, AnswerForm, Citation, Claims, Hit, Route

log = logging.getLogger(__name__)

# In `degraded` if a call of the language model was cut off.
TRUNCATED = "truncated"


class Manuscript:
    """The text of the answer to `draft`; text is sent immediately, the notes first.

    An agent that begins after another one discards the other's text.
    """

    def __init__(self, draft: Draft, trace: Trace, send: Send) -> None:
        self.draft, self.trace, self.send = draft, trace, send
        self.agent = ""
        self._parts: list[str] = []
        self.failed = self.refused = False
        self.checked: Sequence[CheckedStatement] = ()
        self._route, self._notes = draft.route, draft.notes
        self._quoted: Mapping[int, Support] = {}
        self._form: AnswerForm = ANSWER
        self._known, self._whole, self._finish_reason = True, True, FINISHED
        self._sent = False
        if self._notes and (draft.task or draft.text):
            send(Delta(self._preface))

    @property
    def text(self) -> str:
        """The text so far, without the notes."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return "".join(self._parts)

    @property
    def _preface(self) -> str:
        """The notes as the first paragraphs of the answer."""
        return "".join(f"{note}\n\n" for note in self._notes)

    def begin(self, agent: str) -> None:
        """Begin the text of an agent and discard the previous agent's."""
        self._sent = self._sent or bool(self._parts)
        self.agent, self._parts, self.failed, self.refused, self.checked = agent, [], False, False, ()
        self._quoted, self._form = {}, ANSWER

    def append_text(self, text: str) -> None:
        """Send more text; a further agent's first text resets the answer, so the notes are sent again with it."""
        reset = self._sent and not self._parts
        self.trace.mark_first("first_delta")
        self.send(Delta(f"{self._preface}{text}" if reset else text, reset))
        if text:
            self._parts.append(text)

    def end(self, result: AgentResult) -> None:
        """Record the result of the agent."""
        self.trace.add_usage(result.usage, result.exchanges)
        if result.failed:
            self.fail(result.failed)
            return
        self._quoted = result.quoted or self._quoted  # a summary keeps the quotes before it
        self._known = result.known
        self._form = result.form if result.quoted else self._form
        for cut in {exchange.finish_reason for exchange in result.exchanges} - {FINISHED}:
            self._finish_reason = cut
            self.trace.mark_degraded(TRUNCATED)

    def fail(self, why: str) -> None:
        """Record that the agent failed and another one takes over; the route names both."""
        log.warning("agent %s failed: %s", self.agent, why)
        self.failed, self._whole = True, False
        self.trace.mark_degraded(f"llm:{self.agent}")
        self._route = Route(self._route.agent, f"{self._route.why}; {self.agent} failed: {why}")

    def fall_back(self, note: str) -> None:
        """Record that the agent found no answer and another one takes over; `note` says so to the reader."""
        self._route = Route(self._route.agent, f"{self._route.why}; {self.agent} found no answer")
        self._notes += (note,)
        if not self._sent and not self._parts:
            self.send(Delta(f"{note}\n\n"))

    def refuse(self, text: str) -> None:
        """Replace the answer by `text`, which says that there is no answer."""
        self.begin(self.agent)
        self.append_text(text)
        self._known = False

    def answer(self, question: Question) -> Answer:
        """Return the answer to `question` with its citations."""
        retrieval, trace = self.draft.retrieval, self.trace
        with trace.step("cite"):
            citations, claims = self._cite(retrieval.hits)
        fits = all(quoted.score >= SUPPORTED for quoted in self._quoted.values())
        held = fits and all(citation.supported for citation in citations)
        confidence = rate_confidence(
            claims,
            self._first_support(),
            likelihood(retrieval.evidence) if retrieval.evidence else None,
            known=self._known and not self.draft.astray,
            whole=self._whole and self._finish_reason == FINISHED and held,
            quoted=bool(self._quoted),
        )
        return Answer(
            question=question.question,
            text=f"{self._preface}{self.text}" if self.text else "",
            agent=self.agent,
            citations=citations if self.draft.cited is None else self.draft.cited,
            hits=retrieval.hits,
            degraded=tuple(trace.degraded),
            timings=trace.all_timings(),
            index=retrieval.index.id,
            revision=retrieval.revision,
            id=question.id or uuid.uuid4().hex,
            known=self._known,
            route=self._route,
            queries=retrieval.queries,
            notes=self._notes,
            usage=trace.usage,
            exchanges=tuple(trace.exchanges),
            finish_reason=self._finish_reason,
            claims=claims,
            collection=retrieval.index.collection,
            form=self._form,
            confidence=confidence if self.draft.cited is None else HIGH,
        )

    def _cite(self, hits: Sequence[Hit]) -> tuple[tuple[Citation, ...], Claims]:
        """Return the citations and the count of claims; an answer that says it doesn't know has no claims."""
        if self._quoted:
            further = [one for one in make_citations(self.checked, hits) if one.n not in self._quoted]
            quoted = Claims() if self._form == RESULTS else count_quotes(self._quoted)  # results claim nothing
            claims = quoted + count_claims(self.checked) if self._known else Claims()
            return (*cite_quotes(self._quoted, hits), *further), claims
        if not self._known:
            return cite_closest(self.text, hits), Claims()
        return make_citations(self.checked, hits), count_claims(self.checked)

    def _first_support(self) -> float:
        """Return the support of the first claim, or how well the first quoted source answers the question."""
        quoted = next(iter(self._quoted.values()), None)
        return quoted.score if quoted else first_support(self.checked)
