"""One run of a reindex: gather pages, embed what is new, publish, and count.

Called by jobs.reindex with validated settings. The order of steps is here; what each does is in pipelines/indexing.
"""

import argparse
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from jobs.cli import NOTHING_DELETED, say
from jobs.collection_file import Collection
from jobs.environment import embedding_endpoint, home, ray_address
from pipelines.cluster import check_reach, connect_ray
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.pools import plan_pools
from pipelines.indexing.publish import Deletion, base_index, decide_deletion, live_index, publish_run
from pipelines.records import Index, IndexSettings
from pipelines.store import READ_ATTEMPTS, BuildResources, Publication, RunLock, Store

PROGRESS_S = 5.0


@dataclass
class Reindex:
    """One run over one collection: what it works with, and what it has counted so far."""

    store: Store
    lock: RunLock
    collection: Collection
    settings: IndexSettings
    run: int
    args: argparse.Namespace
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    exit_code: int = 0
    stopped_by: str = ""

    @property
    def name(self) -> str:
        return self.collection.name

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = round(self.seconds.get(step, 0.0) + time.perf_counter() - began, 3)

    def __call__(self) -> dict[str, Any]:
        """Do all of it; returns the summary."""
        with self.timed("total"):
            base = base_index(self.store, self.name, self.settings)
            self._gather_and_embed(base)
            counts = self.store.staged_counts(self.run)
            pages = self.store.page_counts(self.name, self.run)
            with self.timed("publish"):
                publication = self._publish(base)
        return self._summary(pages, counts, publication)

    def _hosts(self, base: Index | None) -> list[CrawlSettings]:
        """What to crawl. With new settings the pages that are stored are enough: only a new site is crawled."""
        hosts = [host for site in self.collection.sites for host in site.hosts(self.args.retry_failed)]
        status = self.store.status(self.name)
        if base is not None or not any(index["state"] in ("live", "candidate") for index in status["indexes"]):
            return hosts
        stored = status["pages"].get("ok", 0)
        say(f"new settings: building a new index from {stored:,} stored pages beside the live one, without crawling")
        return [host for host in hosts if not self.store.known_page(self.name, host.start_urls[0])]

    def _gather_and_embed(self, base: Index | None) -> None:
        with ExitStack() as stack:
            with self.timed("ray_start"):
                cluster = stack.enter_context(connect_ray(ray_address()))
            check_reach(self.store.url, cluster.machines())
            self._run_chains(cluster.free_resources(), base)

    def _run_chains(self, nodes: Sequence[Mapping[str, float]], base: Index | None) -> None:
        from pipelines.indexing import build

        pools, message = plan_pools(nodes, self.args.embedders, self.args.gpus_per_embedder)
        if message:
            self._warn(message)
        job = build.BuildJob(
            self.store.url, self.name, self.run, base.id if base else None, self.settings, self.collection.rules(),
            pools, backend=self.args.backend, read_attempts=10**6 if self.args.retry_failed else READ_ATTEMPTS,
            model_cache=str(home() / "models"), **embedding_endpoint(),
        )  # fmt: skip
        hosts = self._hosts(base)
        for folder in self.collection.folders:
            with self.timed("read_files"):
                build.configure(slow_source=False)
                saved: Any = build.save_files(folder.settings(), job).iter_batches(
                    batch_size=None, batch_format="pyarrow"
                )
                pages = sum(sum(batch["pages"].to_pylist()) for batch in saved)  # Dataset.sum costs seconds more
                self._forget_unseen(folder.settings().base_url, f"no file under {folder.path} stands for it any longer")
                say(f"{pages:,} files under {folder.path}")
        if hosts:
            build.configure(slow_source=True)
            with self.timed("crawl_and_embed"):
                self._consume(build.build(build.crawled_pages(hosts, job), job))
            self._forget_unseen_after_crawls(hosts)
        self.store.mark_duplicates(self.name, self.run)
        ranges = self.store.ranges_to_index(
            self.name, self.run, job.index, job.rules.digest, build.PAGES_PER_TASK, job.read_attempts
        )
        if ranges:
            build.configure(slow_source=False)
            with self.timed("embed"):
                self._consume(build.build(build.stored_pages(ranges, job), job))
        self.store.mark_duplicates(self.name, self.run)

    def _consume(self, dataset: Any) -> None:
        with progress(self.store, self.name, self.run):
            for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
                for step in ("embed_s", "store_s"):
                    name = {"embed_s": "embedding_actors", "store_s": "storing_tasks"}[step]
                    self.seconds[name] = round(self.seconds.get(name, 0.0) + sum(batch[step].to_pylist()), 3)
                for warning in set(batch["warning"].to_pylist()) - {"", *self.warnings}:
                    self._warn(warning)

    def _forget_unseen(self, prefix: str, reason: str) -> None:
        self.store.mark_unseen(self.name, self.run, prefix, reason)

    def _forget_unseen_after_crawls(self, hosts: Sequence[CrawlSettings]) -> None:
        ended = {row["host"]: row for row in self.store.crawls(self.run)}
        for host in hosts:
            url = host.start_urls[0]
            report = ended.get(url)
            if report is None or not report["complete"]:
                stopped_by = report["stopped_by"] if report else "error: ended without a report"
                self._incomplete(url, stopped_by)
            elif not host.retry_failed_only:
                parts = urlsplit(url)
                self._forget_unseen(f"{parts.scheme}://{parts.netloc}/", "a complete crawl did not come by it")

    def _incomplete(self, url: str, stopped_by: str) -> None:
        self.stopped_by = stopped_by
        if stopped_by.startswith("error"):
            self.exit_code = NOTHING_DELETED
            self._warn(f"the crawl of {url} was cut short ({stopped_by})")
        else:
            say(f"the crawl of {url} ended by {stopped_by}; this is a normal end, and nothing is deleted")

    def _publish(self, base: Index | None) -> Publication | None:
        live = live_index(self.store, self.name)
        deletion = self._deletion(live or base)
        staged = self.store.staged_counts(self.run)
        if base is None and not staged["pages"]:
            self._warn("no page could be indexed: nothing is published")
            self.exit_code = self.exit_code or 1
            return None
        resources = BuildResources(self.args.maintenance_work_mem, self.args.parallel_workers)
        # Pages that must not be deleted stay where they are; an index built anew does not hold them.
        keeps = deletion.allowed or live is None or live == base
        if not keeps:
            self._warn("the index with the new settings lacks those pages: it is left as a candidate")
        publish = keeps and not self.args.no_publish
        return publish_run(self.store, self.lock, self.run, self.settings, base, deletion.allowed, resources, publish)

    def _deletion(self, index: Index | None) -> Deletion:
        deletable, pages = self.store.deletable_pages(self.name, index.id) if index else (0, 0)
        if not deletable:
            return Deletion(True)
        deletion = decide_deletion(
            deletable, pages, not self.stopped_by, self.stopped_by, self.collection.max_delete_ratio
        )
        if not deletion.allowed and not self.stopped_by:
            self._warn(deletion.reason)
            self.exit_code = NOTHING_DELETED
        return deletion

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        say(f"warning: {message}")

    def _summary(
        self, pages: dict[str, int], counts: dict[str, int], publication: Publication | None
    ) -> dict[str, Any]:
        live = publication
        stats = self.store.index_stats(live.index) if live else {"chunks": 0, "sections": 0, "pages": 0}
        return {
            "collection": self.name,
            "run": self.run,
            "pages": pages | {"deleted": live.pages_deleted if live else 0, "indexed": stats["pages"]},
            "sections": stats["sections"],
            "chunks": {
                "total": stats["chunks"],
                "embedded": counts["embedded"],
                "reused": counts["chunks"] - counts["embedded"],
                "written": live.written if live else 0,
                "deleted": live.deleted if live else 0,
            },
            "seconds": self.seconds,
            "index": live.index if live else None,
            "revision": live.revision if live else None,
            "published": bool(live and live.published),
            "changed": bool(live and live.changed),
            "in_place": bool(live and live.in_place),
            "crawls": self.store.crawls(self.run),
            "warnings": self.warnings,
        }


@contextmanager
def progress(store: Store, collection: str, run: int) -> Iterator[None]:
    """Every few seconds a line of what the database holds of this run, whichever process put it there."""
    done, began = threading.Event(), time.perf_counter()

    def watch() -> None:
        while not done.wait(PROGRESS_S):
            pages, staged = store.page_counts(collection, run), store.staged_counts(run)
            rate = staged["embedded"] / (time.perf_counter() - began)
            say(
                f"  {pages['seen']:,} pages seen, {staged['pages']:,} read, {staged['sections']:,} sections, "
                f"{staged['chunks']:,} chunks, {staged['embedded']:,} embedded ({rate:,.0f}/s)"
            )

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
