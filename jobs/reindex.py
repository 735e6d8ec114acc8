"""Updates a collection's index from its sites and folders.

It crawls or reads changed pages, embeds new text and publishes the result in one step. With only `--collection NAME` it
repeats the collection's last run; with --changed and --deleted it reads and deletes only these pages. Exit codes: 0
done, 1 failed or no page has text, 2 bad input, 3 done but vanished pages were not deleted (the crawl failed, or too
many vanished at once) or nothing was published (most of the text would be lost), 75 another run holds the collection.
"""

from typing import Annotated, Any

from cyclopts import Group, Parameter
from pydantic import BaseModel

from jobs import cli
from jobs.environment import indexing_options, open_store
from jobs.flags import RUNNING, Json, Wait, command, flags_of, given
from pipelines.announcements import reindex_announced
from pipelines.embedding.load import MODELS, Backend
from pipelines.indexing.collection import (
    MAX_DELETE_RATIO,
    Collection,
    IndexChoices,
    compose_collection,
    is_collection_file,
)
from pipelines.indexing.crawling.crawl import Site
from pipelines.indexing.folders.folder import ChosenStyle, NoSuchFolder
from pipelines.indexing.publish import MAX_LOSS
from pipelines.indexing.run import plan_reindex, reindex
from pipelines.indexing.settings import PageChanges, ReindexOptions
from pipelines.indexing.summary import Outcome, describe_plan
from pipelines.store import BuildResources, Store
from pipelines.text.sheets import Sheet

OPTIONS = ReindexOptions()
EXIT_CODES = {Outcome.DONE: cli.DONE, Outcome.NOTHING_DELETED: cli.NEEDS_A_LOOK,
              Outcome.TEXT_LOST: cli.NEEDS_A_LOOK, Outcome.NOTHING_INDEXED: cli.FAILED}  # fmt: skip

CRAWLING = Group("Crawling (defaults: the collection file's)", sort_key=2)
INDEXING, PAGES = Group("Indexing", sort_key=3), Group("Single pages", sort_key=4)

TARGET = (
    "URL to crawl, folder of files (with --base-url), or collection file (*.yaml); with --changed or --deleted the "
    "name of the collection"
)
COLLECTION = "name of the collection (default: the file's or the host's); with no source: repeat its last run"
TITLE = "name of the collection for readers (default: the site's title)"
URL_STYLE = (
    "how the URLs of Markdown and other sources end: keep (.md), html, directory (guide/), bare (guide), auto: as the "
    "generator of the folder publishes it (default: auto)"
)
SITEMAP = "sitemap, objects.inv, search index or llms.txt that lists the URLs of the folder's files"
EMBEDDERS = "embedding actors (default: as many as fit, growing with the cluster)"
PARALLEL = "extra processes of the HNSW build (default: as many as the server allows)"
RATIO = (
    f"share of pages that may vanish in this run (default: the collection file's, {MAX_DELETE_RATIO:g}), and of the "
    f"text ({MAX_LOSS:g}, or this if it is more)"
)

CrawlFlags: Any = flags_of(Site, CRAWLING, {"delay_s": Parameter("--delay")})
IndexFlags: Any = flags_of(IndexChoices, INDEXING, {"model": Parameter(help=f"embedding model: {MODELS}")})


@Parameter("*")
class Sources(BaseModel):
    """Where the pages come from."""

    title: Annotated[str | None, Parameter(help=TITLE)] = None
    start_url: Annotated[tuple[str, ...], Parameter(help="crawl from this URL; repeatable")] = ()
    path: Annotated[str | None, Parameter(help="read this folder, glob or bucket instead of crawling")] = None
    base_url: Annotated[str | None, Parameter(help="URL where the files of the folder are published")] = None
    url_style: Annotated[ChosenStyle | None, Parameter(help=URL_STYLE)] = None
    site_map: Annotated[str | None, Parameter("--sitemap", help=SITEMAP)] = None


@Parameter("*", group=CRAWLING)
class Crawling(BaseModel):
    """How a site is crawled, further than its settings say."""

    parent: Annotated[bool, Parameter(help="also crawl outside the start URL's folder")] = False
    no_sitemap: Annotated[bool, Parameter(help="ignore sitemaps and llms.txt")] = False
    retry_failed: Annotated[bool, Parameter(help="fetch only pages that failed last time")] = False


@Parameter("*", group=INDEXING)
class Building(BaseModel):
    """How an index is built; the names are the same as in ReindexOptions and BuildResources."""

    backend: Annotated[Backend, Parameter(help="model engine")] = OPTIONS.backend
    embedders: Annotated[int | None, Parameter(help=EMBEDDERS)] = None
    max_embedders: Annotated[int, Parameter(help="maximum number of embedding actors, as nodes join")] = (
        OPTIONS.max_embedders
    )
    finish_in: Annotated[float, Parameter(help="minutes; request enough nodes to embed within this time")] = (
        OPTIONS.finish_in_s / 60
    )
    gpus_per_embedder: Annotated[float, Parameter(help="GPUs of an actor; with a fraction, actors share a GPU")] = (
        OPTIONS.gpus_per_embedder
    )
    maintenance_work_mem: Annotated[str, Parameter(help="memory for the HNSW build")] = (
        OPTIONS.resources.maintenance_work_mem
    )
    parallel_workers: Annotated[int | None, Parameter(help=PARALLEL)] = None

    def options(self) -> dict[str, Any]:
        """Return these as arguments of ReindexOptions."""
        chosen = self.model_dump(exclude={"finish_in", "maintenance_work_mem", "parallel_workers"})
        resources = BuildResources(self.maintenance_work_mem, self.parallel_workers)
        return chosen | {"finish_in_s": self.finish_in * 60, "resources": resources}


@Parameter("*", group=PAGES)
class SinglePages(BaseModel):
    """The pages of a run that reads only some."""

    changed: Annotated[
        tuple[str, ...], Parameter(consume_multiple=True, help="read only these pages, into the live index")
    ] = ()
    deleted: Annotated[
        tuple[str, ...], Parameter(consume_multiple=True, help="delete these pages from the live index")
    ] = ()
    announced: Annotated[bool, Parameter(help="do this for the changes announced to the service")] = False


@Parameter("*", group=RUNNING)
class Running(BaseModel):
    """How a run works; the names, except the last two, are the same as in ReindexOptions."""

    no_ray: Annotated[bool, Parameter(help="do all work in this process, which is the default for small jobs")] = False
    read_all: Annotated[bool, Parameter(help="also read files with unchanged size and time")] = False
    max_delete_ratio: Annotated[float | None, Parameter(help=RATIO)] = None
    no_publish: Annotated[bool, Parameter(help="leave a candidate for `raydex publish`")] = False
    dry_run: Annotated[bool, Parameter(help="show what would be done, change nothing")] = False


def run(
    target: Annotated[str | None, Parameter(help=TARGET)] = None,
    /,
    *,
    collection: Annotated[str | None, Parameter(help=COLLECTION)] = None,
    sources: Sources | None = None,
    crawl: CrawlFlags | None = None,
    crawling: Crawling | None = None,
    index: IndexFlags | None = None,
    building: Building | None = None,
    pages: SinglePages | None = None,
    running: Running | None = None,
    wait: Wait = False,
    as_json: Json = False,
) -> int:
    sources, crawling, building = sources or Sources(), crawling or Crawling(), building or Building()
    running, pages = running or Running(), pages or SinglePages()
    if running.no_ray and building.embedders is not None:
        raise cli.BadInput("--embedders starts actors on Ray, and --no-ray does without: leave out one of the two")
    cli.check_range("--max-delete-ratio", running.max_delete_ratio, 0, 1)
    cli.check_range("--finish-in", building.finish_in, 0)
    if single := bool(given(pages)):
        collection, target = collection or target, None
        check_single(collection, pages, [sources, crawl, crawling, index], running)
    options = options_of(crawling, building, running, changes_of(pages), wait)
    settings = settings_of(sources, crawl, crawling, index) | {"name": collection}
    start = (target, sources.start_url, sources.path, sources.base_url)
    again = bool(collection) and (single or not any(start))
    composed = None if again else compose_collection(*start, **settings)
    try:
        with open_store() as store:
            stored = composed or compose_collection(*start, **settings, stored=stored_settings(store, collection or ""))
            return index_pages(store, stored, options, announced=pages.announced, dry=running.dry_run, as_json=as_json)
    except NoSuchFolder as error:
        file = f"{target}: folders.{error.key}: " if target and is_collection_file(target) else ""
        raise cli.BadInput(f"{file}{error}") from error


def index_pages(
    store: Store, collection: Collection, options: ReindexOptions, *, announced: bool, dry: bool, as_json: bool
) -> int:
    """Bring the index of a collection up to date, or say what that would do if `dry`; return the exit code."""
    if dry:
        plan = plan_reindex(store, collection, options, cli.say)
        head = f"dry run of collection {collection.name}, nothing is changed"
        cli.finish(plan, as_json, Sheet(head, describe_plan(plan)))
        return cli.DONE
    with cli.Messages() as messages:
        summary = (reindex_announced if announced else reindex)(store, collection, options, messages)
    if summary is None:
        text = f"collection {collection.name}: no announced change is due"
        cli.finish({"collection": collection.name}, as_json, text)
        return cli.DONE
    cli.finish(summary.as_dict(), as_json, summary.described())
    return EXIT_CODES[summary.outcome]


def options_of(
    crawling: Crawling, building: Building, running: Running, changes: PageChanges | None, wait: bool
) -> ReindexOptions:
    """Return the options of a run over `changes`, or over everything if that is None."""
    return ReindexOptions(
        **building.options(),
        **running.model_dump(include={"no_ray", "read_all", "max_delete_ratio"}),
        publish=not running.no_publish,
        retry_failed=crawling.retry_failed,
        changes=changes,
        wait=wait,
        **indexing_options(),
    )


def settings_of(
    sources: Sources, crawl: BaseModel | None, crawling: Crawling, index: BaseModel | None
) -> dict[str, Any]:
    """Return the settings of a collection that the command line set, as `compose_collection` takes them."""
    changed = {"no_parent": False} if crawling.parent else {}
    changed |= {"sitemap": False} if crawling.no_sitemap else {}
    changed |= {"url_style": sources.url_style} if sources.url_style else {}
    return {"crawl": given(crawl) | changed, "index": given(index), "sitemap": sources.site_map, "title": sources.title}


def check_single(collection: str | None, pages: SinglePages, whole: list[BaseModel | None], running: Running) -> None:
    """Raise BadInput for flags that make no sense in a run over single pages."""
    if not collection:
        raise cli.BadInput(
            "--changed, --deleted and --announced need a collection: name it, as in `raydex index NAME --changed URL`"
        )
    if any(map(given, whole)) or running.no_publish or running.dry_run:
        raise cli.BadInput(
            "single pages are indexed with the settings of the last run: leave out all flags that set sources or "
            "settings, --no-publish and --dry-run"
        )
    if pages.announced and (pages.changed or pages.deleted):
        raise cli.BadInput("--announced takes its pages from the service: leave out --changed and --deleted")


def changes_of(pages: SinglePages) -> PageChanges | None:
    """Return the pages that the flags name, None if they name none. Raises BadChanges."""
    named = pages.changed or pages.deleted
    return PageChanges(pages.changed, pages.deleted) if named else None


def stored_settings(store: Store, collection: str) -> dict[str, Any]:
    """Return the settings of the last run of a collection. Raises NoSuchCollection."""
    store.find_collection(collection)
    return store.collection_settings(collection)


app = command("index", __doc__, run)


if __name__ == "__main__":
    cli.main(app)
