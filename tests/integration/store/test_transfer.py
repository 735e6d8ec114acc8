"""A dump contains a complete index with its pages, and a restore is all or nothing."""

import json
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from kit.processes import full_disk
from kit.reindexing import Jobs
from kit.workshop import BASE, Workshop, nearest_hits, restored

from benchmarks.peer.corpus import export
from pipelines.store import DumpNotWritten, NoLiveIndex, NotADump, Store, dump

SITE = {f"page{n}": {"a": f"The text of page {n} on apples.", "b": f"More on pears, number {n}."} for n in range(5)}


@pytest.fixture
def dumped(store: Store, tmp_path: Path) -> Path:
    """Return a dump of the collection "one"."""
    Workshop(store, "one").reindex(SITE)
    dump(store, store.live_index("one"), tmp_path / "one.dump")
    return tmp_path / "one.dump"


def content(store: Store, name: str) -> dict[str, tuple[object, ...]]:
    with store.scan_chunks(store.live_index(name).id) as (_, hits):
        return {hit.chunk_id: (hit.url, hit.anchors, hit.title, hit.headings, hit.text) for hit in hits}


def test_restored_collection_equals_the_dump_and_can_be_updated(store: Store, tmp_path: Path) -> None:
    workshop = Workshop(store, "one")
    workshop.reindex(SITE)
    manifest = dump(store, store.live_index("one"), tmp_path / "one.dump")
    restored(store, "two", tmp_path / "one.dump")
    assert manifest.counts["chunks"] == len(content(store, "one")) == 10
    assert content(store, "two") == content(store, "one")
    query = workshop.embedder.embed_query("apples")
    nearest = [nearest_hits(store, store.live_index(name), query, 3) for name in ("one", "two")]
    assert [hit.chunk_id for hit in nearest[0]] == [hit.chunk_id for hit in nearest[1]]
    assert np.allclose([hit.score for hit in nearest[0]], [hit.score for hit in nearest[1]], atol=1e-6)
    workshop = Workshop(store, "two")
    publication = workshop.reindex(SITE | {"page1": {"a": "Another text."}})
    assert (workshop.embedded, publication.written, publication.deleted) == (1, 1, 2)


def test_index_is_exported_as_files_for_other_libraries(store: Store, tmp_path: Path) -> None:
    workshop = Workshop(store, "one")
    workshop.reindex(SITE)
    corpus = export(tmp_path, store.url, "one", lambda: (["apples"], np.ones((1, 2))))
    ids = [json.loads(line)["id"] for line in (corpus.folder / "chunks.jsonl").read_text().splitlines()]
    query = workshop.embedder.embed_query("apples")
    scores = dict(zip(ids, np.load(corpus.folder / "vectors.npy") @ query, strict=True))
    nearest = nearest_hits(store, store.live_index("one"), query, 10)
    assert scores == pytest.approx({hit.chunk_id: hit.score for hit in nearest}, abs=1e-3)
    assert (corpus.chunks, corpus.questions) == (10, ["apples"])


def test_restore_without_publishing_leaves_a_candidate(store: Store, dumped: Path) -> None:
    restored(store, "two", dumped, publish=False)
    assert store.candidate_index("two") is not None
    with pytest.raises(NoLiveIndex):
        store.live_index("two")


def test_full_disk_is_a_clear_error_that_loses_nothing(store: Store, tmp_path: Path) -> None:
    Workshop(store, "one").reindex(SITE)
    path = tmp_path / "one.dump"
    path.write_text("an older dump")
    with full_disk(after_bytes=2_000), pytest.raises(DumpNotWritten, match=f"{path} can't be written: .*; nothing is"):
        dump(store, store.live_index("one"), path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["an older dump"]
    dump(store, store.live_index("one"), path)
    restored(store, "two", path)


def test_truncated_or_damaged_file_is_refused_and_leaves_nothing(store: Store, dumped: Path) -> None:
    whole = dumped.read_bytes()
    at, size = len(whole) // 3, len(whole)
    flipped = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
    for body in (b"", whole[: size * 3 // 10], whole[: size * 9 // 10], flipped):
        dumped.write_bytes(body)
        with pytest.raises(NotADump, match=str(dumped)):
            restored(store, "two", dumped)
        assert (store.status("two")["indexes"], store.status("two")["pages"]) == ([], {})


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"no zlib", "is damaged"),
        (zlib.compress(b"A whole page. " * 50)[:-9], "is cut off"),
        (zlib.compress(bytes(100_000_001)), "has more than 100,000,000 bytes"),
    ],
    ids=["damaged", "cut off", "too large"],
)
def test_dump_with_a_body_that_no_update_can_read_is_refused(store: Store, tmp_path: Path, body, fault) -> None:
    Workshop(store, "one").reindex(SITE)
    with store.connect() as connection:
        connection.execute("update page set body = %s where url = %s", [body, f"{BASE}page3"])
    dump(store, store.live_index("one"), tmp_path / "one.dump")
    with pytest.raises(NotADump, match=f"the body of {BASE}page3 {fault}"):
        restored(store, "two", tmp_path / "one.dump")
    assert (store.status("two")["indexes"], store.status("two")["pages"]) == ([], {})


def test_dump_that_lists_a_column_twice_is_refused(store: Store, dumped: Path) -> None:
    with zipfile.ZipFile(dumped) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    manifest["columns"].append(manifest["columns"][0])
    with zipfile.ZipFile(dumped, "w") as archive:
        for name, content in (members | {"manifest.json": json.dumps(manifest).encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(NotADump, match="it lists a column twice: "):
        restored(store, "two", dumped)


def test_live_collection_is_replaced_only_on_request(store: Store, tmp_path: Path, jobs: Jobs) -> None:
    workshop, file = Workshop(store), tmp_path / "docs.dump"
    workshop.reindex(SITE)
    dump(store, workshop.live(), file)
    workshop.reindex(SITE | {"page1": {"a": "Another text."}})
    state = store.status("docs")
    for flags in ([], ["--no-publish"]):
        refused = jobs.run("restore", file, *flags)
        assert refused.code == 2 and "is live (5 pages, 9 chunks), nothing is changed: `--replace`" in refused.messages
        assert store.status("docs") == state
    assert jobs.run("restore", file, "--collection", "other").code == 0
    assert jobs.run("restore", file, "--replace").summary["chunks"] == 10
    assert {*store.page_dates("docs", [f"{BASE}page1"])[f"{BASE}page1"].values()} == {f"{BASE}page1", None}
    assert content(store, "docs") == content(store, "other")
