"""Where dumps lie: in a folder of this machine or a bucket, whole or not at all."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pipelines.nights.dumps import BadDumpFolder, DumpFolder
from pipelines.store import DumpNotWritten


@pytest.fixture
def bucket(tmp_path: Path) -> DumpFolder:
    """A folder behind another file system: what is of a bucket goes through this machine."""
    (tmp_path / "bucket" / "dumps").mkdir(parents=True)
    system = SubTreeFileSystem(str(tmp_path / "bucket"), LocalFileSystem())
    return DumpFolder("s3://bucket/dumps", system, "dumps", tmp_path / ".docs.dump")


def written(folder: DumpFolder, name: str = "a.dump", text: str = "whole") -> int:
    return folder.put(name, lambda path: path.write_text(text))


def test_a_bucket_gets_a_whole_dump_and_gives_it_back(bucket, tmp_path):
    assert bucket.names() == [] and written(bucket) == 5
    assert bucket.names() == ["a.dump"]
    with bucket.get("a.dump") as path:
        assert path.read_text() == "whole"
    bucket.remove("a.dump")
    assert bucket.names() == [] and [path.name for path in tmp_path.iterdir()] == ["bucket"]


def test_a_bucket_that_can_not_be_written_is_said_before_and_gets_nothing(bucket, tmp_path):
    (tmp_path / "bucket" / "dumps").rmdir()
    with pytest.raises(BadDumpFolder, match=r"night\.dump\.folder: s3://bucket/dumps can't be used"):
        bucket.check()  # the file system below makes no folder
    with pytest.raises(DumpNotWritten, match=r"a\.dump can't be written.*nothing is left of it"):
        written(bucket)
    assert [path.name for path in tmp_path.iterdir()] == ["bucket"]


def test_a_dump_that_did_not_come_whole_is_removed(bucket, tmp_path, monkeypatch):
    def cut(source, target, **systems):
        (tmp_path / "bucket" / target).write_text("wh")

    monkeypatch.setattr("pipelines.nights.dumps.copy_files", cut)
    with pytest.raises(DumpNotWritten, match="2 of its 5 bytes"):
        written(bucket)
    assert bucket.names() == []


def test_an_empty_file_that_a_killed_upload_left_is_no_dump(bucket, tmp_path):
    (tmp_path / "bucket" / "dumps" / "a.dump").touch()
    assert bucket.names() == []


def test_what_a_killed_night_left_of_a_dump_is_overwritten(tmp_path):
    folder = DumpFolder.open(str(tmp_path), tmp_path, Path(".docs.dump"))

    def write(path: Path) -> None:
        assert path == tmp_path / ".docs.dump"
        path.write_text("whole")

    (tmp_path / ".docs.dump").write_text("half of another")
    assert folder.put("a.dump", write) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["a.dump"]


def test_a_dump_that_could_not_be_made_leaves_nothing(bucket):
    with pytest.raises(ZeroDivisionError):
        bucket.put("a.dump", lambda path: 1 / 0)
    assert bucket.names() == []


@pytest.mark.parametrize("name", ["nope://x/y", "none", "file:///none/there"])
def test_a_folder_that_is_none_is_refused_with_its_name(name, tmp_path):
    with pytest.raises(BadDumpFolder, match=name):
        DumpFolder.open(name, tmp_path, tmp_path / ".docs.dump").names()


def test_a_folder_is_named_by_path_or_url(tmp_path):
    (tmp_path / "dumps").mkdir()
    for name in ("dumps", str(tmp_path / "dumps"), (tmp_path / "dumps").as_uri()):
        folder = DumpFolder.open(name, tmp_path, tmp_path / "no home" / ".docs.dump")
        folder.check()
        assert written(folder) == 5 and folder.names() == ["a.dump"]
        with folder.get("a.dump") as path:
            assert path == tmp_path / "dumps" / "a.dump"
