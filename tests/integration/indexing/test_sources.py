"""A kind of source is one class; runs, plans, deletions and single pages work with it without other changes."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from kit.reindexing import Jobs
from kit.workshop import BASE

from pipelines.indexing.collection import Collection, InvalidCollection, collection_from
from pipelines.indexing.sources.source import ConfiguredSource, SourcePage


class Notes(ConfiguredSource):
    """A file of notes, one page each: `name: text` on a line."""

    kind_name: ClassVar[str] = "notes"
    file: str

    @property
    def name(self) -> str:
        return self.file

    @property
    def prefixes(self) -> Sequence[str]:
        return (f"{BASE}notes/",)

    def pages(self) -> Iterable[SourcePage]:
        for line in Path(self.file).read_text().splitlines():
            title, _, text = line.partition(": ")
            yield SourcePage(f"{BASE}notes/{title.lower()}", text.encode(), title=title)


@pytest.mark.slow
def test_third_kind_of_source_is_indexed_planned_changed_and_deleted(jobs: Jobs, tmp_path: Path) -> None:
    notes, file = tmp_path / "notes.txt", tmp_path / "docs.yaml"
    notes.write_text("Backup: Runs at night.\nRestore: Takes an hour.\nLimits: Ten users. See [it](backup).\n")
    listed = {"sources": [{"kind": "notes", "file": str(notes)}], "max_delete_ratio": 0.5}
    file.write_text(yaml.safe_dump(listed))
    jobs.common = [file, "--no-ray", "--model", "hash:64"]
    plan = jobs.reindex("--dry-run").summary
    assert plan["sources"] == [{"name": str(notes), "pages": 3, "new_pages": 3, "is_remote": False, "max_pages": None}]
    assert plan["estimate"]["pages"] == 3
    first = jobs.reindex()
    assert (first.code, first.summary["pages"]["new"], first.summary["chunks"]["total"]) == (0, 3, 3)
    assert jobs.texts()["notes/backup#backup"] == "Runs at night."
    again = jobs.verb("reindex").summary  # with the stored settings
    assert (again["pages"]["unchanged"], again["chunks"]["embedded"]) == (3, 0)
    notes.write_text(notes.read_text().replace("an hour", "two hours").replace("at night", "at noon"))
    one = jobs.run("reindex", "docs", "--changed", f"{BASE}notes/restore", "--no-ray").summary
    assert (one["pages"]["changed"], jobs.texts()["notes/restore#restore"]) == (1, "Takes two hours.")
    assert jobs.texts()["notes/backup#backup"] == "Runs at night."
    notes.write_text("".join(notes.read_text().splitlines(keepends=True)[1:]))
    assert jobs.reindex().summary["pages"]["deleted"] == 1
    assert {source.partition("#")[0] for source in jobs.texts()} == {"notes/restore", "notes/limits"}


def test_unknown_kind_is_refused_with_the_known_kinds() -> None:
    with pytest.raises(InvalidCollection, match=r"sources\.0.*'issues' is not known; the kinds are .*notes"):
        collection_from({"name": "docs", "sources": [{"kind": "issues"}]}, "docs.yaml")
    with pytest.raises(InvalidCollection, match=r"sources\.0\.fil"):
        collection_from({"name": "docs", "sources": [{"kind": "notes", "fil": "x"}]}, "docs.yaml")


def test_collection_keeps_the_keys_of_its_sources() -> None:
    keys = {"kind": "notes", "file": "x"}
    collection = collection_from({"name": "docs", "sources": [keys]}, "docs.yaml")
    assert collection.as_stored()["sources"] == [keys]
    assert Collection.model_validate(collection.as_stored()) == collection
