"""Compares Raydex's reading of a source folder with the site that its generator builds: URLs, anchors, words.

    python -m benchmarks.reading_sources [--site NAME …] [--pages N] [--json FILE] [--write PAGE]
    python -m benchmarks.reading_sources --site flask --show 3

Each entry in `reading_builds.yaml` is a site, built once into the cache by its own generator: a stopped run can be
repeated, and continues with the next site. A site that can't be built is named with the reason. The folder is read like
`raydex index FOLDER --base-url URL`, and the built site like a crawl of it. Nothing is embedded.

**URL**: the share of the folder's pages at whose URL the site has a page. A redirect counts as a page.
**Anchor**: the share of these pages' sections with a heading whose anchor is in the built page and leads to that
heading. A section without an anchor is wrong if the site has one for its heading.
**Words**: recall and precision by alignment, as in reading_html.py, with the built page as the truth. A page with a
wrong URL is compared with the site's page that shares most words with it, if it shares half. A table of a page's own
contents counts on neither side.
**Code** and **links**: lines of code in the built page that were read as code, and links with the same words and URL.

Pages that a generator makes from something other than pages (docstrings, tags, a search) are excluded if the table says
so, and always if no source contains them. `sourceless` lists the site's pages without a source in the folder.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks import common
from benchmarks.reading.builds import Build, Built, NoBuild, all_builds, built
from benchmarks.reading.compare import NOTHING, Comparison, Share, Shown, compare, squeezed, words
from benchmarks.reading.folders import HOST, BuiltPage, BuiltSite, pages_of_sources, without_contents
from benchmarks.reading.ours import SiteReader, as_read, spread
from benchmarks.reading.report import arguments, collected, details
from benchmarks.tables import as_table
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.tree import Document
from pipelines.records import Page

TABLE = "sources"
PAGES, SAMPLE = 60, 32
ALIKE = 0.5  # minimum share of common words to identify a page of the site
GOALS = (0.99, 0.97, 0.98)  # URL, anchor, and words: recall and precision


@dataclass
class Result:
    """A site's figures. `wrong` lists faults by kind, and `sourceless` the pages without a source."""

    build: Build
    recognised: str = ""
    urls: Share = NOTHING
    anchors: Share = NOTHING
    total: Comparison = field(default_factory=Comparison)
    pages: dict[str, Comparison] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=lambda: {"urls": [], "anchors": [], "unread": []})
    sourceless: list[str] = field(default_factory=list)


def measure(site: Built, count: int) -> Result:
    """Return a built site's figures from `count` of its pages. Raises NoBuild if none can be compared."""
    build = site.build
    root = HOST + build.prefix
    sources, recognised = pages_of_sources(site.sources, root + build.base, build.url_style)
    published = BuiltSite(site.site, root)
    sources = [page for page in sources if build.counts(page.url.removeprefix(root))]
    if not sources:
        raise NoBuild(f"no page in {site.sources} is compared")
    result = Result(build, recognised)
    pairs = {page.url: published[page.url] for page in sources}
    right = sum(pair is not None or url in published.moved for url, pair in pairs.items())
    result.urls = Share(right, len(sources))
    claimed = {pair.path for pair in pairs.values() if pair}
    left = [page for page in published.pages if page.path not in claimed and build.counts(page.path)]
    result.sourceless = [page.path for page in left]
    ours = SiteReader(spread(sources, SAMPLE))
    theirs = SiteReader(page.page for page in spread(published.pages, SAMPLE))
    likeness = _Likeness(left)
    chosen = {page.url for page in spread(sources, count)}
    for page in sources:
        pair = pairs[page.url]
        if pair is None and page.url not in published.moved:
            pair = likeness(page) if page.url in chosen else None
            result.wrong["urls"].append(f"{page.url.removeprefix(root)} -> {pair.url[len(root) :] if pair else '?'}")
        if pair and page.url in chosen:
            _compare_pages(result, page, pair, ours, theirs)
    return result


def _compare_pages(result: Result, page: Page, pair: BuiltPage, ours: SiteReader, theirs: SiteReader) -> None:
    try:
        truth = theirs.document(pair.page)
    except UnreadablePage:
        return  # it has no content for readers
    try:
        document = ours.document(page)
    except UnreadablePage as error:
        document = Document(page.url, "", "", ())
        result.wrong["unread"].append(str(error))
    result.anchors += _compare_anchors(document, truth, pair, result.wrong["anchors"])
    shown = as_read(without_contents(truth))
    found = compare(Shown(shown.parts, shown.code, targets=shown.targets), as_read(without_contents(document)))
    result.pages[pair.path] = found
    result.total += found


def _compare_anchors(document: Document, truth: Document, pair: BuiltPage, wrong: list[str]) -> Share:
    """Count the sections whose anchors lead to their headings."""
    headings: dict[str, set[str]] = {}  # a heading without an id is at the anchor before it
    places: dict[str, str] = {}
    for section in truth.sections:
        if section.headings:
            heading = _letters(section.headings[-1])
            headings.setdefault(section.anchor, set()).add(heading)
            places.setdefault(heading, section.anchor)
    right = of = 0
    for number, section in enumerate(document.sections):
        own = _letters(section.headings[-1]) if section.headings else ""
        if not own or (not section.anchor and (not number or not places.get(own))):
            continue
        of += 1
        if section.anchor in pair.ids and own in headings.get(section.anchor, {own}):
            right += 1
        else:
            wrong.append(f"{pair.path}: {section.headings[-1]!r} #{section.anchor} -> #{places.get(own, '?')}")
    return Share(right, of)


def _letters(heading: str) -> str:
    return "".join(filter(str.isalnum, squeezed(heading).lower()))


class _Likeness:
    """Finds the site's page for a source by its words."""

    def __init__(self, pages: Sequence[BuiltPage]) -> None:
        self._pages = list(pages)
        self._words: list[set[str]] | None = None

    def __call__(self, page: Page) -> BuiltPage | None:
        """Return the page with most of the words of `page`, if it has half of them and few others."""
        if self._words is None:
            self._words = [set(words(one.text)) for one in self._pages]
        own = set(words(page.body.decode("utf-8", "replace")))
        shares = [len(own & other) / (len(own | other) or 1) for other in self._words]
        best = max(range(len(shares)), key=shares.__getitem__, default=-1)
        return self._pages[best] if best >= 0 and shares[best] >= ALIKE else None


# ---------------------------------------------------------------------------------------------- output


def table(results: Sequence[Result]) -> str:
    """Return the table: a line per site, then one per generator with several sites."""
    head = ["generator", "site", "pages", "URL", "anchor", "words", "recall", "precision", "code", "links"]
    rows = [[one.build.generator, one.build.name, *_figures([one])] for one in results]
    kinds = Counter(one.build.kind for one in results)
    for kind in [kind for kind, count in kinds.items() if count > 1]:
        rows.append([f"**{kind}**", "", *_figures([one for one in results if one.build.kind == kind])])
    rows.append(["**all**", "", *_figures(results)])
    return as_table(head, rows)


def _figures(results: Sequence[Result]) -> list[str]:
    total = Comparison()
    for result in results:
        total += result.total
    urls = sum((one.urls for one in results), start=NOTHING)
    anchors = sum((one.anchors for one in results), start=NOTHING)
    shares = (total.recall, total.precision, total.code, total.targets)
    return [f"{urls.of:,}", str(urls), str(anchors), f"{total.recall.of:,}", *map(str, shares)]


def goals(results: Sequence[Result]) -> str:
    """Return the line with the generators that miss a goal."""
    low: list[str] = []
    for kind in dict.fromkeys(one.build.kind for one in results):
        group = [one for one in results if one.build.kind == kind]
        total = Comparison()
        for one in group:
            total += one.total
        shares = {
            "URL": (sum((one.urls for one in group), start=NOTHING).share, GOALS[0]),
            "anchor": (sum((one.anchors for one in group), start=NOTHING).share, GOALS[1]),
            "recall": (total.recall.share, GOALS[2]),
            "precision": (total.precision.share, GOALS[2]),
        }
        missed = [f"{name} {share:.3f}" for name, (share, goal) in shares.items() if share < goal]
        low += [f"{kind} ({', '.join(missed)})"] if missed else []
    said = f"Goals of each generator: URL {GOALS[0]}, anchor {GOALS[1]}, words {GOALS[2]}. "
    return said + (f"Below: {'; '.join(low)}." if low else "All are met.")


def shown(result: Result, count: int) -> Iterator[str]:
    """Yield a site's faults and its `count` worst pages."""
    name = result.build.name
    yield f"\n{name}: recognised as {result.recognised or 'nothing'}; {len(result.sourceless)} pages have no source: "
    yield f"  {', '.join(result.sourceless[:8])}"
    for kind, texts in result.wrong.items():
        if texts:
            yield f"  {kind}: {len(texts)}"
            yield from (f"    {text}" for text in spread(texts, 4 * count))
    for page, one in sorted(result.pages.items(), key=lambda pair: -pair[1].lost)[:count]:
        yield from details(f"{name}: {page}", one, 8)


def not_built(reasons: Mapping[str, str]) -> str:
    """Return the line with the sites that could not be built, and why; "" if there are none."""
    return f"\n\nNot built: {'; '.join(f'{name} ({why})' for name, why in reasons.items())}." if reasons else ""


def main() -> None:
    parser = arguments(__doc__, PAGES, "print what is wrong, and the N worst pages")
    args = common.parse(parser, TABLE)
    reasons: dict[str, str] = {}
    results = collected(run(args, reasons), "no site of the corpus can be built")
    figures = {
        result.build.name: {
            "generator": result.build.generator,
            "recognised": result.recognised,
            "urls": list(result.urls),
            "anchors": list(result.anchors),
            **result.total.as_json(),
            "wrong": result.wrong,
            "sourceless": result.sourceless,
            "pages": {name: one.as_json() for name, one in result.pages.items()},
        }
        for result in results
    }
    text = f"{table(results)}\n\n{goals(results)}{not_built(reasons)}"
    common.report(args, TABLE, text, {"sites": figures, "not built": reasons}, ["lxml", "markdown-it-py"])


def run(args: argparse.Namespace, reasons: dict[str, str]) -> Iterator[Result]:
    """Yield the result of each requested site that can be built, and add the reasons for the others to `reasons`."""
    builds = all_builds()
    if unknown := set(args.site or ()) - {build.name for build in builds}:
        sys.exit(f"--site {', '.join(sorted(unknown))}: not in reading_builds.yaml")
    for build in builds:
        if args.site and build.name not in args.site:
            continue
        began = time.perf_counter()
        try:
            result = measure(built(build, args.home / "reading"), 4 if args.quick else args.pages)
        except NoBuild as error:
            print(f"{build.name}: not built: {error}", file=sys.stderr, flush=True)
            reasons[build.name] = error.reason
            continue
        total = result.total
        print(
            f"{build.name:18} {result.urls.of:4} pages, URL {result.urls.share:.3f}, anchor "
            f"{result.anchors.share:.3f}, recall {total.recall.share:.3f}, precision {total.precision.share:.3f}, "
            f"{time.perf_counter() - began:.0f} s",
            file=sys.stderr,
            flush=True,
        )
        if args.show:
            print(*shown(result, args.show), sep="\n", flush=True)
        yield result


if __name__ == "__main__":
    main()
