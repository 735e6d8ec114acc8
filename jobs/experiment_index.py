"""The indexes of an experiment: a copy of the collection for each way to index it, made by the very job that indexes.

The live index is only read. An index that two configurations need is built once; one that is there already is
brought up to date, which without changed pages is nothing.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from jobs.cli import say
from jobs.environment import embedding_endpoint, home, ray_address
from pipelines.indexing.collection import Collection, IndexChoices
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.run import reindex_copy
from pipelines.indexing.settings import ReindexOptions, index_settings
from pipelines.lexical import lexical_folder
from pipelines.records import IndexSettings
from pipelines.store import Store
from pipelines.store.copies import copy_name


class IndexNotBuilt(RuntimeError):
    """An index that a configuration needs could not be built."""


class SweepIndexes:
    """The indexes of one sweep over `collection`; built as they are asked for."""

    def __init__(self, store: Store, collection: str) -> None:
        self._store, self._collection = store, collection
        self._live = store.live_index(collection).settings
        self._ready: set[str] = set()
        self._options = ReindexOptions(ray_address=ray_address(), model_cache=home() / "models", **embedding_endpoint())

    def collection(self, wanted: Mapping[str, Any]) -> str:
        """The collection whose live index has the settings `wanted`, those of the live one where they say nothing.

        Raises IndexNotBuilt, and what a model raises that is not there.
        """
        settings = self._settings(wanted)
        if settings is None:
            return self._collection
        name = copy_name(self._collection, settings.fingerprint)
        if name not in self._ready:
            self._build(name, settings)
            self._ready.add(name)
        return name

    def name(self, wanted: Mapping[str, Any]) -> str:
        """As `collection`, without building it."""
        settings = self._settings(wanted)
        return copy_name(self._collection, settings.fingerprint) if settings else self._collection

    def _settings(self, wanted: Mapping[str, Any]) -> IndexSettings | None:
        """What is to be built; None if the live index is just that."""
        if not wanted:
            return None
        known = {name: value for name, value in asdict(self._live).items() if name in IndexChoices.model_fields}
        if wanted.get("model", self._live.model) != self._live.model:
            known["dimension"] = 0
        asked = IndexChoices.model_validate({**known, "vector_type": "auto", **wanted})
        if asked.settings() == replace(self._live, identity="", vector_type=asked.vector_type) and _same_type(
            wanted, self._live
        ):
            return None
        return index_settings(asked, self._options)

    def _described(self, asked: IndexChoices) -> Collection:
        """The collection as it was described, indexed as `asked`."""
        told = self._store.collection_settings(self._collection)
        kept = {name: told[name] for name in ("tags", "version") if name in told}
        return Collection.model_validate({"name": self._collection, "index": asked.model_dump(), **kept})

    def _build(self, name: str, settings: IndexSettings) -> None:
        say(f"index {name}: {settings.model}, chunks of {settings.chunk_size or 'most'} {settings.chunk_unit}")
        collection = self._described(IndexChoices.model_validate(
            {key: value for key, value in asdict(settings).items() if key in IndexChoices.model_fields}
        )).model_copy(update={"name": name})  # fmt: skip
        summary = reindex_copy(self._store, self._collection, collection, self._options, say)
        if not summary.published:
            raise IndexNotBuilt(f"{name}: {'; '.join(summary.warnings) or 'nothing was published'}")
        forget(self._store, self._store.prune(name))


def _same_type(wanted: Mapping[str, Any], live: IndexSettings) -> bool:
    return wanted.get("vector_type", "auto") in ("auto", live.vector_type)


def drop(store: Store, collection: str) -> list[str]:
    """Drop every experiment's index of `collection`; returns their names."""
    copies = store.copies(collection)
    for name in copies:
        with hold_collection(store, name):
            forget(store, store.drop_copy(name))
    return copies


def forget(store: Store, indexes: list[int]) -> None:
    """Remove this machine's BM25 folders of indexes that are gone."""
    for index in indexes:
        shutil.rmtree(lexical_folder(home(), store.url, index), ignore_errors=True)
