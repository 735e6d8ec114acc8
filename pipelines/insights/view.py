"""Builds a view of the questions of one or all collections in a period, as the report shows it.

Knows rows, meanings and pages; knows no database and no HTML.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from typing import Any

from pipelines.insights.figures import Figures, count, count_by, count_by_day, is_smalltalk
from pipelines.insights.gaps import Trouble, is_elsewhere, is_troubled, nearest_source
from pipelines.insights.groups import Meanings, wording_of, wordings
from pipelines.insights.pages import count_opened, use_of_areas, use_of_pages
from pipelines.store import AskedQuestion, OpenedSource

# Maximum lengths of lists: nobody reads more, and a longer page would be slow.
TOP, GAPS, OTHERS, PAGES, NEVER, AREAS, RATED = 50, 50, 25, 50, 200, 25, 100
EXAMPLES, COMMENTS, SOURCES, SECTIONS = 5, 5, 3, 10
ANSWER_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class AskedSite:
    """The meanings of a collection's questions, and the pages and headings of its live index, if it has one."""

    meanings: Meanings
    titles: Mapping[str, str] = field(default_factory=dict)
    headings: Callable[[Sequence[str]], Mapping[str, str]] = lambda sources: {}


def make_view(
    rows: Sequence[AskedQuestion],
    sites: Mapping[str, AskedSite],
    collection: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    opened: Sequence[OpenedSource] = (),
) -> dict[str, Any]:
    """Return the insights from those `rows` that belong to `collection` ("": any) and to the period, as JSON data.

    `opened` are the sources that readers opened, by day; the whole day of `since` counts.
    """
    chosen = [row for row in rows if collection in ("", row.collection) and _within(row.asked_at, since, until)]
    groups = [
        (site, group)
        for name, site in sites.items()
        for group in site.meanings.groups(row for row in chosen if row.collection == name)
    ]
    gaps, others = _find_gaps(groups)
    return {
        "collection": collection,
        "since": since.isoformat() if since else None,
        "until": until.isoformat() if until else None,
        "totals": asdict(count(chosen)),
        "smalltalk": sum(map(is_smalltalk, chosen)),
        "days": _as_dicts(count_by_day(chosen)),
        "gaps": gaps,
        "others": others,
        "top": _find_top(groups),
        "pages": _count_pages(chosen, sites),
        "opened": _count_opened([one for one in opened if collection in ("", one.collection)], since, until),
        "rated": [_rated_down(row) for row in chosen if row.downs > row.ups][:RATED],
        "reasons": _count_reasons(chosen),
        **{f"{name}s": _as_dicts(count_by(chosen, attrgetter(name))) for name in ("agent", "channel", "collection")},
    }


def _as_dicts(figures: Mapping[str, Figures]) -> dict[str, dict[str, Any]]:
    return {name: asdict(each) for name, each in figures.items()}


def _within(asked_at: datetime, since: datetime | None, until: datetime | None) -> bool:
    return (since is None or asked_at >= since) and (until is None or asked_at < until)


# ---------------------------------------------------------------------------------------------- questions and gaps

Group = tuple[AskedSite, list[AskedQuestion]]


def _find_top(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """Return the most frequent meanings, each with the sections that its answers cite most."""
    top = sorted(groups, key=lambda each: -len(each[1]))[:TOP]
    cited = [_most(source for row in rows if row.known for source in dict.fromkeys(row.cited)) for _, rows in top]
    headings = _headings([(site, sources) for (site, _), sources in zip(top, cited, strict=True)])
    return [
        {
            **_describe(rows, rows[0].question),
            "sections": [{"source": source, "title": headings.get((id(site), source))} for source in sources],
        }
        for (site, rows), sources in zip(top, cited, strict=True)
    ]


def _find_gaps(groups: Iterable[Group]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the gaps, the heaviest first, and separately the unanswered questions that are probably off-topic."""
    troubled = [(trouble, site, rows) for site, rows in groups if (trouble := Trouble.of(rows))]
    troubled.sort(key=lambda each: -each[0].weight)
    near = [each for each in troubled if not _is_elsewhere(*each)]
    far = [each for each in troubled if _is_elsewhere(*each)]
    return _describe_gaps(near[:GAPS]), _describe_gaps(far[:OTHERS])


def _describe_gaps(gaps: Sequence[tuple[Trouble, AskedSite, list[AskedQuestion]]]) -> list[dict[str, Any]]:
    """Return the list entries of gaps, each named by the most typical of its questions without a good answer."""
    troubled = [site.meanings.typical_first([row for row in rows if is_troubled(row)]) for _, site, rows in gaps]
    nearest = [nearest_source(rows) for rows in troubled]
    headings = _headings([(site, [source]) for (_, site, _), source in zip(gaps, nearest, strict=True)])
    return [
        {
            **_describe(rows, named[0].question),
            "weight": trouble.weight,
            "kind": trouble.kind,
            "nearest": {"source": source, "title": headings.get((id(site), source))} if source else None,
            "reasons": _count_reasons(rows),
            "comments": list(islice((comment for row in rows for comment in row.comments), COMMENTS)),
        }
        for (trouble, site, rows), named, source in zip(gaps, troubled, nearest, strict=True)
    ]


def _is_elsewhere(_: Trouble, site: AskedSite, rows: Sequence[AskedQuestion]) -> bool:
    return all(is_elsewhere(row, site.meanings.yardstick) for row in rows)


def _describe(rows: Sequence[AskedQuestion], question: str) -> dict[str, Any]:
    """Return the list entry of a meaning that is named by `question`."""
    figures, worded = count(rows), wordings(rows)
    shown = [text for text in worded if wording_of(text) != wording_of(question)]
    return {
        "question": question,
        "collection": rows[0].collection,
        "count": len(rows),
        "wordings": len(worded),
        "examples": shown[:EXAMPLES],
        **{name: getattr(figures, name) for name in ("unknown", "low", "failed", "up", "down")},
        "last": _day(max(row.asked_at for row in rows)),
    }


def _count_reasons(rows: Iterable[AskedQuestion]) -> dict[str, int]:
    return dict(Counter(reason for row in rows for reason in row.reasons).most_common())


def _most(sources: Iterable[str]) -> list[str]:
    return [source for source, _ in Counter(sources).most_common(SOURCES)]


def _headings(wanted: Sequence[tuple[AskedSite, Sequence[str]]]) -> dict[tuple[int, str], str]:
    """Look up the headings of sources, by site and source, with one call per site."""
    by_site: dict[int, tuple[AskedSite, dict[str, None]]] = {}
    for site, sources in wanted:
        by_site.setdefault(id(site), (site, {}))[1].update(dict.fromkeys(filter(None, sources)))
    return {
        (number, source): title
        for number, (site, sources) in by_site.items()
        for source, title in site.headings(list(sources)).items()
    }


# ---------------------------------------------------------------------------------------------- pages and ratings


def _count_pages(rows: Sequence[AskedQuestion], sites: Mapping[str, AskedSite]) -> dict[str, Any]:
    """Return the most cited pages, the never cited ones (the most often found first), and the areas of the sites."""
    asked = {row.collection for row in rows}
    titles = {url: title for name, site in sites.items() if name in asked for url, title in site.titles.items()}
    uses = use_of_pages(rows, titles)
    indexed = [use for use in uses if use.indexed]
    never = [use for use in indexed if not use.cited]
    return {
        "indexed": len(indexed),
        "cited": len(indexed) - len(never),
        "most": [asdict(use) for use in uses[:PAGES] if use.cited],
        "never": [asdict(use) for use in never[:NEVER]],
        "never_count": len(never),
        "areas": [asdict(area) for area in use_of_areas(uses)[:AREAS]],
    }


def _count_opened(opened: Sequence[OpenedSource], since: datetime | None, until: datetime | None) -> dict[str, Any]:
    """Return how many sources readers opened, and the pages with their sections, the most opened first."""
    begin = since and since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    chosen = [one for one in opened if _within(one.day, begin, until)]
    pages = [
        {
            "url": page.url,
            "clicks": page.clicks,
            "sections": [{"source": source, "clicks": clicks} for source, clicks in page.sections[:SECTIONS]],
        }
        for page in count_opened(chosen)[:PAGES]
    ]
    return {"clicks": sum(one.clicks for one in chosen), "pages": pages}


def _rated_down(row: AskedQuestion) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in ("question", "collection", "agent", "known")},
        "day": _day(row.asked_at),
        "answer": row.answer[:ANSWER_CHARACTERS],
        "reasons": list(row.reasons),
        "comments": list(row.comments[:COMMENTS]),
        "sources": list(row.cited[:SOURCES]),
    }


def _day(time: datetime) -> str:
    return time.astimezone(UTC).date().isoformat()
