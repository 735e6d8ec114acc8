"""The summary of a reindex, and the log of times and warnings that it is made from."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from pipelines import tracing
from pipelines.indexing.building.estimate import Estimate
from pipelines.text.counts import counted
from pipelines.text.progress import Progress
from pipelines.text.sheets import Fact, Sheet

PAGE_COUNTS = ("new", "changed", "unchanged", "duplicate", "failed", "deleted")  # in the order of the summary
PLURALS = {"duplicate": "duplicates", "redirect": "redirects"}  # plurals of the states that are nouns
REASONS_SHOWN = 6
SAID_IF_SET, UNSET = (
    ("vector_type", "query_prefix", "chunk_prefix"),
    (None, "", "auto", "vector"),
)  # settings of an index
SHOWN, LAYOUT_SHOWN = 3, 40  # how many texts of a layout are shown, and how many characters of each


class Outcome(Enum):
    """How a reindex ended, if it did not raise."""

    DONE = "done"
    NOTHING_DELETED = "done, but nothing was deleted, for a reason that needs attention"
    TEXT_LOST = "not published, because most of the text would be lost"
    NOTHING_INDEXED = "no page could be indexed"


class RunLog:
    """Collects seconds by step and warnings, and passes messages on to `progress`."""

    def __init__(self, progress: Progress) -> None:
        self.tell = progress
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []
        self.skipped_files: Counter[str] = Counter()
        self.excluded_files = 0

    def warn(self, message: str) -> None:
        """Record a warning, once, and pass it on."""
        if message not in self.warnings:
            self.warnings.append(message)
            self.tell(f"warning: {message}")

    def count_files(self, skipped: Mapping[str, int], excluded: int) -> None:
        """Add files of a folder that are not read: files of other formats by suffix, and excluded files."""
        self.skipped_files.update(skipped)
        self.excluded_files += excluded

    def add_seconds(self, step: str, seconds: float) -> None:
        """Add seconds to a step."""
        self.seconds[step] = round(self.seconds.get(step, 0.0) + seconds, 3)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds that the body takes to `step`, and record a span for it."""
        began = time.perf_counter()
        try:
            with tracing.span(step):
                yield
        finally:
            self.add_seconds(step, time.perf_counter() - began)


def trace_tasks(times: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Record a span for each step over all of its tasks, given as (begin in Unix time, seconds)."""
    for step, worked in times.items():
        if worked:
            busy = {"raydex.busy_s": sum(seconds for _, seconds in worked)}
            tracing.past(step, min(worked)[0], max(map(sum, worked)), busy)


def describe_layouts(layouts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each site with the text that repeats on most pages and is left out of the index."""
    lines = []
    for site, layout in layouts.items():
        texts = [" ".join(text.split()) for text in (*layout["titles"], *layout["lines"])]
        counts = [f" (on {count:,})" for count in layout.get("counts", ())] or [""] * len(texts)
        shown = ", ".join(
            f'"{text[:LAYOUT_SHOWN]}{"…" * (len(text) > LAYOUT_SHOWN)}"{count}'
            for text, count in list(zip(texts, counts, strict=True))[:SHOWN]
        )
        more = f" and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
        lines.append(
            f"{site}: left out because it repeats on most of {counted(layout['pages'], 'page')}: {shown}{more}"
        )
    return lines


def describe_left_out(state: str, pages: int, url: str, error: str | None) -> str:
    """Return a line about the pages that are not indexed for one reason; it names the first page."""
    reason = f" ({error})" if error else ""
    return f"{pages:,} {PLURALS.get(state, state)}, such as {url}{reason}" if pages > 1 else f"1 {state}: {url}{reason}"


def describe_plan(plan: Mapping[str, Any]) -> list[Fact]:
    """Return the result of `plan_reindex` as facts for a person."""
    facts = []
    for source in plan["sources"]:
        named = f"{counted(source['pages'], 'page')} ({source['new_pages']:,} new)"
        if source["is_remote"]:
            lines = [source["name"], f"start page, sitemap and llms.txt list {named}; these may lead to more"]
            lines += [f"at most {source['max_pages']:,} are fetched"] if source["max_pages"] else []
            facts.append(Fact("site", "\n".join(lines)))
        else:
            facts.append(Fact("source", f"{source['name']}: {named}"))
    known = ", ".join(f"{count:,} {state}" for state, count in plan["known_pages"].items())
    facts += [
        Fact("pages", known or "none"),
        Fact("chunks", f"from {counted(plan['stored_pages_to_index'], 'stored page')} that the index lacks"),
        Fact("estimate", str(Estimate(**plan["estimate"]))),
        Fact("index", "brought up to date" if plan["index"] == "bring up to date" else "built new"),
        Fact("settings", describe_settings(plan["settings"])),
    ]
    return facts


def describe_settings(settings: Mapping[str, Any]) -> str:
    """Return the settings of an index in a few words."""
    size, overlap, dimension = (settings.get(name) for name in ("chunk_size", "chunk_overlap", "dimension"))
    chunks = f"chunks of {size} {settings.get('chunk_unit', 'tokens')}" if size else "chunks as long as it can read"
    named = f"{settings['model']} ({counted(dimension, 'dimension')})" if dimension else settings["model"]
    more = [f"overlap {overlap}"] if overlap else []
    more += [f"{name.replace('_', ' ')} {settings[name]}" for name in SAID_IF_SET if settings.get(name) not in UNSET]
    return ", ".join([named, chunks, *more])


@dataclass(frozen=True)
class ReindexSummary:
    """Counts, times and result of one reindex.

    `pages` counts seen, new, changed, unchanged, failed, duplicate, skipped, deleted and indexed pages, and the
    `listings` among the indexed ones, which have no text to cite. `chunks` counts total, embedded, reused, written and
    deleted chunks. `index` is None if nothing was indexed. `crawls` are the reports of the crawls by host.
    `skipped_files` counts the files of folders in unsupported formats, by suffix, `excluded_files` those excluded by
    settings or the generator. `left_out` says why pages are not indexed: state, count, and the first one's URL and
    reason. `failures` are the first pages that failed, with their errors. `layouts` are the parts left out of each
    site's pages because they repeat on most of them.
    """

    collection: str
    run: int
    pages: dict[str, int]
    sections: int
    chunks: dict[str, int]
    seconds: dict[str, float]
    index: int | None
    revision: int | None
    published: bool
    changed: bool
    in_place: bool
    crawls: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped_files: dict[str, int] = field(default_factory=dict)
    excluded_files: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    outcome: Outcome = Outcome.DONE
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values without the outcome, for a job to print as JSON and the database to keep."""
        values = asdict(self)
        del values["outcome"]
        return values

    def __str__(self) -> str:
        return str(self.described())

    def described(self) -> Sheet:
        """Return the summary for a person."""
        chunks = self.chunks
        made = ", ".join(f"{chunks[key]:,} {key}" for key in ("embedded", "reused", "written", "deleted"))
        steps = [f"{step.replace('_', ' ')} {taken:.1f} s" for step, taken in self.seconds.items() if round(taken, 1)]
        facts = [
            *self._pages(),
            Fact("sections", f"{self.sections:,}{self._listings()}"),
            *(Fact("layout", line) for line in describe_layouts(self.layouts)),
            Fact("chunks", f"{chunks['total']:,}: {made}"),
            Fact("time", ", ".join(steps) or "less than 0.1 s"),
            Fact("index", self._index()),
            *self._failures(),
        ]
        return Sheet(f"collection {self.collection}, run {self.run}", facts)

    def _pages(self) -> Iterator[Fact]:
        """Yield how many pages were read, and which pages and files were left out."""
        seen = ", ".join(f"{self.pages[key]:,} {key}" for key in PAGE_COUNTS)
        yield Fact("pages", f"{self.pages['seen']:,} seen: {seen}")
        if files := self._files():
            yield Fact("files", files)
        if left_out := self._left_out():
            yield Fact("left out", "\n".join(left_out))

    def _failures(self) -> Iterator[Fact]:
        """Yield the first pages that failed, and the command that lists the rest."""
        for page in self.failures:
            yield Fact("failed", f"{page['url']}: {page['error']}")
        more = self.pages["failed"] - len(self.failures)
        if self.failures and more:
            yield Fact("", f"and {more:,} more: `raydex status {self.collection} --failed` lists them")

    def _left_out(self) -> list[str]:
        """Return lines about pages that are not indexed: how many for each reason, and the first of them."""
        lines = [describe_left_out(**one) for one in self.left_out[:REASONS_SHOWN]]
        if more := sum(one["pages"] for one in self.left_out[REASONS_SHOWN:]):
            lines.append(f"{more:,} more for other reasons")
        return lines

    def _listings(self) -> str:
        count = self.pages["listings"]
        return f" ({count:,} of the pages only list links or names: nothing to cite)" if count else ""

    def _files(self) -> str:
        """Return a description of the files that were not read, "" if there are none."""
        said = []
        if self.skipped_files:
            kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in self.skipped_files.items())
            said.append(f"skipped {counted(sum(self.skipped_files.values()), 'file')}: {kinds}")
        if self.excluded_files:
            said.append(f"excluded {self.excluded_files:,}")
        return "; ".join(said)

    def _index(self) -> str:
        if self.index is None:
            return "none"
        if not self.published:
            return f"{self.index} is a candidate: `raydex publish {self.collection}` makes it live"
        if self.changed:
            return f"{self.index}, revision {self.revision}, published ({'in place' if self.in_place else 'built new'})"
        return f"{self.index}, revision {self.revision}: unchanged, nothing to publish"
