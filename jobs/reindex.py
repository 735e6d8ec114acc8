"""`python -m jobs.reindex`: bring a collection's index up to date with its sites and folders.

Crawls or reads what changed, embeds what is new, publishes the result in one step. Exit codes: 0 done, 1 failed,
2 bad input, 3 done but nothing deleted although pages vanished (crawl cut short, or too many at once),
75 another run holds the collection.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobs.cli import BadInput, command, finish, main, say
from jobs.collection_file import Collection, collection_from, load_collection
from jobs.environment import embedding_endpoint, in_ray_job, open_store
from jobs.reindexing import Reindex
from pipelines.embedding.embedder import load_embedder
from pipelines.embedding.tokens import load_tokenizer
from pipelines.indexing.chunking.chunker import Chunker
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.indexing.publish import base_index
from pipelines.indexing.reading.folder import NoSuchFolder
from pipelines.records import IndexSettings
from pipelines.store import Store


def arguments() -> argparse.ArgumentParser:
    parser = command("index", __doc__)
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
    patterns = {name: crawl_flags[name] for name in ("include", "exclude") if name in crawl_flags}
    data["folders"] = [folder | patterns for folder in data.get("folders", [])]
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
    Chunker(counter, settings.chunk_size, settings.chunk_overlap, settings.chunk_unit)  # refuses sizes that cannot be
    dimension = counter.dimension
    if settings.model.startswith("openai:"):
        endpoint = embedding_endpoint()
        embedder = load_embedder(settings.model, base_url=endpoint["embedding_url"], api_key=endpoint["embedding_key"])
        dimension = dimension or settings.dimension or len(embedder.embed_query("dimension"))
    if settings.dimension not in (0, dimension):
        raise BadInput(
            f"model {settings.model!r} makes {dimension} dimensions, index.dimension is {settings.dimension}"
        )
    return replace(settings, dimension=dimension, identity=counter.identity)


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
        folder.settings().files()


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
            hold_collection(store, collection.name, args.wait, say) as lock,
            record_run(lock, "reindex", collection.model_dump()) as record,
        ):
            job = Reindex(store, lock, collection, settings, record.run, args)
            record.counts = summary = job()
            record.remark = "; ".join(job.warnings) or None
    finish(summary, args.json, describe(summary))
    return job.exit_code


if __name__ == "__main__":
    main(arguments(), work)
