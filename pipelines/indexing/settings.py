"""The options of one reindex, and the complete settings of the index it builds.

These are plain values. The caller gets them from flags, the environment or a notebook.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.embedding.cpu import has_gpu, multiplies_int8
from pipelines.embedding.load import Backend, complete_model, is_remote, load_embedder, load_tokenizer
from pipelines.embedding.tokens import INT8, PACKAGED
from pipelines.indexing.building.pools import FINISH_IN_S, GPUS_PER_EMBEDDER, MAX_EMBEDDERS
from pipelines.indexing.collection import AUTO, INDEX, Collection, IndexChoices
from pipelines.indexing.reading.read import NO_SELECTORS
from pipelines.page.cut.chunker import Chunker
from pipelines.records import Index, IndexSettings
from pipelines.store import BuildResources, Store, choose_vector_type
from pipelines.text.counts import counted


class WrongDimension(ValueError):
    """The collection sets a dimension that its embedding model doesn't produce."""


SHOWN = 3  # URLs in a message, and failed pages in a summary


class BadChanges(ValueError):
    """The pages that a run is limited to can't be used."""


class NotInCollection(ValueError):
    """Some of the named pages do not belong to the collection."""


@dataclass(frozen=True, slots=True)
class PageChanges:
    """The pages that a run is limited to, by their URLs without fragments. Raises BadChanges."""

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("changed", "deleted"):
            urls = (url.strip().partition("#")[0] for url in getattr(self, name))
            object.__setattr__(self, name, tuple(dict.fromkeys(urls)))
        if both := set(self.changed) & set(self.deleted):
            raise BadChanges(f"{min(both)} is named as changed and as deleted: it can only be one of them")
        if not (self.changed or self.deleted):
            raise BadChanges("no page is named: give the URLs of pages that changed or were deleted")


@dataclass(frozen=True, slots=True)
class ReindexOptions:
    """Options of one reindex; the collection defines what to index.

    Without `publish`, the index is left as a candidate. With `most_unjudged` below 1, so is an index that changes more
    than that share of the live index's pages, has other settings, or needs attention. `wait` waits until another run on
    the collection ends. `retry_failed` fetches only pages that failed last time. With `changes`, the run reads and
    deletes only these pages, in the live index, with the collection's settings as indexed before. `max_delete_ratio` is
    the share of pages and text that may vanish in this run (None: the collection's limit). `read_all` reads even files
    whose size and times are unchanged.

    A small amount of work is done in this process, unless `embedders` are requested, a Ray is connected or
    `ray_address` names one; with `no_ray`, all work is. Otherwise, it is done by `embedders` actors. If `embedders` is
    None, as many start as fit the cluster. When nodes join, more start, up to `max_embedders`, to finish within
    `finish_in_s` seconds. Each actor gets `gpus_per_embedder` if there are GPUs (a fraction shares one).

    `model_cache` is the folder on each machine for exported models (None: no export). `embedding_url` and
    `embedding_key` belong to the endpoint of `openai:` models. Without `relative_paths`, a relative folder is refused,
    because the workers of a Ray job start in another folder.
    """

    publish: bool = True
    most_unjudged: float = 1.0
    wait: bool = False
    retry_failed: bool = False
    changes: PageChanges | None = None
    max_delete_ratio: float | None = None
    read_all: bool = False
    backend: Backend = "auto"
    embedders: int | None = None
    max_embedders: int = MAX_EMBEDDERS
    finish_in_s: float = FINISH_IN_S
    gpus_per_embedder: float = GPUS_PER_EMBEDDER
    resources: BuildResources = field(default_factory=BuildResources)
    ray_address: str = "local"
    no_ray: bool = False
    model_cache: Path | None = None
    embedding_url: str | None = None
    embedding_key: str | None = field(default=None, repr=False)
    relative_paths: bool = True


def check_changes(store: Store, collection: Collection, changes: PageChanges) -> None:
    """Raise NotInCollection for pages of other sites and folders, NoLiveIndex if there is no index to change."""
    store.live_index(collection.name)
    sources = collection.page_sources()
    outside = [url for url in (*changes.changed, *changes.deleted)
               if not any(source.limited_to([url]) for source in sources)]  # fmt: skip
    outside = [url for url in outside if url in changes.changed or not store.known_page(collection.name, url)]
    if outside:
        found = [address for source in sources for address in source.addresses]
        raise NotInCollection(
            f"{first_of(outside)}: outside of collection {collection.name!r}, which has {', '.join(found)} and what "
            "its patterns include; nothing was read"
        )


def first_of(urls: Sequence[str]) -> str:
    """Return the first few URLs for a message."""
    return ", ".join(urls[:SHOWN]) + (", …" if len(urls) > SHOWN else "")


def choose_model(named: str, live: str = "") -> str:
    """Return the model of an index: the named one, or for "auto" the packaged model of the `live` index.

    If neither applies, it is the default model, in int8 if the CPU has VNNI and there is no GPU.
    """
    if named != AUTO:
        return named
    if live.removeprefix(INT8) in PACKAGED:
        return live
    return INT8 + INDEX.model if multiplies_int8() and not has_gpu() else INDEX.model


def index_settings(
    choices: IndexChoices, options: ReindexOptions, live: Index | None = None, html: Mapping[str, Any] = NO_SELECTORS
) -> IndexSettings:
    """Complete a collection's choices with the prefixes, pooling, identity and dimension of its model.

    `live` is the collection's index, `html` are its selectors. Raises ModelNotFound, InvalidChunkSize, WrongDimension,
    ValueError for more dimensions than an index supports.
    """
    model = choose_model(choices.model, live.settings.model if live else "")
    settings = replace(choices.settings(), model=model)
    used = complete_model(settings.embedding)
    settings = replace(settings, query_prefix=used.query_prefix, chunk_prefix=used.chunk_prefix, pooling=used.pooling)
    counter = load_tokenizer(used)
    Chunker(counter, settings.chunk_size, settings.chunk_overlap, settings.chunk_unit)  # refuses impossible sizes
    dimension = counter.dimension
    if is_remote(settings.model):
        embedder = load_embedder(used, base_url=options.embedding_url, api_key=options.embedding_key)
        dimension = dimension or settings.dimension or len(embedder.embed_query("dimension"))
    if settings.dimension not in (0, dimension):
        raise WrongDimension(
            f"model {settings.model!r} produces {counted(dimension, 'dimension')}, but index.dimension is "
            f"{settings.dimension}"
        )
    settings = replace(settings, dimension=dimension, identity=counter.identity, html=dict(html))
    choose_vector_type(settings, 0)  # refuses more dimensions than an index supports
    return settings
