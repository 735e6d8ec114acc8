"""Builds the indexes of a sweep: one copy of the collection for each way to index it.

The live index is only read. An index that two configurations need is built once. An existing one is updated, which
costs nothing if no page has changed.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pipelines.indexing.collection import Collection, IndexChoices
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.run import reindex_copy
from pipelines.indexing.settings import ReindexOptions, index_settings
from pipelines.lexical import remove_lexical_folders
from pipelines.store import Store, copy_name
from pipelines.text.progress import Progress, silent

# The keys that a copy takes from its collection's file.
KEPT = ("tags", "version", "html", "boosts", "synonyms", "pinned")


class IndexNotBuilt(RuntimeError):
    """An index that a configuration needs could not be built."""


class SweepIndexes:
    """The indexes of one sweep over `collection`, built on demand.

    `home` is the folder of this machine's BM25 files.
    """

    def __init__(
        self, store: Store, collection: str, home: Path, options: ReindexOptions, progress: Progress = silent
    ) -> None:
        self._store, self._collection, self._home = store, collection, home
        self._options, self._progress = options, progress
        self._live = store.live_index(collection).settings
        self._ready: set[str] = set()

    def collection_for(self, wanted: Mapping[str, Any]) -> str:
        """Return the collection whose live index has the settings `wanted`, and otherwise the live index's; build it.

        Raises IndexNotBuilt, and the errors of a missing model.
        """
        choices = self._choices(wanted)
        if choices is None:
            return self._collection
        name = self._name(choices)
        if name not in self._ready:
            self._build(name, choices)
            self._ready.add(name)
        return name

    def name_for(self, wanted: Mapping[str, Any]) -> str:
        """Return the name that `collection_for` returns, without building the index."""
        choices = self._choices(wanted)
        return self._name(choices) if choices else self._collection

    def drop(self) -> list[str]:
        """Drop every copy of the collection; return their names."""
        copies = self._store.copies(self._collection)
        for name in copies:
            with hold_collection(self._store, name):
                remove_lexical_folders(self._home, self._store.url, self._store.drop_copy(name))
        return copies

    def _name(self, choices: IndexChoices) -> str:
        return copy_name(self._collection, index_settings(choices, self._options).fingerprint)

    def _choices(self, wanted: Mapping[str, Any]) -> IndexChoices | None:
        """Return the settings of the index to build; None if the live index has them."""
        if not wanted:
            return None
        known = {name: value for name, value in asdict(self._live).items() if name in IndexChoices.model_fields}
        if wanted.get("model", self._live.model) != self._live.model:
            known["dimension"] = 0
        choices = IndexChoices.model_validate({**known, "vector_type": "auto", **wanted})
        live = replace(self._live, identity="", vector_type=choices.vector_type, html={})
        if choices.settings() == live and wanted.get("vector_type", "auto") in ("auto", self._live.vector_type):
            return None
        return choices

    def _build(self, name: str, choices: IndexChoices) -> None:
        size = choices.chunk_size or "most"
        self._progress(f"index {name}: {choices.model}, chunks of {size} {choices.chunk_unit}")
        described = self._store.collection_settings(self._collection)
        kept = {key: described[key] for key in KEPT if key in described}
        copy = Collection.model_validate({"name": self._collection, "index": choices.model_dump(), **kept})
        summary = reindex_copy(
            self._store, self._collection, copy.model_copy(update={"name": name}), self._options, self._progress
        )
        if not summary.published:
            raise IndexNotBuilt(f"{name}: {'; '.join(summary.warnings) or 'nothing was published'}")
        remove_lexical_folders(self._home, self._store.url, self._store.prune(name))
