"""Updates a collection's index from its sites and folders.

It crawls or reads changed pages, embeds new text and publishes the result in one step. With only `--collection NAME` it
repeats the collection's last run; with --changed and --deleted it reads and deletes only these pages. Exit codes: 0
done, 1 failed or no page has text, 2 bad input, 3 done but vanished pages were not deleted (the crawl failed, or too
many vanished at once) or nothing was published (most of the text would be lost), 75 another run holds the collection.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, get_args

from jobs import cli
from jobs.environment import indexing_options, open_store
from pipelines.announcements import reindex_announced
from pipelines.embedding.load import MODELS, Backend
from pipelines.indexing.collection import CRAWL, INDEX, MAX_DELETE_RATIO, Collection, compose_collection
from pipelines.indexing.folders.folder import URL_STYLES, NoSuchFolder
from pipelines.indexing.publish import MAX_LOSS
from pipelines.indexing.run import plan_reindex, reindex
from pipelines.indexing.settings import PageChanges, ReindexOptions
from pipelines.indexing.summary import Outcome, describe_plan
from pipelines.store import BuildResources, Store

OPTIONS = ReindexOptions()
Add = Callable[..., object]  # add_argument of a parser or group
EXIT_CODES = {Outcome.DONE: cli.DONE, Outcome.NOTHING_DELETED: cli.NEEDS_A_LOOK,
              Outcome.TEXT_LOST: cli.NEEDS_A_LOOK, Outcome.NOTHING_INDEXED: cli.FAILED}  # fmt: skip
CRAWL_FLAGS = ("include", "exclude", "max_pages", "max_depth", "concurrency", "delay_s", "no_parent", "sitemap",
               "allow_private", "ignore_robots", "url_style")  # fmt: skip
SINGLE_PAGES = ("changed", "deleted", "announced")
NOT_FOR_CHANGES = ("title", "retry_failed", "no_publish", "dry_run")
SOURCES = ("target", "start_url", "path", "base_url")
INDEX_FLAGS = ("model", "chunk_size", "chunk_overlap", "chunk_unit", "vector_type", "query_prefix", "chunk_prefix")
OPTION_FLAGS = ("wait", "retry_failed", "read_all", "max_delete_ratio", "no_ray", "backend", "embedders",
                "max_embedders", "gpus_per_embedder")  # fmt: skip


def arguments() -> argparse.ArgumentParser:
    parser = cli.command("index", __doc__)
    add_sources(parser)
    add_crawling(parser.add_argument_group("crawling (defaults: the collection file's)").add_argument)
    add_indexing(parser.add_argument_group("indexing").add_argument)
    add_changes(parser.add_argument_group("single pages").add_argument)
    add_running(parser.add_argument_group("running").add_argument)
    cli.add_wait(parser)
    cli.add_json(parser)
    return parser


def add_sources(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("target", nargs="?", help="URL to crawl, folder of files (with --base-url), or collection file (*.yaml); "
        "with --changed or --deleted the name of the collection")  # fmt: skip
    cli.add_collection(parser, "name of the collection (default: the file's or the host's); alone: repeat its last run")
    add("--title", help="name of the collection for readers (default: the site's title)")
    add("--start-url", action="append", default=[], help="crawl from this URL (may be repeated)")
    add("--path", help="read this folder, glob or bucket instead of crawling")
    add("--base-url", help="URL where the files of the folder are published")
    add(
        "--url-style",
        choices=URL_STYLES,
        help="how the URLs of Markdown and other sources end: keep (.md), html, "
        "directory (guide/), bare (guide), auto: as the folder's generator publishes them (auto)",
    )
    add(
        "--sitemap",
        dest="site_map",
        metavar="FILE|URL",
        help="sitemap, objects.inv, search index or llms.txt that lists the URLs of the folder's files",
    )


def add_crawling(add: Add) -> None:
    add("--include", action="append", help="regular expression that a URL must match")
    add("--exclude", action="append", help="regular expression that a URL must not match")
    add("--max-pages", type=int, help="stop after exactly this many pages of a host")
    add("--max-depth", type=int, help="follow at most this many links from a start URL")
    add("--concurrency", type=int, help=f"concurrent requests per host ({CRAWL.concurrency})")
    add("--delay", type=float, dest="delay_s", help=f"minimum seconds between two requests ({CRAWL.delay_s:g})")
    add(
        "--parent",
        action="store_false",
        dest="no_parent",
        default=None,
        help="also crawl outside the start URL's folder",
    )
    add("--no-sitemap", action="store_false", dest="sitemap", default=None, help="ignore sitemaps and llms.txt")
    add("--allow-private", action="store_true", default=None, help="allow private and loopback addresses")
    add("--ignore-robots", action="store_true", default=None, help="do not obey robots.txt")
    add("--retry-failed", action="store_true", help="fetch only pages that failed last time")


def add_indexing(add: Add) -> None:
    add("--model", help=f"embedding model: {MODELS}")
    add(
        "--query-prefix",
        help="text that the model gets before a question (default: from its files or its model family)",
    )
    add("--chunk-prefix", help="text that the model gets before a chunk (default: from its files or its model family)")
    add("--chunk-size", type=int, help=f"size of a chunk; 0: the model's limit ({INDEX.chunk_size})")
    add("--chunk-overlap", type=int, help=f"overlap with the previous chunk ({INDEX.chunk_overlap})")
    add("--chunk-unit", choices=["tokens", "characters"], help=f"unit of size and overlap ({INDEX.chunk_unit})")
    add("--vector-type", choices=["auto", "vector", "halfvec"], help=f"column type of vectors ({INDEX.vector_type})")
    add("--backend", default=OPTIONS.backend, choices=get_args(Backend), help="model engine")
    add("--embedders", type=int, help="embedding actors (default: as many as fit, growing with the cluster)")
    add(
        "--max-embedders",
        type=int,
        default=OPTIONS.max_embedders,
        help="maximum number of embedding actors, as nodes join (%(default)s)",
    )
    add(
        "--finish-in",
        type=float,
        default=OPTIONS.finish_in_s / 60,
        metavar="MINUTES",
        help="request enough nodes to embed within this time (%(default)g)",
    )
    add(
        "--gpus-per-embedder",
        type=float,
        default=OPTIONS.gpus_per_embedder,
        help="GPUs of an actor; with a fraction, actors share a GPU",
    )
    add(
        "--maintenance-work-mem",
        default=OPTIONS.resources.maintenance_work_mem,
        help="memory for the HNSW build (%(default)s)",
    )
    add("--parallel-workers", type=int, help="extra processes of the HNSW build (as many as the server allows)")


def add_changes(add: Add) -> None:
    add("--changed", metavar="URL", nargs="+", action="extend", help="read only these pages, into the live index")
    add("--deleted", metavar="URL", nargs="+", action="extend", help="delete these pages from the live index")
    add("--announced", action="store_true", help="do this for the changes announced to the service")


def add_running(add: Add) -> None:
    add("--no-ray", action="store_true", help="do all work in this process, which is the default for small jobs")
    add("--read-all", action="store_true", help="also read files with unchanged size and time")
    add("--max-delete-ratio", type=float, help="share of pages that may vanish in this run (default: the collection "
        f"file's, {MAX_DELETE_RATIO:g}), and of the text ({MAX_LOSS:g}, or this if it is more)")  # fmt: skip
    add("--no-publish", action="store_true", help="leave a candidate for `raydex publish`")
    add("--dry-run", action="store_true", help="show what would be done, change nothing")


def options_of(flags: dict[str, Any], changes: PageChanges | None) -> ReindexOptions:
    """Return the options of a run, which covers only `changes` if there are some."""
    return ReindexOptions(
        **{name: flags[name] for name in OPTION_FLAGS},
        publish=not flags["no_publish"],
        changes=changes,
        finish_in_s=flags["finish_in"] * 60,
        resources=BuildResources(flags["maintenance_work_mem"], flags["parallel_workers"]),
        **indexing_options(),
    )


def run(args: argparse.Namespace) -> int:
    if args.no_ray and args.embedders is not None:
        raise cli.BadInput("--embedders starts actors on Ray, and --no-ray does without: leave out one of the two")
    cli.check_range("--max-delete-ratio", args.max_delete_ratio, 0, 1)
    flags = vars(args)
    options = options_of(flags, changes_of(flags))
    again = bool(args.collection) and not any(flags[name] for name in SOURCES)
    composed = None if again else compose(flags)
    try:
        with open_store() as store:
            collection = composed or compose(flags, stored_settings(store, args.collection))
            if args.dry_run:
                plan = plan_reindex(store, collection, options, cli.say)
                head = f"dry run of collection {collection.name}, nothing is changed"
                cli.finish(plan, args.json, "\n".join([head, *describe_plan(plan)]))
                return cli.DONE
            with cli.Messages() as messages:
                index = reindex_announced if args.announced else reindex
                summary = index(store, collection, options, messages)
    except NoSuchFolder as error:
        raise cli.BadInput(f"{args.target or 'flags'}: folders.{error.key}: {error}") from error
    if summary is None:
        text = f"collection {collection.name}: no announced change is due"
        cli.finish({"collection": collection.name}, args.json, text)
        return cli.DONE
    cli.finish(summary.as_dict(), args.json, str(summary))
    return EXIT_CODES[summary.outcome]


def changes_of(flags: dict[str, Any]) -> PageChanges | None:
    """Return the pages named by flags, None without them; the target is then the collection. Raises BadInput."""
    if not any(flags[name] for name in SINGLE_PAGES):
        return None
    flags["collection"], flags["target"] = flags["collection"] or flags["target"], None
    if not flags["collection"]:
        raise cli.BadInput("single pages are of a collection: name it, as in `raydex index NAME --changed URL`")
    given = any(flags[name] is not None for name in (*CRAWL_FLAGS, *INDEX_FLAGS, "site_map"))
    if given or any(flags[name] for name in (*SOURCES, *NOT_FOR_CHANGES)):
        raise cli.BadInput("single pages are indexed as the others were: leave out flags that say what or how")
    if flags["announced"] and (flags["changed"] or flags["deleted"]):
        raise cli.BadInput("--announced takes its pages from the service: leave out --changed and --deleted")
    return None if flags["announced"] else PageChanges(tuple(flags["changed"] or ()), tuple(flags["deleted"] or ()))


def compose(flags: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> Collection:
    """Return the collection that the flags describe, or the `stored` one with the flags' changes."""
    given = {name: value for name, value in flags.items() if value is not None}
    return compose_collection(
        *(flags[name] for name in SOURCES),
        crawl={name: given[name] for name in CRAWL_FLAGS if name in given},
        sitemap=flags["site_map"],
        index={name: given[name] for name in INDEX_FLAGS if name in given},
        stored=stored,
        name=flags["collection"],
        title=flags["title"],
    )


def stored_settings(store: Store, collection: str) -> dict[str, Any]:
    """Return the settings of the last run of a collection. Raises NoSuchCollection."""
    store.find_collection(collection)
    return store.collection_settings(collection)


if __name__ == "__main__":
    cli.main(arguments(), run)
