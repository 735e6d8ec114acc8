"""Makes citations from the checked statements of an answer, and counts its claims.

This module works with statements and hits; grounding/support.py measures support. docs/citations.md describes the
method.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipelines.answering.grounding.support import Support
from pipelines.answering.hits import heading, snippet
from pipelines.answering.writing.claims import PHRASES, is_claim
from pipelines.answering.writing.stages.text import Statement, numbers_in
from pipelines.page.stored import readable_text
from pipelines.records import ATTRIBUTED, MODEL, PERSON, Citation, CitedBy, Claims, Hit, Reason


@dataclass(frozen=True)
class CheckedStatement:
    """A statement of an answer, with its support by each number that the model gave and each that was added.

    Derived properties are cached, because they are read repeatedly while the answer is written.
    """

    statement: Statement
    given: Mapping[int, Support] = field(default_factory=dict)
    added: Mapping[int, Support] = field(default_factory=dict)
    why: Reason | None = None

    @cached_property
    def is_claim(self) -> bool:
        """Whether it makes a claim about the subject."""
        return is_claim(self.statement)

    @cached_property
    def supported(self) -> bool:
        """Whether one of its passages supports it."""
        return any(support.enough for support in (*self.given.values(), *self.added.values()))


def make_citations(checked: Sequence[CheckedStatement], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """Return the citations in order of appearance; `[n]` cites `hits[n - 1]`.

    A citation is supported if all of its claims are; `support` is the support of its weakest claim.
    """
    supports: dict[int, list[Support]] = {}
    for one in checked:
        for n, support in (*one.given.items(), *one.added.items()):
            supports.setdefault(n, []).append(support)
    given = {n for one in checked for n in one.given}
    return tuple(_citation(n, hits[n - 1], found, MODEL if n in given else ATTRIBUTED) for n, found in supports.items())


def count_claims(checked: Sequence[CheckedStatement]) -> Claims:
    """Return the number of claims, the number of cited ones, and the texts of the unsupported ones."""
    claims = [one for one in checked if one.is_claim]
    cited = sum(bool(one.given or one.added) for one in claims)
    others = [one for one in claims if not one.supported]
    texts, reasons = tuple(one.statement.text.strip() for one in others), tuple(one.why or Reason() for one in others)
    return Claims(len(claims), cited, len(claims) - len(others), texts, reasons)


def first_support(checked: Sequence[CheckedStatement]) -> float:
    """Return how well a passage supports the first claim; 0 without a claim, or if the answer starts with yes or no."""
    first = next((one for one in checked if one.is_claim), None)
    if first is None or PHRASES["yes_or_no"].match(checked[0].statement.text):
        return 0.0
    return max((s.score for s in (*first.given.values(), *first.added.values()) if s.enough), default=0.0)


def cite_closest(text: str, hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """Return the citations of an answer that says it doesn't know; they support nothing."""
    nothing = {n: [Support(0.0, False, readable_text(hits[n - 1].passage))] for n in numbers_in(text) if n <= len(hits)}
    return tuple(_citation(n, hits[n - 1], supports, ATTRIBUTED) for n, supports in nothing.items())


def cite_quotes(quoted: Mapping[int, Support], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """Return the citations of an answer that quotes `hits[n - 1]`, with how well each source answers the question."""
    return tuple(_citation(n, hits[n - 1], [support], ATTRIBUTED) for n, support in quoted.items())


def cite_sections(text: str, hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """Return the citations of an answer that a person wrote: first the numbered ones, then its other sections."""
    numbered = [n for n in numbers_in(text) if n <= len(hits)]
    ordered = dict.fromkeys([*numbered, *range(1, len(hits) + 1)])
    return tuple(
        _citation(n, hits[n - 1], [Support(1.0, True, readable_text(hits[n - 1].passage))], PERSON) for n in ordered
    )


def count_quotes(quoted: Mapping[int, Support]) -> Claims:
    """Return the quoted sources as claims; each is cited and supported, because it is verbatim."""
    return Claims(len(quoted), len(quoted), len(quoted))


def _citation(n: int, hit: Hit, supports: Sequence[Support], by: CitedBy) -> Citation:
    best = max(supports, key=lambda support: support.score)
    weakest = min(support.score for support in supports)
    return Citation(
        n=n,
        source=hit.source,
        title=heading(hit),
        snippet=snippet(best.window),
        headings=hit.headings,
        scores=dict(hit.scores),
        supported=all(support.enough for support in supports),
        support=round(weakest, 3),
        by=by,
    )
