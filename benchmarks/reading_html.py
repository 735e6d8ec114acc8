"""Compares Raydex's reading of HTML with Chromium's rendering: words, order, code, cells, superscripts, links.

    python -m benchmarks.reading_html [--site NAME …] [--pages N] [--json FILE] [--write PAGE]
    python -m benchmarks.reading_html --site postgresql --show 3

Chromium renders each page of the corpus (`reading_sites.yaml`) from disk, served on loopback, with styles and scripts.
Raydex reads the same file like a run, without the layout that it learns from a sample of the site. The truth is the
visible content of the page's main part, by rules that know no site, no generator and nothing about Raydex:

**The main part** is the largest `main` or `[role=main]`, else the only `article`. Otherwise the walk starts at the body
and descends into the child with the page's highest headings, as long as the rest is links, a landmark, or next to that
child on the screen.

**Hidden** content is hidden by its computed style (`display: none`, `visibility`, no opacity, clipped to a pixel, moved
off the screen) or by `aria-hidden`. Content that one click opens counts as visible: `<details>`, tab panels, content
controlled by a button with `aria-expanded`, panels of radio labels. Text that exists only in a style sheet (`::before`)
is ignored.

**Layout** inside the main part is not text: landmarks (navigation, search, banner, contentinfo), `footer`, asides next
to the column, buttons and fields (except the label of content that they open), links with `rel=prev|next` or such an
access key and their line, lines of two or more links named "Previous", "Next", "Up", lists whose links all lead into
the same page, with their label ("On this page"), links without a letter (¶), links named "source", "edit", "copy" and
similar, and line numbers of code. Lines on half of a site's pages that come before a page's first own line or after its
last one are layout too.

**Optional** words count neither as missing nor as extra: lists of three or more links to other pages without other
text, also on one line; lists whose items begin with a link, also into the same page, and have about a dozen more words;
a page's title outside the main part; and in Raydex's reading, one-word headings, which repeat the qualified name of an
entry. A page whose main part is mostly such lists, or has under 20 words, is replaced by the next one.

Missing words are determined by alignment, so an extra word elsewhere does not replace a missing one. Words with equal
letters and other spaces are `spaced`; words at another position count in `order`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.reading.chromium import BINARY, Chromium
from benchmarks.reading.compare import FIGURES, Comparison, Read, Shown, compare, words
from benchmarks.reading.ours import SiteReader, sampled, spread
from benchmarks.reading.report import arguments, collected, details
from benchmarks.reading.sites import NoPackage, Site, all_sites, fetch, served
from benchmarks.tables import as_table
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import Page

TABLE = "reading"
PAGES, LEAST_WORDS, SPARE = 20, 20, 2
REPEATED, LEAST_PAGES, LEAST_LINKS = 0.5, 5, 3
RAY = Site("ray", "Sphinx (book theme)", (), "/ray", only="^(?!_modules|_static)")
GOALS = (0.995, 0.98, 0.97, 0.95)  # recall and precision over all sites, and for each site


@dataclass
class SiteResult:
    """A site's figures, its pages' figures, unreadable pages, and pages that Chromium did not render in time."""

    site: Site
    total: Comparison = field(default_factory=Comparison)
    pages: dict[str, Comparison] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    unshown: dict[str, str] = field(default_factory=dict)
    how: Counter[str] = field(default_factory=Counter)


def shown_of(found: dict[str, Any], base: str, repeated: frozenset[str] = frozenset()) -> Shown:
    """Return the script's result, with lines in `repeated` at both ends made optional."""
    lines = found["lines"]
    texts = [line["t"] for line in lines]
    first = next((at for at, text in enumerate(texts) if text not in repeated), 0)
    last = next((at for at in range(len(texts) - 1, -1, -1) if texts[at] not in repeated), len(texts) - 1)
    outside = [(text, True) for text in found["outside"]]  # a title above the main part
    listing = lines_of_links(lines, found["links"])
    kept = outside + [
        (line["t"], line["o"] or at in listing or not first <= at <= last) for at, line in enumerate(lines)
    ]
    targets = [(text, target.replace(found["base"], base)) for text, target, optional in found["links"] if not optional]
    code = [line["t"] for line in lines if line["k"] == "code"]
    return Shown(kept, code, found["tables"], [(base, power) for base, power in found["sups"]], targets)


def lines_of_links(lines: Sequence[dict[str, Any]], links: Sequence[Sequence[Any]]) -> set[int]:
    """Return the indices of text lines that consist only of three or more links to other pages."""
    said = [words(text) for text, _, optional in links if not optional]
    places: set[int] = set()
    begun = 0  # the first link that may be on the next line
    for place, line in enumerate(lines):
        wanted = [] if line["o"] or line["k"] != "text" else words(line["t"])
        for first in range(begun if wanted else len(said), len(said)):
            run, last = said[first], first + 1
            while last < len(said) and len(run) < len(wanted):
                run, last = run + said[last], last + 1
            if run == wanted:
                begun = last
                places |= {place} if last - first >= LEAST_LINKS else set()
                break
    return places


def repeated_lines(pages: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the lines that appear on half of a site's pages."""
    counts = Counter(text for page in pages for text in {line["t"] for line in page["lines"]})
    least = max(LEAST_PAGES, REPEATED * len(pages))
    return frozenset(text for text, count in counts.items() if count >= least)


def is_counted(found: dict[str, Any]) -> bool:
    """Return whether a page has its own text besides lists of links."""
    needed = sum(len(words(line["t"])) for line in found.get("lines", ()) if not line["o"])
    every = sum(len(words(line["t"])) for line in found.get("lines", ()))
    return needed >= LEAST_WORDS and needed >= 0.3 * every


def measure(site: Site, root: Path, base: str, chromium: Chromium, count: int) -> SiteResult:
    """Return a site's figures from `count` of its pages."""
    names = site.pages(root)
    if not names:
        raise NoPackage(f"no page in {site.folder}")
    candidates = spread(names, SPARE * count)
    candidates = candidates[::SPARE] + candidates[1::SPARE]
    found: dict[str, dict[str, Any]] = {}
    result = SiteResult(site)
    while candidates and len(found) < count:
        batch, candidates = candidates[: count - len(found)], candidates[count - len(found) :]
        shown = chromium.shown({site.url(base, name): site.file(root, name) for name in batch})
        pages = {name: shown[site.url(base, name)] for name in batch}
        found |= {name: page for name, page in pages.items() if is_counted(page)}
        result.unshown |= {name: page["error"] for name, page in pages.items() if "error" in page}
    if not found:
        raise NoPackage(f"no page with text in {site.folder}: {result.unshown}")
    repeated = repeated_lines(list(found.values()))

    def page(name: str) -> Page:
        return Page(site.url(base, name), site.file(root, name).read_bytes())

    read = SiteReader(page(name) for name in sampled(names))
    for name, one in sorted(found.items()):
        result.how[one["how"]] += 1
        try:
            ours = read(page(name))
        except UnreadablePage as error:
            ours, result.unread[name] = Read(()), str(error)
        result.pages[name] = compare(shown_of(one, base, repeated), ours)
        result.total += result.pages[name]
    return result


# ---------------------------------------------------------------------------------------------- output


def table(results: Sequence[SiteResult]) -> str:
    """Return the table of all sites, worst first, and their sum."""
    head = ["site", "generator", "pages", "words", "recall", "precision", "order", "code", "cells", "sup", "links"]
    whole = Comparison()
    rows: list[list[object]] = []
    for result in sorted(results, key=lambda one: one.total.recall.share + one.total.precision.share):
        whole += result.total
        rows.append([result.site.name, result.site.generator, len(result.pages), *_figures(result.total)])
    rows.append(["**all**", "", sum(len(result.pages) for result in results), *_figures(whole)])
    return as_table(head, rows)


def _figures(one: Comparison) -> list[object]:
    return [f"{one.recall.of:,}", *(str(getattr(one, name)) for name in FIGURES)]


def goals(results: Sequence[SiteResult]) -> str:
    """Return the line that says which goals are met."""
    recall = sum((result.total.recall for result in results), start=Comparison().recall).share
    precision = sum((result.total.precision for result in results), start=Comparison().precision).share
    low = [r.site.name for r in results if r.total.recall.share < GOALS[2] or r.total.precision.share < GOALS[3]]
    unread = sum(len(result.unread) for result in results)
    return (
        f"Recall {recall:.4f} (goal {GOALS[0]}), precision {precision:.4f} (goal {GOALS[1]}); {len(low)} of "
        f"{len(results)} sites below {GOALS[2]} or {GOALS[3]}; {unread} pages could not be read."
    )


def worst(results: Sequence[SiteResult], count: int = 10) -> Iterator[str]:
    """Yield the pages with the most missing or extra words, with these words."""
    pages = [(result.site.name, name, one) for result in results for name, one in result.pages.items()]
    for site, name, one in sorted(pages, key=lambda page: page[2].lost, reverse=True)[:count]:
        yield from details(f"{site}: {name}", one, 4)


def main() -> None:
    parser = arguments(__doc__, PAGES, "print the N worst pages of each site")
    args = common.parse(parser, TABLE)
    if not BINARY:
        common.cannot_run("no chromium on this machine: `make chromium` (Debian, as root)")
    results = collected(run(args), "no site of the corpus can be had")
    print(*worst(results), sep="\n")
    figures = {
        result.site.name: {
            "generator": result.site.generator,
            **result.total.as_json(),
            "main": dict(result.how),
            "unread": result.unread,
            "unshown": result.unshown,
            "pages": {name: one.as_json() for name, one in result.pages.items()},
        }
        for result in results
    }
    common.report(args, TABLE, f"{table(results)}\n\n{goals(results)}", {"sites": figures}, ["lxml", "playwright"])


def run(args: argparse.Namespace) -> Iterator[SiteResult]:
    """Yield the result of each requested site that is available."""
    root = args.home / "reading" / "root"
    root.mkdir(parents=True, exist_ok=True)
    sites = [*all_sites(), RAY]
    if unknown := set(args.site or ()) - {site.name for site in sites}:
        sys.exit(f"--site {', '.join(sorted(unknown))}: not in reading_sites.yaml")
    with served(root) as base, Chromium(args.home / "reading" / "shown") as chromium:
        for site in sites:
            if args.site and site.name not in args.site:
                continue
            began = time.perf_counter()
            try:
                _fetch(site, root, args.home)
                result = measure(site, root, base, chromium, 4 if args.quick else args.pages)
            except NoPackage as error:
                print(f"{site.name}: skipped: {error}", file=sys.stderr, flush=True)
                continue
            one = result.total
            print(
                f"{site.name:16} {len(result.pages):3} pages, recall {one.recall.share:.3f}, precision "
                f"{one.precision.share:.3f}, {time.perf_counter() - began:.0f} s; {result.how.most_common(2)}",
                file=sys.stderr,
                flush=True,
            )
            for name, comparison in sorted(result.pages.items(), key=lambda page: -page[1].lost)[: args.show]:
                print(*details(f"{site.name}: {name}", comparison, 8), sep="\n", flush=True)
            yield result


def _fetch(site: Site, root: Path, home: Path) -> None:
    if site is not RAY:
        fetch(site, root)
    elif not (root / "ray").exists():
        if not (common.DATA / common.ARCHIVE).exists():
            raise NoPackage(f"{common.DATA / common.ARCHIVE} is absent: set RAYDEX_DATA")
        (root / "ray").symlink_to(common.ray_docs(home).resolve())


if __name__ == "__main__":
    main()
