"""Gathers the pages of a run: crawls or reads them, then embeds and stages every new text.

It decides where pages are embedded: in this process or on Ray, which is started when needed. run.py does the
publishing.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pipelines.cluster import RayCluster, UnreachableCluster, check_reach, connect_ray, is_connected
from pipelines.embedding.cpu import count_cpus, has_gpu
from pipelines.embedding.load import is_remote, prefixes_missing_from, will_export
from pipelines.embedding.tokens import INT8
from pipelines.indexing.building.estimate import PAGE_BYTES, Costs, Estimate, actors_for, costs_of, estimate
from pipelines.indexing.building.local import LocalBuilder
from pipelines.indexing.building.pools import (
    HERE_PAGES,
    ClusterTooSmall,
    Node,
    Pools,
    has_room,
    is_little,
    plan_local,
    plan_pools,
)
from pipelines.indexing.building.steps import BuildJob, Stored, Work
from pipelines.indexing.building.threads import ThreadedIterator
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.collection import INDEX, Collection
from pipelines.indexing.copies import find_copies
from pipelines.indexing.crawling.reachable import SiteUnreachable, find_unreachable
from pipelines.indexing.crawling.scope import spellings
from pipelines.indexing.layouts import SAMPLE, find_unmatched, known_layouts, learn_layouts
from pipelines.indexing.publish import find_live_index
from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.cpu_waits import CpuWaits
from pipelines.indexing.reading.html.site import selectors_of
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.reading.text import TOO_SLOW
from pipelines.indexing.settings import ReindexOptions
from pipelines.indexing.sources.absence import mark_unseen
from pipelines.indexing.sources.source import PageSource, SourceReading
from pipelines.indexing.summary import RunLog, trace_tasks
from pipelines.indexing.watch import RunWatch
from pipelines.logs import as_began
from pipelines.occupancy import who_holds_cpus
from pipelines.records import Index, IndexSettings, Page
from pipelines.store import READ_ATTEMPTS, Store, run_began
from pipelines.text.counts import counted
from pipelines.text.progress import Passing

if TYPE_CHECKING:
    from pipelines.indexing.building.ray_builder import RayBuilder

# Stored pages per range, ranges per Ray task, and ranges that this process embeds between the start of Ray and the
# start of its actors: 100 pages are 15 s of work (Ray docs, 2 threads).
PAGES_PER_RANGE, RANGES_PER_TASK, WHILE_ACTORS_START = 50, 4, 2
# If an actor dies, at most one task's work is lost: this share of an actor's work in a large run.
LOSS = 1 / 20
# A run that loses more nodes than this is left to the next run.
ATTEMPTS = 4
# A cloud node starts within this time; the work of a busy node may end within it, too.
NODE_STARTS_S, A_NODE = 300.0, {"CPU": 1.0}
# Pages that took too long and are tried again: a few mean that the machine was busy, more mean a hostile site.
MOST_RETRIED = 16
# A page for which a reading process loads all that it needs for most pages: the parser, and the model of languages.
_ANY_PAGE = Page("http://localhost/", b"<p>A page that declares no language.</p>")
# Runs in which the costs of a text are looked up: the first one embedded every text, and later nights perhaps none.
RUNS_OF_COSTS = 100


class Gatherer:
    """Stages the pages of a collection that `base` lacks.

    `base` is the index that the run updates, None if it builds a new one. `sources` are the sources that it reads.
    After a call, `early` contains the reasons why some ended before they were complete. `layouts` say what to leave out
    of pages.
    """

    def __init__(
        self,
        store: Store,
        collection: Collection,
        settings: IndexSettings,
        run: int,
        base: Index | None,
        options: ReindexOptions,
        log: RunLog,
    ) -> None:
        self._store, self._collection, self._settings, self._run = store, collection, settings, run
        self._base, self._options, self._log = base, options, log
        self._name, self._changes = collection.name, options.changes
        self._child = Child()  # starts with the first page to read
        waits = CpuWaits(lambda: [os.getpid(), *filter(None, [self._child.pid])])
        self._watch = RunWatch(store, collection.name, run, log.tell, starves=waits.starves)
        self._read_attempts = 10**6 if options.retry_failed else READ_ATTEMPTS
        self.sources = self._choose_sources()
        self._remote = [source for source in self.sources if source.is_remote]
        self.early: list[str] = []
        self._too_long = 0
        self.layouts = known_layouts(store, collection.name)
        self._free: dict[str, Node] = {}
        self._stack = ExitStack()
        self._stack.enter_context(closing(self._child))
        log.add_seconds("ray_start", 0)

    def check_hosts(self) -> None:
        """Warn about unreachable hosts. Raises SiteUnreachable if all are and there is no other work."""
        if self._options.ray_address != "local":
            return  # other machines read the sources, on another network
        hosts = [host for source in self.sources for host in source.hosts]
        unreachable = find_unreachable(hosts, self._log.tell)
        reasons = [f"{url}: {reason}" for url, reason in unreachable.items()]
        others = any(not source.hosts for source in self._collection.page_sources())
        if reasons and len(reasons) == len(hosts) and not (others or self.ranges_to_index()):
            raise SiteUnreachable(f"{'; '.join(reasons)}: nothing was read, nothing is changed")
        for reason in reasons:
            self._log.warn(reason)

    def __call__(self) -> None:
        """Gather the pages; connect to Ray if there is much to embed or a Ray is given."""
        if missing := prefixes_missing_from(self._settings.embedding):
            self._log.warn(missing)
        with self._stack:
            if self._base is None and not self._wants_ray():
                self._warm_up()
            if self._changes:
                self._store.mark_deleted(self._name, self._run, sorted(spellings(self._changes.deleted)))
            self._read_here()
            complete = self._note_ends([source for source in self.sources if not source.is_remote])
            if self._remote:
                with self._log.timed("crawl_and_embed"), self._watch.crawling(lambda: self._input_rules):
                    self._crawl()
                    complete += self._note_ends(self._remote)
            if not self._changes:
                mark_unseen(self._store, self._name, self._run, self._collection.page_sources(), complete)
            self._load_model_early()
            self._leave_out_copies()
            if not self._changes:
                self._learn_layouts()
                self._check_selectors()
            if ranges := self.ranges_to_index(PAGES_PER_RANGE):
                with self._log.timed("embed"), self._watch.embedding(self._input_rules, *_size(ranges)):
                    self._embed(ranges)
                    self._retry_slow_pages()
                self._leave_out_copies()
        if self._too_long:
            self._log.warn(
                f"{counted(self._too_long, 'text is', 'texts are')} longer than the model {self._settings.model} "
                "reads: their ends are not in their vectors"
            )

    def _warm_up(self) -> None:
        """Load what reading needs, and hash the model, while pages are gathered: a new index will need both.

        A run that ends early does not wait for either.
        """
        reader = PageReader(PageCutter(self._settings), child=self._child)
        for loading in (partial(reader, _ANY_PAGE), self._will_export):
            threading.Thread(target=_try, args=[loading], daemon=True).start()

    def ranges_to_index(self, size: int = 10**9) -> list[dict[str, Any]]:
        """Return the stored pages that the index lacks, in ranges of `size` pages."""
        index, rules = self._base.id if self._base else None, self._input_rules
        attempts, seen = self._read_attempts, self._changes is not None
        return self._store.ranges_to_index(self._name, self._run, index, rules, size, attempts, seen)

    def _read_here(self) -> None:
        """Store the pages of the sources that this machine reads, before anything is embedded."""
        log, options = self._log, self._options
        reading = SourceReading(
            self._store, self._store.url, self._name, self._run, options.read_all, log.tell, log.count_files
        )
        for source in self.sources:
            if not source.is_remote:
                with log.timed("read_files"):
                    for _ in source.read(reading):
                        pass

    def _note_ends(self, sources: Sequence[PageSource]) -> list[PageSource]:
        """Report how the reading of sources ended; return the complete ones."""
        reports, complete = {row["host"]: row for row in self._store.crawls(self._run)}, list[PageSource]()
        for source in sources:
            if stopped_by := source.ended(reports.get(source.name), self._log.tell, self._log.warn):
                self.early.append(stopped_by)
            else:
                complete.append(source)
        return complete

    def _crawl(self) -> None:
        """Crawl and embed at the same time; in a first run without Ray, pages wait until the layouts are known.

        If the crawl is small or a given Ray has no room for actors, the crawl only stores pages, which are embedded
        afterwards.
        """
        sources = self._remote
        if self._wants_ray():
            if self._options.embedders is None and (self._crawls_little() or not self._has_room()):
                self._crawl_alone()
            else:
                self._gather_on_ray(lambda on_ray: on_ray.gathered(sources))
        elif self._changes or self._store.layouts(self._name)[0]:
            self._consume(self._local.gathered(sources))
        else:
            self._consume(self._local.gathered(sources, SAMPLE * len(sources), self._learn_layouts))

    def _crawl_alone(self) -> None:
        """Crawl on the nodes of the given Ray, even if others use all of it."""
        from pipelines.indexing.building.ray_builder import gather_alone

        _ = self._ray  # connects to it
        gather_alone(self._remote, self._job(plan_local(1)))

    def _crawls_little(self) -> bool:
        """Return whether the crawls bring few pages, by the limits of their sites or the number of known pages."""
        limits = [source.max_pages or math.inf for source in self._remote]
        known = sum(self._store.status(self._name)["pages"].values())
        is_known = all(source.is_stored(self._store, self._name) for source in self._remote)
        return (known if is_known and not self._changes else sum(limits)) <= HERE_PAGES

    @property
    def _input_rules(self) -> str:
        """The rules that pages are read with, as in BuildJob."""
        return self._collection.rules().digest + self.layouts.digest

    def _load_model_early(self) -> None:
        """Load the model while copies and layouts are looked for, if this process will have pages to embed."""
        if not (self._wants_ray() or is_remote(self._settings.model)) and self.ranges_to_index():
            self._local.load_model()

    def _leave_out_copies(self) -> None:
        with self._log.timed("find_copies"), self._watch.preparing("looking for copies of pages"):
            copies = find_copies(self._store, self._name, self._child, self._log.tell)
            self._store.mark_duplicates(self._name, self._run, copies)

    def _learn_layouts(self) -> None:
        """Learn the sites' layouts from all stored pages; pages staged with other layouts are read again."""
        with self._log.timed("learn_layouts"), self._watch.preparing("learning the layout of the pages"):
            self.layouts = learn_layouts(self._store, self._name, self._settings.html, self._child)
        if "_local" in self.__dict__:
            self._local.use(self.layouts)

    def _check_selectors(self) -> None:
        """Warn about selectors of the collection that match nothing: the site may have changed."""
        keys = selectors_of(self._settings.html)
        unmatched, pages = find_unmatched(self._store, self._name, keys, self._child)
        for selector in unmatched:
            self._log.warn(
                f"html.{keys[selector]}: {selector!r} matches on none of "
                f"{counted(pages, 'page that was', 'pages that were')} looked at"
            )

    def _embed(self, ranges: Sequence[dict[str, Any]]) -> None:
        if self._is_little(*_size(ranges), self._has_room):
            self._consume(self._local.mixed(ranges))
        elif (self._wants_ray() or is_remote(self._settings.model)) and self._has_ray:  # an endpoint takes many clients
            self._gather_on_ray(lambda on_ray: on_ray.stored(for_tasks(ranges, on_ray.embedders)))
        else:
            self._embed_in_both(deque(ranges))

    def _retry_slow_pages(self) -> None:
        """Try pages that took too long again, one by one, now that nothing else is running."""
        if slow := self._store.pages_failed_with(self._name, self._run, TOO_SLOW):
            self._consume(self._local.patiently(slow[:MOST_RETRIED]))

    def _embed_in_both(self, ranges: "deque[dict[str, Any]]") -> None:
        """Embed in this process until Ray is up, and a few more ranges while its actors start."""
        with ThreadedIterator([self._local.stored(taken(ranges))]) as early:
            rest = deque[dict[str, Any]]()
            while self._has_ray and len(ranges) > WHILE_ACTORS_START:  # Ray is up before the ranges are divided
                rest.appendleft(ranges.pop())
            if rest:
                self._gather_on_ray(lambda on_ray: on_ray.stored(for_tasks(rest, on_ray.embedders)))
            self._consume(early)

    def _gather_on_ray(self, stored: "Callable[[RayBuilder], Iterator[Any]]") -> None:
        """Consume the results of Ray; if a lost node ends the whole dataset, start over on the nodes that are left.

        Work that was stored by then is not repeated.
        """
        from pipelines.indexing.building.ray_builder import DatasetLost

        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                self._consume(stored(self.ray_builder()))
                return
            except DatasetLost:
                if not attempts_left:
                    raise
                self._log.tell("a node was lost: its unfinished work is done again")

    def _wants_ray(self) -> bool:
        """Return whether a Ray is to be used: a given one, or one that is started for the requested actors."""
        options = self._options
        wanted = options.embedders is not None or options.ray_address != "local" or is_connected()
        return wanted and not options.no_ray

    def _is_little(self, pages: int, size: int, has_room: Callable[[], bool]) -> bool:
        """Return whether this process embeds that many pages itself, because it is done before actors would start.

        If a given Ray has no room, actors do not start at all.
        """
        if self._options.no_ray or self._options.embedders is not None:
            return self._options.no_ray
        if not self._wants_ray():
            return is_little(pages, size, math.inf if has_gpu() else count_cpus())
        return is_little(pages, size, math.inf) or (pages <= HERE_PAGES and not has_room())

    def _has_room(self) -> bool:
        return has_room([*self._free_nodes()])

    @cached_property
    def _local(self) -> LocalBuilder:
        return self._stack.enter_context(
            LocalBuilder(self._job(plan_local(count_cpus())), self._child, bool(self._changes))
        )

    @cached_property
    def _ray(self) -> RayCluster:
        self._log.tell(Passing("starting Ray"))
        with self._log.timed("ray_start"):
            cluster = self._stack.enter_context(connect_ray(self._options.ray_address))
        check_reach(self._store.url, cluster.machines())
        return cluster

    @cached_property
    def _has_ray(self) -> bool:
        """Whether a Ray is connected or starts now. If none starts and none was requested, this process embeds."""
        try:
            return bool(self._ray)
        except UnreachableCluster as error:
            if self._wants_ray():
                raise
            self._log.warn(f"{error}. Only this process embeds, on its CPUs")
            return False

    def ray_builder(self) -> "RayBuilder":
        """Return a builder for the nodes that are up now."""
        from pipelines.indexing.building.ray_builder import RayBuilder

        if not self._has_room():
            self._wait_for_room()
        pools, message = self._plan_pools([*self._free_nodes()])
        if message:
            self._log.warn(message)
        return RayBuilder(self._job(pools), self._free.values())

    def _wait_for_room(self) -> None:
        """Wait for a node to start or to become free. Raises ClusterTooSmall."""
        holders = who_holds_cpus()
        self._log.tell(f"no node has room for this run. {holders}. Waiting up to {NODE_STARTS_S:g} s")
        with self._watch.waiting("waiting for a node that has room"):
            self._ray.ask_for_node(A_NODE, self._has_room, NODE_STARTS_S)
        if not self._has_room():
            raise ClusterTooSmall([*self._free_nodes()], who_holds_cpus())

    def _free_nodes(self) -> Iterable[Node]:
        """Return the free resources of each node; for a known node the highest seen, as this run may still use some."""
        now = self._ray.free_resources()
        self._free = {
            node: max(self._free.get(node, free), free, key=lambda node: node.get("CPU", 0.0))
            for node, free in now.items()
        }
        return self._free.values()

    def _plan_pools(self, nodes: Sequence[Node]) -> tuple[Pools, str]:
        options = self._options
        pools, message = plan_pools(nodes, options.embedders, options.gpus_per_embedder, options.max_embedders)
        # The number of pages that a crawl finds is unknown: for a known site at most all pages again, for a new one any
        # number.
        known = sum(self._store.status(self._name)["pages"].values()) if self._remote else 0
        pages, size = self._to_index(known)
        wanted = actors_for(pages, size, self._costs, options.finish_in_s) if pages or not self._remote else None
        most = pools.most if wanted is None else min(pools.most, max(pools.embedders, wanted))
        return replace(pools, most=most), message

    def estimate(self, to_fetch: Sequence[int], new_pages: int) -> Estimate:
        """Estimate a run that fetches `to_fetch` pages of each remote source and stores `new_pages` of all sources."""
        pages, size = self._to_index(new_pages)
        nodes: list[Node] = [{"CPU": float(count_cpus()), "GPU": float(has_gpu())}]
        if self._wants_ray():
            with connect_ray(self._options.ray_address) as cluster:
                nodes = [*cluster.free_resources().values()]
        room = has_room(nodes)
        actors = 0
        if not self._is_little(pages, size, lambda: room):
            actors = self._plan_pools(nodes if room else [A_NODE])[0].embedders
        return estimate(to_fetch, pages, size, actors, self._costs)

    def _to_index(self, more: int = 0) -> tuple[int, int]:
        """Return the number of pages to index and their bytes, including `more` pages that are not stored yet."""
        pages, size = _size(self.ranges_to_index())
        return pages + more, size + more * PAGE_BYTES

    @cached_property
    def _costs(self) -> Costs:
        usual = self._settings.model.removeprefix(INT8) == INDEX.model and not has_gpu()
        before = self._base or find_live_index(self._store, self._name)
        shown = before.id if before and before.settings.model == self._settings.model else None
        return costs_of(self._store.last_runs(self._name, RUNS_OF_COSTS), shown, usual)

    def _job(self, pools: Pools) -> BuildJob:
        options = self._options
        if not pools.gpus and self._will_export():
            self._log.tell(f"exporting the embedding model {self._settings.model} to ONNX, once for this machine")
        return BuildJob(
            self._store.url,
            self._name,
            self._run,
            as_began(run_began(self._store, self._run)),
            self._base.id if self._base else None,
            self._settings,
            self._collection.rules(),
            pools,
            self.layouts,
            backend=options.backend,
            embedding_url=options.embedding_url,
            embedding_key=options.embedding_key,
            model_cache=str(options.model_cache) if options.model_cache else None,
            read_attempts=self._read_attempts,
        )

    def _will_export(self) -> bool:
        return will_export(self._settings.embedding, self._options.backend, self._options.model_cache)

    def _choose_sources(self) -> list[PageSource]:
        """Return the sources to read. With new settings, stored pages are enough, so only a new site is crawled."""
        sources = self._collection.page_sources(self._options.retry_failed)
        if self._changes:
            return [limited for source in sources if (limited := source.limited_to(self._changes.changed))]
        status = self._store.status(self._name)
        if self._base is not None or not any(index["state"] in ("live", "candidate") for index in status["indexes"]):
            return sources
        stored = status["pages"].get("ok", 0)
        self._log.tell(
            f"new settings: building a new index from {counted(stored, 'stored page')} next to the live one, "
            "without crawling"
        )
        return [source for source in sources if not source.is_stored(self._store, self._name)]

    def _consume(self, stored: Iterable[Stored]) -> None:
        times: dict[str, list[Work]] = {"read": [], "embed": [], "store": []}
        for batch in stored:
            self._too_long += batch.too_long
            self._log.add_seconds("encoder", batch.embed.seconds)
            self._log.add_seconds("storing", batch.store.seconds)
            for step, worked in times.items():
                worked += [work for work in [getattr(batch, step)] if work.at]
            if batch.warning:
                self._log.warn(batch.warning)
        trace_tasks(times)


def _try(loading: Callable[[], object]) -> None:
    """Call a function; an error will come again where its result is needed."""
    with suppress(Exception):
        loading()


def for_tasks(ranges: Iterable[dict[str, Any]], actors: int) -> list[dict[str, Any]]:
    """Join adjacent ranges into one per Ray task, with at most a LOSS of each actor's share of the work."""
    parts = list(ranges)
    size = min(RANGES_PER_TASK, max(1, int(len(parts) * LOSS / actors)))
    groups = [parts[start : start + size] for start in range(0, len(parts), size)]
    return [{"first": group[0]["first"], "last": group[-1]["last"]} for group in groups]


def _size(ranges: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many pages are in `ranges`, and their bytes."""
    return sum(part["pages"] for part in ranges), sum(part["bytes"] for part in ranges)


def taken(ranges: "deque[dict[str, Any]]") -> Iterator[dict[str, Any]]:
    """Take ranges from the front until none are left."""
    while ranges:
        yield ranges.popleft()
