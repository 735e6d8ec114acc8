"""A column declared once is stored, updated, searched, dumped and restored, even in older indexes."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import psycopg
import pytest
from kit.workshop import Workshop, restored

from pipelines.page.stored import plain_text
from pipelines.records import Chunk
from pipelines.store import NotADump, Store, dump
from pipelines.store.chunks import CHUNK_COLUMNS, Column

DATA = Path(__file__).parents[2] / "data"
SITE = {f"page{n}": {"a": f"The text of page {n}.", "b": f"More on it, number {n}."} for n in range(4)}


@dataclass(frozen=True, slots=True)
class NotedChunk(Chunk):
    """A chunk with an additional field."""

    note: str = ""


class WiderStore(Store):
    """A store of chunks with notes, which hits show as their context."""

    columns = CHUNK_COLUMNS.extended(Column("note", "text", hit="context", default="'of before'"))


class NotingWorkshop(Workshop):
    """A workshop that writes `note` to every chunk."""

    note = "first"

    def chunks(self, url: str, sections: dict[str, str]) -> list[Chunk]:  # type: ignore[override]
        chunks = super().chunks(url, sections)
        return [NotedChunk(**{f.name: getattr(c, f.name) for f in fields(c)}, note=self.note) for c in chunks]


def notes(store: Store, name: str = "docs") -> dict[str, int]:
    """Return how many chunks of the live index have each note."""
    counts: dict[str, int] = {}
    with store.scan_chunks(store.live_index(name).id) as (_, hits):
        for hit in hits:
            counts[hit.context] = counts.get(hit.context, 0) + 1
    return counts


@pytest.fixture
def wider(store: Store) -> Iterator[WiderStore]:
    """Return a WiderStore on the database of `store`, not yet migrated."""
    with WiderStore(store.url) as wider:
        yield wider


def test_both_texts_of_a_chunk_are_stored(store: Store) -> None:
    text = "Set `a_b` to 2 * 3 [now]."
    workshop = Workshop(store)
    workshop.reindex({"page": {"a": text}})
    (hit,) = workshop.search("a_b", 1)
    assert hit.plain == text == plain_text(hit.text) and hit.text != text


def test_additional_column_is_published_searched_and_updated(wider: WiderStore) -> None:
    wider.migrate()
    workshop = NotingWorkshop(wider)
    workshop.reindex(SITE)
    assert notes(wider) == {"first": 8}
    assert {hit.context for hit in workshop.search("page 2", 3)} == {"first"}
    assert workshop.search("page 2", 1)[0].anchors == ("a",)
    workshop.note = "second"
    published = workshop.reindex(SITE | {"page1": {"a": "The text of page 1.", "b": "Another."}})
    assert published.in_place and published.written == 2  # even with the same text, because its note differs
    assert notes(wider) == {"first": 6, "second": 2}
    workshop.use("hash:32")
    assert not workshop.reindex(SITE).in_place
    assert notes(wider) == {"second": 8}


def test_older_indexes_and_staged_chunks_get_the_column(store: Store, wider: WiderStore) -> None:
    before = Workshop(store)
    before.reindex(SITE)
    lock = before.lock()
    before.prepare(lock, SITE | {"page1": {"a": "Staged before."}})
    lock.release()
    for _ in range(2):
        wider.migrate()
    assert notes(wider) == {"of before": 8}
    with psycopg.connect(store.url) as connection:
        assert connection.execute("select note from staged_chunk").fetchall() == [("of before",)]
    workshop = NotingWorkshop(wider)
    workshop.reindex(SITE | {"page1": {"a": "Published after."}})
    assert notes(wider) == {"of before": 6, "first": 1}
    assert Workshop(store).reindex(SITE).written == 2  # by a process of the previous version
    assert notes(wider) == {"of before": 8}


def test_additional_column_is_restored_by_name_or_refused_if_unknown(store, wider, tmp_path):
    wider.migrate()
    NotingWorkshop(wider).reindex(SITE)
    manifest = dump(wider, wider.live_index("docs"), tmp_path / "docs.dump")
    restored(wider, "again", tmp_path / "docs.dump")
    assert manifest.columns[-1] == "note" and notes(wider, "again") == {"first": 8}
    with pytest.raises(NotADump, match=r"docs\.dump holds columns .*\(note\).*newer"):
        restored(store, "third", tmp_path / "docs.dump")
    assert store.status("third")["indexes"] == []


def test_dump_without_the_column_is_restored_with_its_default(store, wider, tmp_path):
    Workshop(store).reindex(SITE)
    dump(store, store.live_index("docs"), tmp_path / "docs.dump")
    wider.migrate()
    restored(wider, "again", tmp_path / "docs.dump")
    assert notes(wider, "again") == {"of before": 8}


@pytest.mark.parametrize("kind", [Store, WiderStore])
def test_dump_of_the_first_release_is_restored(kind: type[Store], store: Store) -> None:
    with kind(store.url) as own:
        own.migrate()
        restored(own, "docs", DATA / "index_0.1.0.dump")
        workshop = Workshop(own, "docs", "hash:8")
        assert workshop.texts()["p02#s0"] == ["Another text on page 2."] and len(workshop.ids()) == 5
        assert workshop.search("Title › s0 Another text on page 2.", 1)[0].text == "Another text on page 2."
        assert [answer.answer for answer in own.verified_answers("docs")] == ["So [1]."]
        if kind is WiderStore:
            assert notes(own) == {"of before": 5}
