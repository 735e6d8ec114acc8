"""A new machine unpacks BM25 from the store's archive, and builds it if that archive is missing, old or damaged."""

import threading
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from kit.processes import full_disk
from kit.workshop import Workshop, small_site

from pipelines.lexical import LexicalIndex, archive
from pipelines.records import Index
from pipelines.store import Store, StoreUnavailable


class Machines:
    """BM25 folders of several machines over one index; `builds` counts those that were built."""

    def __init__(self, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.builds, self._folder, self._made = store, 0, folder, 0
        self.workshop = Workshop(store)
        self.workshop.reindex(small_site(20))
        scan = store.scan_chunks

        @contextmanager
        def counted(index: int):
            self.builds += 1
            with scan(index) as found:
                yield found

        monkeypatch.setattr(store, "scan_chunks", counted)

    @property
    def index(self) -> Index:
        return self.store.live_index("docs")

    def new(self) -> LexicalIndex:
        """Return the synced BM25 of a machine that has none."""
        self._made += 1
        lexical = LexicalIndex(self._folder / str(self._made) / "1")
        assert lexical.sync(self.store, self.index) == self.index.revision
        return lexical

    def archived(self) -> LexicalIndex:
        """Return the BM25 of a machine that stores it."""
        first = self.new()
        first.keep_archive(self.store, self.index)
        return first

    def change_pieces(self, change: str) -> None:
        with psycopg.connect(self.store.url) as connection:
            connection.execute(change)  # type: ignore[call-overload]


@pytest.fixture
def machines(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    return Machines(store, tmp_path, monkeypatch)


def found(lexical: LexicalIndex) -> tuple[tuple[str, float], ...]:
    return lexical.search("What is the part of a page?", 10).scores


def test_second_machine_unpacks_what_the_first_one_built(machines: Machines, tmp_path: Path) -> None:
    first, second = machines.archived(), machines.new()
    assert machines.builds == 1 and found(first) == found(second) != ()
    assert not list(tmp_path.rglob("*.part")) and not list(tmp_path.rglob("*.archived"))


def test_unpacked_folder_follows_later_publishes(machines: Machines) -> None:
    machines.archived()
    machines.workshop.reindex(small_site(20) | {"new.html": {"": "Zebras are striped."}})
    second = machines.new()
    assert machines.builds == 1 and second.revision == machines.index.revision
    assert second.search("zebras", 3).scores


@pytest.mark.parametrize("change", [
    "delete from lexical_piece where number = (select max(number) from lexical_piece)",
    "update lexical_piece set content = overlay(content placing 'x'::bytea from 1) where number = 1",
    "update lexical_piece set file = '../' || file where number = 1",
    "update lexical_archive set digest = 'other'",
    "update lexical_archive set format = 'other'",
    "update lexical_archive set revision = 99",
    "delete from lexical_archive",
])  # fmt: skip
def test_archive_that_is_not_whole_or_fitting_is_not_used(machines: Machines, tmp_path: Path, change: str) -> None:
    first = machines.archived()
    machines.change_pieces(change)
    second = machines.new()
    assert machines.builds == 2 and found(first) == found(second)
    assert not list(tmp_path.rglob("*.part"))


def test_archive_of_another_index_is_not_used(machines: Machines) -> None:
    machines.archived()
    before = machines.index.id
    machines.workshop.use("hash:64", chunk_size=200)
    machines.workshop.reindex(small_site(10))
    with machines.store.lexical_pieces(before) as (old, pieces):
        machines.store.save_lexical_archive(machines.index.id, old, lambda copied=list(pieces): copied)
    second = machines.new()
    assert machines.builds == 2 and found(second) == found(machines.new())
    assert {name for name, _ in found(second)} <= set(machines.store.vectors(machines.index.id))


def test_full_disk_leaves_nothing_of_an_unpacked_folder(machines: Machines, tmp_path: Path) -> None:
    machines.archived()
    folder = tmp_path / "full" / "1"
    with full_disk(after_bytes=100):
        assert archive.unpack(machines.store, machines.index.id, folder) is None
    assert not folder.exists() and not list(folder.parent.iterdir())


def test_archive_stored_halfway_is_not_seen(machines: Machines) -> None:
    first = machines.new()

    def half():
        yield "meta.json", b"{}"
        raise OSError("the disk broke")

    new = archive.LexicalArchive(1, archive.FORMAT)
    with pytest.raises(OSError, match="the disk broke"):
        machines.store.save_lexical_archive(machines.index.id, new, half)
    assert machines.store.lexical_archive(machines.index.id) is None
    assert found(machines.new()) == found(first) and machines.builds == 2


def test_archive_is_renewed_when_it_is_old(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    first = machines.archived()
    monkeypatch.setattr(archive, "RENEWED_AFTER", 2)
    stored = []
    for number in range(3):
        machines.workshop.reindex(small_site(20) | {"new.html": {"": f"Zebra number {number}."}})
        first.sync(machines.store, machines.index)
        first.keep_archive(machines.store, machines.index)
        stored.append(machines.store.lexical_archive(machines.index.id).revision)
    assert stored == [1, 3, 3]


def test_only_one_of_two_machines_stores_at_a_time(machines: Machines) -> None:
    started, go = threading.Event(), threading.Event()
    new = archive.LexicalArchive(1, archive.FORMAT)

    def slowly():
        yield "one", b"1"
        started.set()
        go.wait(60)

    index = machines.index.id
    thread = threading.Thread(target=machines.store.save_lexical_archive, args=(index, new, slowly))
    thread.start()
    assert started.wait(60)
    assert machines.store.save_lexical_archive(index, new, lambda: [("two", b"2")]) is False
    go.set()
    thread.join()
    with machines.store.lexical_pieces(index) as (_, pieces):
        assert list(pieces) == [("one", b"1")]


def test_forgotten_folder_is_built_again_with_its_archive(machines: Machines) -> None:
    first = machines.archived()
    first.forget(machines.store, machines.index)
    assert machines.store.lexical_archive(machines.index.id) is None
    first.sync(machines.store, machines.index)
    assert machines.builds == 2


def test_lost_database_is_no_error_for_the_archive(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable("away")

    first = machines.new()
    monkeypatch.setattr(machines.store, "save_lexical_archive", away)
    first.keep_archive(machines.store, machines.index)
    assert machines.store.lexical_archive(machines.index.id) is None


def test_archive_of_a_pruned_index_is_gone(machines: Machines) -> None:
    machines.archived()
    index = machines.index
    machines.store.drop(["docs"])
    assert machines.store.lexical_archive(index.id) is None
