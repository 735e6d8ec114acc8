"""A file or folder appears when it is complete, replaces the old one, and leaves nothing next to it."""

import stat
from pathlib import Path

import pytest

from pipelines.files.atomic_files import keep_private, settle_folder, whole_file, whole_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_is_replaced_when_complete_and_a_failure_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as making:
        making.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old" and names(tmp_path) == ["data.jsonl"]
    with whole_file(path) as making:
        making.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and names(tmp_path) == ["data.jsonl"]


def test_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    (tmp_path / ".secret.making").touch(mode=0o644)  # left by a killed process
    with whole_file(path, private=True) as making:
        assert stat.S_IMODE(making.stat().st_mode) == 0o600
        making.write_text("word")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_text() == "word"


def test_folder_replaces_the_old_one_and_leftovers_of_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "model"
    for text in ("old", "new"):
        with whole_folder(path) as making:
            (making / text).touch()
            assert names(making) == [text]
        (tmp_path / "deep" / ".model.making").mkdir()
        (tmp_path / "deep" / ".model.making" / "junk").touch()
    assert names(path) == ["new"]
    with whole_folder(path, private=True) as making:
        assert names(making) == [] and stat.S_IMODE(making.stat().st_mode) == 0o700
    assert names(path.parent) == ["model"] and names(path) == []


def test_failing_folder_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(ZeroDivisionError), whole_folder(path) as making:
        (making / "half").touch()
        raise ZeroDivisionError
    assert names(path) == ["old"] and names(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("left", "kept"), [([".model.old"], "old"), ([".model.old", "model"], "new"), (["model"], "new")]
)
def test_interrupted_replacement_is_completed(tmp_path: Path, left: list[str], kept: str) -> None:
    for name in left:
        (tmp_path / name).mkdir()
        (tmp_path / name / ("old" if name == ".model.old" else "new")).touch()
    settle_folder(tmp_path / "model")
    assert names(tmp_path) == ["model"] and names(tmp_path / "model") == [kept]


def test_shared_files_become_private_and_keep_the_rights_of_the_owner(tmp_path: Path) -> None:
    folder, file = tmp_path / "home", tmp_path / "home" / "file"
    folder.mkdir()
    file.touch()
    folder.chmod(0o755)
    file.chmod(0o444)
    keep_private(folder)
    keep_private(file)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o400
