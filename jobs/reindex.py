"""`python -m jobs.reindex`: bring a collection's index up to date with its sites and folders.

Crawls or reads what changed, embeds what is new, publishes the result in one step. Exit codes: 0 done, 1 failed,
2 bad input, 3 done but nothing deleted although pages vanished (crawl cut short, or too many at once),
75 another run holds the collection.
"""

import argparse
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobs.collection_file import Collection, collection_from, load_collection
from jobs.environment import (
    NOTHING_DELETED,
    BadInput,
    check_reach,
    embedding_endpoint,
    finish,
    in_ray_job,
    main,
    open_store,
    ray_cluster,
    say,
)
from jobs.holding import held, recorded
from pipelines.indexing.crawl import CrawlSettings
from pipelines.indexing.folder import NoSuchFolder
from pipelines.indexing.pools import plan_pools
from pipelines.indexing.publish import Deletion, base_index, decide_deletion, publish_run
from pipelines.records import Index, IndexSettings
from pipelines.store import READ_ATTEMPTS, BuildResources, Publication, RunLock, Store
from pipelines.tokens import load_tokenizer

PROGRESS_S = 5.0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.reindex", description=__doc__.split("\n\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="collection file (collections/*.yaml)")
    parser.add_argument("--collection", help="name of the collection (default: the file's, or its host)")
    parser.add_argument("--start-url", action="append", default=[], help="crawl from here (may be repeated)")
    parser.add_argument("--path", help="read this folder, glob or bucket instead of crawling")
    parser.add_argument("--base-url", help="URL that the files under --path stand for")
    crawling = parser.add_argument_group("crawling")
    crawling.add_argument("--include", action="append", help="regular expression a URL must match")
    crawling.add_argument("--exclude", action="append", help="regular expression a URL must not match")
    crawling.add_argument("--max-pages", type=int, help="stop after exactly so many pages of a host")
    crawling.add_argument("--max-depth", type=int, help="follow at most so many links from a start URL")
    crawling.add_argument("--concurrency", type=int, help="requests at once for each host")
    crawling.add_argument("--delay", type=float, dest="delay_s", help="least seconds between two requests")
    crawling.add_argument(
        "--parent", action="store_false", dest="no_parent", default=None, help="leave the start URL's folder"
    )
    crawling.add_argument(
        "--no-sitemap", action="store_false", dest="sitemap", default=None, help="ignore sitemaps and llms.txt"
    )
    crawling.add_argument(
        "--allow-private", action="store_true", default=None, help="allow private and loopback addresses"
    )
    crawling.add_argument("--ignore-robots", action="store_true", default=None, help="do not obey robots.txt")
    crawling.add_argument("--retry-failed", action="store_true", help="fetch only pages that failed last time")
    indexing = parser.add_argument_group("indexing")
    indexing.add_argument("--model", help="embedding model: name, folder, openai:<model> or hash:<dimension>")
    indexing.add_argument("--chunk-size", type=int, help="0: as much as the model reads")
    indexing.add_argument("--chunk-overlap", type=int)
    indexing.add_argument("--chunk-unit", choices=["tokens", "characters"])
    indexing.add_argument("--vector-type", choices=["auto", "vector", "halfvec"])
    indexing.add_argument("--backend", default="auto", choices=["auto", "torch", "onnx", "onnx-int8"])
    indexing.add_argument("--embedders", type=int, help="embedding actors (default: what fits the cluster)")
    indexing.add_argument("--gpus-per-embedder", type=float, default=1.0, help="a fraction shares one GPU")
    indexing.add_argument("--maintenance-work-mem", default="1GB", help="memory of the HNSW build")
    indexing.add_argument(
        "--parallel-workers", type=int, default=2, help="processes of the HNSW build beside the first"
    )
    running = parser.add_argument_group("running")
    running.add_argument("--max-delete-ratio", type=float, help="share of pages that may vanish at once (default 0.2)")
    running.add_argument("--no-publish", action="store_true", help="leave a candidate for jobs.publish")
    running.add_argument("--wait", action="store_true", help="wait for another run of the collection to end")
    running.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    running.add_argument("--json", action="store_true", help="print the summary as one JSON object, last line")
    return parser


CRAWL_FLAGS = ("include", "exclude", "max_pages", "max_depth", "concurrency", "delay_s", "no_parent", "sitemap",
               "allow_private", "ignore_robots")  # fmt: skip
INDEX_FLAGS = ("model", "chunk_size", "chunk_overlap", "chunk_unit", "vector_type")


def collection_of(args: argparse.Namespace) -> Collection:
    """The collection that file and flags describe; flags win. Raises BadInput."""
    data = load_collection(args.file).model_dump() if args.file else {}
    if args.path and args.start_url:
        raise BadInput("--path and --start-url exclude each other; a collection file can hold both")
    if bool(args.path) != bool(args.base_url):
        raise BadInput("--path and --base-url go together: the URL says what the files are cited as")
    if args.start_url:
        data |= {"sites": [{"start_urls": args.start_url}], "folders": []}
    if args.path:
        data |= {"sites": [], "folders": [{"path": args.path, "base_url": args.base_url}]}
    if not (data.get("sites") or data.get("folders")):
        raise BadInput("nothing to index: give a collection file, --start-url URL, or --path DIR with --base-url URL")
    crawl_flags = {name: getattr(args, name) for name in CRAWL_FLAGS if getattr(args, name) is not None}
    data["sites"] = [site | crawl_flags for site in data.get("sites", [])]
    given = {name: getattr(args, name) for name in INDEX_FLAGS if getattr(args, name) is not None}
    data["index"] = data.get("index", {}) | given
    data["name"] = (
        args.collection or data.get("name") or _name_of(args.start_url[0] if args.start_url else args.base_url)
    )
    if args.max_delete_ratio is not None:
        data["max_delete_ratio"] = args.max_delete_ratio
    return collection_from(data, str(args.file or "flags"))


def _name_of(url: str) -> str:
    return (urlsplit(url).hostname or "docs").lower().replace(":", "-")


def index_settings(collection: Collection) -> IndexSettings:
    """The collection's index settings with what the model says of itself. Raises ModelNotFound and others."""
    settings = collection.index.settings()
    counter = load_tokenizer(settings.model)
    dimension = counter.dimension or settings.dimension
    if not dimension:
        raise BadInput(
            f"model {settings.model!r} does not say its dimension: set index.dimension in the collection file"
        )
    if settings.dimension not in (0, dimension):
        raise BadInput(
            f"model {settings.model!r} makes {dimension} dimensions, index.dimension is {settings.dimension}"
        )
    return replace(settings, dimension=dimension, identity=counter.identity)


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
                nodes = stack.enter_context(ray_cluster())
            check_reach(self.store.url)
            self._run_chains(nodes, base)

    def _run_chains(self, nodes: Sequence[Mapping[str, float]], base: Index | None) -> None:
        from pipelines.indexing import build

        pools, message = plan_pools(nodes, self.args.embedders, self.args.gpus_per_embedder)
        if message:
            self._warn(message)
        job = build.BuildJob(
            self.store.url, self.name, self.run, base.id if base else None, self.settings, self.collection.rules(),
            pools, backend=self.args.backend, read_attempts=10**6 if self.args.retry_failed else READ_ATTEMPTS,
            **embedding_endpoint(),
        )  # fmt: skip
        hosts = self._hosts(base)
        for folder in self.collection.folders:
            with self.timed("read_files"):
                build.configure(slow_source=False)
                saved = build.save_files(folder.settings(), job).iter_batches(batch_size=None, batch_format="pyarrow")
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
        deletion = self._deletion(base)
        staged = self.store.staged_counts(self.run)
        if base is None and not staged["pages"]:
            self._warn("no page could be indexed: nothing is published")
            self.exit_code = self.exit_code or 1
            return None
        resources = BuildResources(self.args.maintenance_work_mem, self.args.parallel_workers)
        return publish_run(
            self.store, self.lock, self.run, self.settings, base, deletion.allowed, resources, not self.args.no_publish
        )

    def _deletion(self, base: Index | None) -> Deletion:
        if base is None:
            return Deletion(True)
        deletable, pages = self.store.deletable_pages(self.name, base.id)
        deletion = decide_deletion(
            deletable, pages, not self.stopped_by, self.stopped_by, self.collection.max_delete_ratio
        )
        if deletable and not deletion.allowed and not self.stopped_by:
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


def describe(summary: Mapping[str, Any]) -> str:
    """The summary for a person."""
    pages, chunks, seconds = summary["pages"], summary["chunks"], summary["seconds"]
    lines = [
        f"collection {summary['collection']}, run {summary['run']}",
        (
            f"  pages     {pages['seen']:,} seen: {pages['new']:,} new, {pages['changed']:,} changed, "
            f"{pages['unchanged']:,} unchanged, {pages['failed']:,} failed, {pages['deleted']:,} deleted"
        ),
        f"  sections  {summary['sections']:,}",
        (
            f"  chunks    {chunks['total']:,}: {chunks['embedded']:,} embedded, {chunks['reused']:,} reused, "
            f"{chunks['written']:,} written, {chunks['deleted']:,} deleted"
        ),
        "  seconds   " + ", ".join(f"{step} {value:.1f}" for step, value in seconds.items()),
    ]
    if not summary["published"]:
        lines.append(f"  index     {summary['index']} is a candidate: publish it with «python -m jobs.publish»"
                     if summary["index"] else "  index     none")  # fmt: skip
    elif summary["changed"]:
        how = "in place" if summary["in_place"] else "built new"
        lines.append(f"  index     {summary['index']}, revision {summary['revision']}, published ({how})")
    else:
        lines.append(f"  index     {summary['index']}, revision {summary['revision']}: unchanged, nothing to publish")
    return "\n".join(lines)


def dry_run(store: Store, collection: Collection, settings: IndexSettings, as_json: bool) -> int:
    """Say what a run would do; fetches nothing and writes nothing."""
    base = base_index(store, collection.name, settings)
    stale = store.ranges_to_index(collection.name, 0, base.id if base else None, collection.rules().digest, 10**9)
    states = store.status(collection.name)["pages"]
    plan = {
        "collection": collection.name,
        "sites": [site.start_urls for site in collection.sites],
        "folders": [folder.path for folder in collection.folders],
        "known_pages": states,
        "stored_pages_to_index": sum(row["pages"] for row in stale),
        "index": "bring up to date" if base else "build new",
        "settings": collection.index.model_dump(),
    }
    text = "\n".join(f"  {key:22} {value}" for key, value in plan.items())
    finish(plan, as_json, f"dry run, nothing is changed:\n{text}")
    return 0


def check_folders(collection: Collection) -> None:
    """Raise BadInput or NoSuchFolder for a folder that can't be read."""
    for folder in collection.folders:
        if in_ray_job() and "://" not in folder.path and not Path(folder.path).is_absolute():
            raise BadInput(
                f"path {folder.path!r} is relative: a Ray job runs in a copy of the working directory, on another "
                "machine perhaps. Give the absolute path of a folder that every node sees, or a bucket URL"
            )
        folder.settings().paths()


def work(args: argparse.Namespace) -> int:
    collection = collection_of(args)
    settings = index_settings(collection)
    try:
        check_folders(collection)
    except NoSuchFolder as error:
        raise BadInput(f"{args.file or 'flags'}: folders.path: {error}") from error
    with open_store() as store:
        if args.dry_run:
            return dry_run(store, collection, settings, args.json)
        for site in collection.sites:
            if site.ignore_robots:
                say(f"WARNING: robots.txt of {', '.join(site.start_urls)} is IGNORED (--ignore-robots)")
        with (
            held(store, collection.name, args.wait) as lock,
            recorded(lock, "reindex", collection.model_dump()) as record,
        ):
            job = Reindex(store, lock, collection, settings, record.run, args)
            record.counts = summary = job()
            record.remark = "; ".join(job.warnings) or None
    finish(summary, args.json, describe(summary))
    return job.exit_code


if __name__ == "__main__":
    main(arguments(), work)
