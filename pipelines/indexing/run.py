"""Runs one reindex from end to end: gather pages, embed new text, publish, summarize.

    with run_postgres(Path.home() / ".raydex") as url, Store(url) as store:
        store.migrate()
        print(reindex(store, Collection(name="docs", sites=[Site(start_urls=["https://docs.example.com/"])])))

For much work, it starts a local Ray, unless one is connected. This module knows no command line and no environment; the
steps are in the files next to it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from pipelines import tracing
from pipelines.cluster import check_place, is_connected
from pipelines.indexing import publish
from pipelines.indexing.building.pools import check_request
from pipelines.indexing.collection import Collection
from pipelines.indexing.crawling.scope import spellings
from pipelines.indexing.gather import Gatherer
from pipelines.indexing.lock import RunRecord, hold_collection, record_run
from pipelines.indexing.reading.layout import Layouts
from pipelines.indexing.reading.text import NEEDS_JAVASCRIPT
from pipelines.indexing.settings import SHOWN, ReindexOptions, check_changes, first_of, index_settings
from pipelines.indexing.summary import Outcome, ReindexSummary, RunLog, describe_left_out
from pipelines.indexing.watch import PUBLISH_S
from pipelines.records import Index, IndexSettings
from pipelines.store import Deleting, Fate, Publication, RunLock, Store, StoreUnavailable
from pipelines.text.counts import counted
from pipelines.text.progress import Passing, Progress, describe_seconds, silent

DEFAULTS = ReindexOptions()
INDEX_COUNTS = ("chunks", "sections", "pages", "listings")
SINGLE_PAGES = "changes"  # the kind of a run that is limited to single pages
# Page counts of a run that show that it read a page.
READ = ("new", "changed", "unchanged", "duplicate")


class NothingRead(RuntimeError):
    """The crawls of a run failed before they read a page."""


class OtherSettings(RuntimeError):
    """The live index was built with other settings than a run over a few pages would use."""


def reindex(
    store: Store, collection: Collection, options: ReindexOptions = DEFAULTS, progress: Progress = silent
) -> ReindexSummary:
    """Update the index of a collection from its sources, and publish it in one step.

    `progress` receives one line at a time for a person (`print` will do). A failed run is recorded with its error, and
    the next run continues its work. A run that read nothing leaves the collection unchanged. Raises CollectionBusy,
    NoSuchFolder, ModelNotFound, SiteUnreachable, NothingRead, ClusterTooSmall, LostCollection and others; each message
    contains the value and what to do.
    """
    check_request_of(collection, options, progress)
    if options.changes:
        check_changes(store, collection, options.changes)
    return _run(SINGLE_PAGES if options.changes else "reindex", store, collection, options, progress)


def reindex_copy(
    store: Store, original: str, copy: Collection, options: ReindexOptions = DEFAULTS, progress: Progress = silent
) -> ReindexSummary:
    """Like `reindex`, for a copy of the present pages of `original`."""
    return _run("experiment", store, copy, options, progress,
                lambda run: store.copy_pages(original, copy.name, run))  # fmt: skip


def plan_reindex(
    store: Store, collection: Collection, options: ReindexOptions = DEFAULTS, progress: Progress = silent
) -> dict[str, Any]:
    """Return what a reindex would do; fetch only start pages, sitemaps and llms.txt, and write nothing.

    Raises SiteUnreachable, and CrawlFailed for a start page that can't be read.
    """
    check_request_of(collection, options, progress)
    settings = _settings(store, collection, options)
    base = publish.find_base_index(store, collection.name, settings)
    gatherer = Gatherer(store, collection, settings, 0, base, options, RunLog(progress))
    gatherer.check_hosts()
    plans = [source.plan(store, collection.name) for source in gatherer.sources]
    known = store.status(collection.name)["pages"]
    remote = [plan for plan in plans if plan.is_remote]
    to_fetch = [max(plan.pages, sum(known.values()) // len(remote)) for plan in remote]
    new = sum(plan.new_pages for plan in plans)
    return {
        "collection": collection.name,
        "sources": [asdict(plan) for plan in plans],
        "known_pages": known,
        "estimate": asdict(gatherer.estimate(to_fetch, new)),
        "stored_pages_to_index": sum(part["pages"] for part in gatherer.ranges_to_index()),
        "index": "bring up to date" if base else "build new",
        "settings": collection.index.model_dump() | {"model": settings.model},
    }


def check_request_of(collection: Collection, options: ReindexOptions, progress: Progress) -> None:
    """Raise the errors that a reindex raises before its run begins: bad options, unreadable sources."""
    check_request(options.embedders, options.gpus_per_embedder)
    check_request(options.max_embedders)
    for source in collection.page_sources():
        source.check(options.relative_paths, progress)
    if options.embedders is not None and options.ray_address == "local" and not (options.no_ray or is_connected()):
        check_place()


def _settings(store: Store, collection: Collection, options: ReindexOptions) -> IndexSettings:
    own = publish.find_live_index(store, collection.name) or store.candidate_index(collection.name)
    return index_settings(collection.index, options, own, collection.html.chosen)


def _run(
    kind: str,
    store: Store,
    collection: Collection,
    options: ReindexOptions,
    progress: Progress,
    prepare: Callable[[int], object] = lambda run: None,
) -> ReindexSummary:
    """Lock the collection and record a run of this kind; `prepare` is called first, with the run's id."""
    with open_run(kind, store, collection, options, progress) as (record, work):
        prepare(record.run)
        summary = work()
        record.counts, record.remark = summary.as_dict(), "; ".join(summary.warnings) or None
    return summary


@contextmanager
def open_run(
    kind: str, store: Store, collection: Collection, options: ReindexOptions, progress: Progress
) -> Iterator[tuple[RunRecord, "ReindexRun"]]:
    """Lock the collection, and yield the record of a run of this kind and the ReindexRun that does the work.

    A run over single pages leaves the collection's settings unchanged. Raises the same errors as `reindex`.
    """
    settings = _settings(store, collection, options)
    with hold_collection(store, collection.name, options.wait, progress) as lock:
        before = store.collection_settings(collection.name)
        with (
            record_run(lock, kind, None if kind == SINGLE_PAGES else collection.as_stored()) as record,
            _forgotten_if_empty(store, collection.name, record.run, before),
            tracing.span(kind, {"raydex.collection": collection.name, "raydex.run": record.run}, root=True),
        ):
            progress(f"run {record.run} of collection {collection.name}")
            yield record, ReindexRun(store, lock, record.run, collection, settings, options, RunLog(progress))


@contextmanager
def _forgotten_if_empty(store: Store, collection: str, run: int, before: Mapping[str, Any]) -> Iterator[None]:
    """Restore the collection, with its settings of `before`, if the body raises before it reads a page."""
    try:
        yield
    except BaseException:
        with suppress(StoreUnavailable):
            store.forget_empty_run(collection, run, before)
        raise


@dataclass(frozen=True)
class ReindexRun:
    """One run over a locked collection."""

    store: Store
    lock: RunLock
    run: int
    collection: Collection
    settings: IndexSettings
    options: ReindexOptions
    log: RunLog

    def __call__(self) -> ReindexSummary:
        store, name, log = self.store, self.collection.name, self.log
        with log.timed("total"):
            base = self._live_base() if self.options.changes else publish.find_base_index(store, name, self.settings)
            gatherer = Gatherer(store, self.collection, self.settings, self.run, base, self.options, log)
            gatherer.check_hosts()
            gatherer()
            staged, pages = store.staged_counts(self.run), store.page_counts(name, self.run)
            stopped_by = gatherer.early[-1] if gatherer.early else ""
            failed = any(reason.startswith("error") for reason in gatherer.early)
            if failed and not any(pages[state] for state in READ) and not staged["pages"]:
                raise NothingRead(f"nothing was read, nothing is changed: {stopped_by.removeprefix('error: ')}")
            self._warn_of_scripts()
            self._warn_of_unread()
            reused = store.reused_chunks(self.run)
            left = f", about {describe_seconds(PUBLISH_S * staged['chunks'])} left" if staged["chunks"] else ""
            log.tell(
                Passing(f"{counted(staged['pages'], 'page')}, publishing {counted(staged['chunks'], 'chunk')}{left}")
            )
            with log.timed("publish"):
                live = publish.find_live_index(store, name)
                vanished = self._vanished(live or base, base)
                refused = self._refuse_deletion(live or base, vanished, stopped_by)
                delete = self._deleting(refused, {} if failed else vanished)
                outcome = self._judge_text(base, live, delete, pages)
                needs_look = failed or (refused and not stopped_by) or outcome is not Outcome.DONE
                may_publish = self._may_publish(base, live, refused, needs_look) and outcome is Outcome.DONE
                publication = None
                if outcome is Outcome.DONE or (outcome is Outcome.TEXT_LOST and self._keeps_candidate(base, live)):
                    publication = self._publish(base, live, refused, delete, may_publish)
                if publication:
                    self._warn_of_pins(publication.index)
        if needs_look and outcome is Outcome.DONE:
            outcome = Outcome.NOTHING_DELETED
        return self._summarize(pages, staged | {"reused": reused}, publication, outcome, gatherer.layouts)

    def _vanished(self, index: Index | None, base: Index | None) -> Mapping[str, Fate]:
        """Return the pages of `index` that are gone, and where their text went; report how many have moved."""
        if index is None:
            return {}
        base_id = base.id if base else None
        vanished = self.store.vanished_pages(self.collection.name, self.run, index.id, base_id, self._named_as_deleted)
        if moved := sum(fate == "moved" for fate in vanished.values()):
            self.log.tell(f"{counted(moved, 'page has', 'pages have')} moved: other URLs have their text now")
        return vanished

    def _deleting(self, refused: bool, vanished: Mapping[str, Fate]) -> Deleting:
        """Return which vanished pages a publish deletes: all, or only those whose text survives elsewhere."""
        if refused:
            return [url for url, fate in vanished.items() if fate != "lost"]
        only = self._named_as_deleted
        return True if only is None else only

    def _judge_text(self, base: Index | None, live: Index | None, delete: Deleting, pages: dict[str, int]) -> Outcome:
        """Return the outcome by how much text the run leaves; warn if that is nothing, or too little."""
        name, compared = self.collection.name, live or base
        if base is not None and base == live and not publish.changes_anything(self.store, self.run, base, delete):
            return Outcome.DONE
        if not self.store.leaves_text(name, self.run, base.id if base else None, delete):
            self.log.warn(f"no page has text to cite: nothing is published. {self._why_nothing(pages)}")
            if compared:
                self.log.warn(f"index {compared.id} stays as it is; `raydex drop {name}` deletes the whole collection")
            return Outcome.NOTHING_INDEXED
        if compared is None:
            return Outcome.DONE
        before, after = self.store.text_sizes(name, self.run, compared.id, base.id if base else None, delete)
        remedy = f"`raydex index --collection {name} --max-delete-ratio 1` publishes it"
        if self._keeps_candidate(base, live):
            remedy = f"`raydex publish {name}` publishes the new index: it is kept as a candidate"
        refusal = publish.loss_refusal(before, after, self._most_deleted, remedy)
        if refusal:
            self.log.warn(refusal)
        return Outcome.TEXT_LOST if refusal else Outcome.DONE

    @staticmethod
    def _keeps_candidate(base: Index | None, live: Index | None) -> bool:
        """Return whether a refused publish is built as a candidate; an older candidate is not changed."""
        return base in (None, live)

    @property
    def _most_deleted(self) -> float:
        """The share of pages and text that may vanish: the run's limit, or else the collection's."""
        asked = self.options.max_delete_ratio
        return self.collection.max_delete_ratio if asked is None else asked

    def _why_nothing(self, pages: dict[str, int]) -> str:
        """Return how many pages were seen, and why none of them is indexed."""
        left_out = self.store.left_out(self.collection.name, self.run)
        read = pages["seen"] - pages["failed"] - pages["duplicate"]
        reasons = [f"{read:,} only with links or names, or that redirect"] if read else []
        reasons += [f"{pages['failed']:,} failed"] if pages["failed"] else []
        reasons += [describe_left_out(**one) for one in left_out]
        seen = pages["seen"] + sum(one["pages"] for one in left_out if one["state"] != "duplicate")
        return f"Pages seen: {seen:,} ({'; '.join(reasons)})" if reasons else "No page was seen"

    def _live_base(self) -> Index:
        live = self.store.live_index(self.collection.name)
        if live.fingerprint != self.settings.fingerprint:
            raise OtherSettings(
                f"index {live.id} was built with other settings than collection {live.collection!r} has now: run "
                f"`raydex index --collection {live.collection}` first"
            )
        return live

    def unread(self) -> dict[str, str]:
        """Return the announced pages that could not be read, with the reasons."""
        urls = self.options.changes.changed if self.options.changes else ()
        unread = self.store.unread(self.collection.name, self.run, sorted(spellings(urls)))
        return {url: unread[url] for url in urls if unread.keys() >= spellings([url])}

    def _warn_of_unread(self) -> None:
        for url, reason in self.unread().items():
            self.log.warn(f"{url} is left as it is in the index: {reason}")

    def _warn_of_scripts(self) -> None:
        urls = self.store.pages_failed_with(self.collection.name, self.run, NEEDS_JAVASCRIPT)
        if urls:
            count = counted(len(urls), "page holds", "pages hold")
            self.log.warn(
                f"{count} no text without JavaScript: {first_of(urls)}. Raydex runs no scripts: "
                "index the site's source files, if you have them"
            )

    def _warn_of_pins(self, index: int) -> None:
        """Warn about pinned sections that are not in the index."""
        urls = [pin.url for pin in self.collection.pinned]
        chunks = self.store.chunks_of_pages(index, {url.partition("#")[0] for url in urls}) if urls else []
        known = {f"{hit.url}{anchor}" for hit in chunks for anchor in ("", *(f"#{name}" for name in hit.anchors))}
        for url in dict.fromkeys(urls):
            if url not in known:
                self.log.warn(f"pinned: the index has no section {url!r}, so its questions don't get it")

    @property
    def _named_as_deleted(self) -> list[str] | None:
        """The only pages that may be deleted, None for any."""
        return sorted(spellings(self.options.changes.deleted)) if self.options.changes else None

    def _refuse_deletion(self, index: Index | None, vanished: Mapping[str, Fate], stopped_by: str) -> bool:
        """Return whether pages whose text is lost must be kept, and warn if that needs attention."""
        if index is None:
            return False
        pages = self.store.deletable_pages(self.collection.name, index.id)["pages"]
        failed = stopped_by.startswith("error")
        lost = sum(fate == "lost" or failed for fate in vanished.values())
        refusal = publish.deletion_refusal(lost, pages, stopped_by, self._most_deleted)
        if refusal and not stopped_by:
            self.log.warn(refusal)
        return bool(refusal)

    def _may_publish(self, base: Index | None, live: Index | None, refused: bool, needs_look: bool) -> bool:
        """Return whether the run's changes may be published before they are judged; any index is better than none."""
        if not self.options.publish or live is None or self.options.most_unjudged >= 1:
            return self.options.publish
        counts = self.store.deletable_pages(self.collection.name, live.id)
        changed = self.store.staged_counts(self.run)["pages"] + (0 if refused else counts["deletable"])
        return not needs_look and base == live and changed <= self.options.most_unjudged * counts["pages"]

    def _publish(
        self, base: Index | None, live: Index | None, refused: bool, delete: Deleting, may_publish: bool
    ) -> Publication:
        # Pages that must not be deleted stay in an index changed in place, but a new index would lack them.
        keeps = not refused or live is None or live == base
        if not keeps:
            self.log.warn("the index with the new settings lacks those pages, so it is left as a candidate")
        resources, goes_live = self.options.resources, keeps and may_publish
        return publish.publish_run(self.store, self.lock, self.run, self.settings, base, delete, resources, goes_live)

    def _summarize(
        self,
        pages: dict[str, int],
        staged: dict[str, int],
        publication: Publication | None,
        outcome: Outcome,
        layouts: Layouts,
    ) -> ReindexSummary:
        made = publication or Publication(0, 0, False, False, 0, 0, 0, False)
        index = self.store.index_stats(made.index) if publication else dict.fromkeys(INDEX_COUNTS, 0)
        return ReindexSummary(
            collection=self.collection.name,
            run=self.run,
            pages=pages | {"deleted": made.pages_deleted, "indexed": index["pages"], "listings": index["listings"]},
            sections=index["sections"],
            chunks={
                "total": index["chunks"],
                "embedded": staged["embedded"],
                "reused": staged["reused"],
                "written": made.written,
                "deleted": made.deleted,
            },
            seconds=self.log.seconds,
            index=made.index if publication else None,
            revision=made.revision if publication else None,
            published=made.published,
            changed=made.changed,
            in_place=made.in_place,
            crawls=self.store.crawls(self.run),
            warnings=self.log.warnings,
            skipped_files=dict(self.log.skipped_files.most_common()),
            excluded_files=self.log.excluded_files,
            failures=[
                {"url": page["url"], "error": page["error"]}
                for page in self.store.failed_pages(self.collection.name, SHOWN, self.run)
            ],
            outcome=outcome,
            layouts=layouts.as_json(),
            left_out=self.store.left_out(self.collection.name, self.run),
        )
