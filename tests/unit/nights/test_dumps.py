"""Dumps are stored in a local folder or a bucket, completely or not at all."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pipelines.nights.dumps import BadDumpFolder, DumpFolder
from pipelines.store import DumpNotWritten


@pytest.fixture
def bucket(tmp_path: Path) -> DumpFolder:
    """Return a folder behind another file system: bucket files go through this machine."""
    (tmp_path / "bucket" / "dumps").mkdir(parents=True)
    system = SubTreeFileSystem(str(tmp_path / "bucket"), LocalFileSystem())
    return DumpFolder("s3://bucket/dumps", system, "dumps", tmp_path / ".docs.dump")


def written(folder: DumpFolder, name: str = "a.dump", text: str = "whole") -> int:
    return folder.put(name, lambda path: path.write_text(text))


def test_bucket_receives_a_whole_dump_and_returns_it(bucket, tmp_path):
    assert bucket.names() == [] and written(bucket) == 5
    assert bucket.names() == ["a.dump"]
    with bucket.get("a.dump") as path:
        assert path.read_text() == "whole"
    bucket.remove("a.dump")
    assert bucket.names() == [] and [path.name for path in tmp_path.iterdir()] == ["bucket"]


def test_unwritable_bucket_is_reported_before_the_dump(bucket, tmp_path):
    (tmp_path / "bucket" / "dumps").rmdir()
    with pytest.raises(BadDumpFolder, match=r"night\.dump\.folder: s3://bucket/dumps can't be used"):
        bucket.check()  # the underlying file system creates no folder
    with pytest.raises(DumpNotWritten, match=r"a\.dump can't be written.*nothing is left of it"):
        written(bucket)
    assert [path.name for path in tmp_path.iterdir()] == ["bucket"]


def test_incomplete_dump_is_removed(bucket, tmp_path, monkeypatch):
    def cut(source, target, **systems):
        (tmp_path / "bucket" / target).write_text("wh")

    monkeypatch.setattr("pipelines.nights.dumps.copy_files", cut)
    with pytest.raises(DumpNotWritten, match="2 of its 5 bytes"):
        written(bucket)
    assert bucket.names() == []


def test_empty_file_of_a_killed_upload_is_no_dump(bucket, tmp_path):
    (tmp_path / "bucket" / "dumps" / "a.dump").touch()
    assert bucket.names() == []


def test_partial_dump_of_a_killed_night_is_overwritten(tmp_path):
    folder = DumpFolder.open(str(tmp_path), tmp_path, Path(".docs.dump"))

    def write(path: Path) -> None:
        assert path == tmp_path / ".docs.dump"
        path.write_text("whole")

    (tmp_path / ".docs.dump").write_text("half of another")
    assert folder.put("a.dump", write) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["a.dump"]


def test_failed_dump_leaves_nothing(bucket):
    with pytest.raises(ZeroDivisionError):
        bucket.put("a.dump", lambda path: 1 / 0)
    assert bucket.names() == []


@pytest.mark.parametrize("name", ["nope://x/y", "none", "file:///none/there"])
def test_invalid_folder_is_refused_by_name(name, tmp_path):
    with pytest.raises(BadDumpFolder, match=name):
        DumpFolder.open(name, tmp_path, tmp_path / ".docs.dump").names()


def test_folder_can_be_a_path_or_a_url(tmp_path):
    (tmp_path / "dumps").mkdir()
    for name in ("dumps", str(tmp_path / "dumps"), (tmp_path / "dumps").as_uri()):
        folder = DumpFolder.open(name, tmp_path, tmp_path / "no home" / ".docs.dump")
        folder.check()
        assert written(folder) == 5 and folder.names() == ["a.dump"]
        with folder.get("a.dump") as path:
            assert path == tmp_path / "dumps" / "a.dump"
