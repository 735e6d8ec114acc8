"""Restoring an untrusted file: a clear refusal, and nothing stored, written or run.

Each case changes one thing in a valid dump.
"""

import builtins
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.databases import DatabaseServer
from kit.reporting import table
from kit.workshop import SMALL_BUILD, Workshop, small_site

from jobs.cli import BadInput
from jobs.restore import dumped_collection
from pipelines.store import NotADump, RunLock, Store, dump, restore

Members = dict[str, bytes]


class RunsWhenLoaded:
    """Writes a file when unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return builtins.open, (f"{os.environ['RAYDEX_TEST_TARGET']}", "w")


def manifest(**changes: Any) -> Callable[[Members], Members]:
    """Change entries of the manifest. A dotted name is a nested entry."""

    def change(members: Members) -> Members:
        values = json.loads(members["manifest.json"])
        for name, value in changes.items():
            outer, _, inner = name.partition("__")
            if inner:
                values[outer][inner] = value
            else:
                values[name] = value
        return members | {"manifest.json": json.dumps(values).encode()}

    return change


def replaced(name: str, body: bytes) -> Callable[[Members], Members]:
    return lambda members: members | {name: body}


def cut(name: str, tail: bytes = b"") -> Callable[[Members], Members]:
    """Remove the end of a member, but keep the stream's trailer."""
    return lambda members: members | {name: members[name][: len(members[name]) // 2] + tail}


def bigger_field(members: Members) -> Members:
    """Make the first field claim a size of 2 GiB."""
    body = bytearray(members["chunks"])
    body[21:25] = struct.pack(">i", 2**31 - 1)
    return members | {"chunks": bytes(body)}


INJECTION = "vector(64)); drop table page cascade; create table pwned (v vector"
CASES: dict[str, Callable[[Members], Members]] = {
    "member ../../evil": replaced("../../evil", b"slipped"),
    "member /tmp/raydex-evil": replaced("/tmp/raydex-evil", b"slipped"),
    "member ..\\evil": replaced("..\\evil", b"slipped"),
    "more chunks promised": manifest(counts={"chunks": 10_000, "pages": 3, "sections": 9}),
    "fewer chunks promised": manifest(counts={"chunks": 1, "pages": 3, "sections": 9}),
    "negative counts": manifest(counts={"chunks": -1, "pages": -1, "sections": -1}),
    "no counts": manifest(counts={}),
    "counts of words": manifest(counts={"chunks": "many"}),
    "chunks of another index left out": cut("chunks", b"\xff\xff"),
    "pages left out": cut("pages", b"\xff\xff"),
    "chunks twice": lambda members: members | {"chunks": members["chunks"][:-2] + members["chunks"][19:]},
    "pickled manifest": replaced("manifest.json", pickle.dumps(RunsWhenLoaded)),
    "pickled chunks": replaced("chunks", pickle.dumps({"chunks": [1]})),
    "pickled pages": replaced("pages", pickle.dumps({"pages": [1]})),
    "SQL as vector type": manifest(settings__vector_type=INJECTION),
    "SQL as dimension": manifest(settings__dimension="64); drop table page; --"),
    "SQL as column": manifest(columns=["id\"); drop table page; --"]),
    "SQL as format": manifest(format="raydex index 1'; drop table page; --"),
    "dimension 0": manifest(settings__dimension=0),
    "dimension -1": manifest(settings__dimension=-1),
    "dimension 10**9": manifest(settings__dimension=10**9),
    "another dimension": manifest(settings__dimension=65),
    "unknown setting": manifest(settings__trust_remote_code=True),
    "settings are a list": manifest(settings=[]),
    "columns are a word": manifest(columns="id"),
    "columns are none": manifest(columns=[]),
    "manifest is a list": replaced("manifest.json", b"[]"),
    "manifest is no JSON": replaced("manifest.json", b"{"),
    "manifest nested 100,000 deep": replaced("manifest.json", b"[" * 100_000),
    "manifest of 100 MB": replaced("manifest.json", b" " * 100_000_000),
    "no manifest": lambda members: {name: body for name, body in members.items() if name != "manifest.json"},
    "no chunks": lambda members: {name: body for name, body in members.items() if name != "chunks"},
    "empty chunks": replaced("chunks", b""),
    "200 MB of zeros as chunks": replaced("chunks", bytes(200_000_000)),
    "a field of 2 GiB": bigger_field,
    "text for pages": replaced("pages", b"https://docs.test/\tok\t200\n"),
}  # fmt: skip
# The collections into which these files are restored.
HARMLESS = {"member ../../evil": "two", "member /tmp/raydex-evil": "three", "member ..\\evil": "four"}


report = table("restore files", ("tried", "held"))


@pytest.fixture(scope="module")
def store(server: DatabaseServer) -> Iterator[Store]:
    """One store for all cases: a refused file leaves it unchanged."""
    with server.database() as url, Store(url) as store:
        Workshop(store, "one").reindex(small_site(3))
        yield store


@pytest.fixture(scope="module")
def good(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "good.dump"
    dump(store, store.live_index("one"), path)
    return path


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return path


def restored(store: Store, path: Path, name: str = "hostile") -> dict[str, int]:
    lock = RunLock(store, name)
    assert lock.try_acquire()
    try:
        run = lock.begin("restore", None)
        return restore(lock, run, path, SMALL_BUILD)[1]
    finally:
        lock.release()


def stored(url: str) -> dict[str, Any]:
    """Return everything that a restore could change."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public' order by 1").fetchall()
        pages = connection.execute("select count(*) from page").fetchone()
        indexes = connection.execute("select count(*) from index").fetchone()
    return {"tables": tables, "pages": pages, "indexes": indexes}


@pytest.mark.parametrize("case", CASES)
def test_untrusted_dump_is_refused_or_harmless(store, good, tmp_path, monkeypatch, report, case):
    target = tmp_path / "written by a pickle"
    monkeypatch.setenv("RAYDEX_TEST_TARGET", str(target))
    path = write(tmp_path / "hostile.dump", CASES[case](members_of(good)))
    before, files = stored(store.url), sorted(tmp_path.rglob("*"))
    if case in HARMLESS:
        name = HARMLESS[case]
        assert restored(store, path, name) == store.index_stats(store.candidate_index(name).id)
        held = "restored; the member is not read"
    else:
        with pytest.raises(NotADump) as refused:
            restored(store, path)
        held = str(refused.value).removeprefix(f"{path} ")
        assert str(path) in str(refused.value)
        assert stored(store.url) == before
    assert sorted(tmp_path.rglob("*")) == files and not Path("/tmp/raydex-evil").exists()
    report.append((case, held[:110]))


def test_encrypted_file_is_refused(good, tmp_path):
    body = bytearray(good.read_bytes())
    at = body.index(b"PK\x01\x02")
    body[at + 8] |= 1
    (tmp_path / "locked.dump").write_bytes(body)
    with pytest.raises(BadInput, match="encrypted"):
        dumped_collection(tmp_path / "locked.dump")


def test_restore_refuses_other_files_in_one_sentence(tmp_path):
    zipped = b"PK\x05\x06" + bytes(18)
    for name, body in {"empty": b"", "text": b"hello", "pickle": pickle.dumps([1]), "zip": zipped}.items():
        (tmp_path / name).write_bytes(body)
        with pytest.raises(BadInput, match="is not a complete dump"):
            dumped_collection(tmp_path / name)
