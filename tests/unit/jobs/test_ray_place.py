"""A local Ray starts in a folder that it can use; without one, the reason is reported before any work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import ray_place
from pipelines.ray_place import NoPlaceForRay, find_place, first_words, trouble_in, why_unusable

LONG = "a-folder-of-a-scheduler/whose-name-is-long/and-has-the-number-of-the-job/1234567890123456789012345678901"
TIMED_OUT = "Timed out waiting for file /tmp/ray/x/metrics_agent_port"
SAID = (
    "[2026-12-31 23:59:59,123 I 42 42] logging.cc:303: Set ray log level from environment variable\n"
    "[2026-12-31 23:59:59,124 C 42 42] (raylet) node_manager.cc:3576:  An unexpected system state has occurred. "
    f"You have likely discovered a bug in Ray. Check failed: {TIMED_OUT}\n"
    "*** StackTrace Information ***\n"
)


def test_named_folder_is_used_if_ray_can_use_it(tmp_path: Path) -> None:
    short = Path(f"/tmp/rdx-{os.getpid()}")
    try:
        place = find_place({"RAY_TMPDIR": str(short), "TMPDIR": "/nowhere"})
        assert (place.folder, place.warnings) == (short / "ray", ())
        assert place.options()["_temp_dir"] == str(short / "ray")
    finally:
        (short / "ray").rmdir()
        short.rmdir()


@pytest.mark.parametrize("variable", ["RAY_TMPDIR", "TMPDIR"])
@pytest.mark.parametrize(
    ("named", "said"),
    [(f"/tmp/{LONG}", "too long a path"), ("/dev/null", "Not a directory"), ("/proc/nothing-here", "can't be made")],
)
def test_unusable_folder_is_reported_and_replaced_by_a_short_one(named: str, said: str, variable: str) -> None:
    if sys.platform != "linux":
        pytest.skip("Ray reads TMPDIR on Linux alone, and /proc is there")
    place = find_place({variable: named})
    assert len(os.fsencode(place.folder)) < 30 and why_unusable(place.folder) == ""
    [warning] = place.warnings
    assert named in warning and said in warning and warning.endswith(f"Ray works in {place.folder}")
    assert not Path(named).is_dir()


def test_folder_of_another_account_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's owner could replace its contents. In a sticky folder such as /tmp, only each file's owner can."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another account")
    folder = Path(f"/tmp/rdx-other-{os.getpid()}")
    folder.mkdir()
    try:
        os.chown(folder, 65534, 65534)
        assert why_unusable(folder) == f"{folder} belongs to another account"
        folder.chmod(0o1777)
        assert why_unusable(folder) == ""
    finally:
        folder.rmdir()


def test_folder_without_room_is_skipped_and_all_are_named_if_none_is_left(monkeypatch) -> None:
    monkeypatch.setattr(ray_place, "LEAST_FREE", 1 << 60)
    with pytest.raises(
        NoPlaceForRay, match=r"/tmp/ray .*MiB free; .*/var/tmp/ray.*: let RAY_TMPDIR name one of at most"
    ):
        find_place({})


@pytest.mark.skipif(sys.platform != "linux", reason="Ray uses shared memory on Linux alone")
def test_objects_are_kept_on_disk_without_shared_memory() -> None:
    place = find_place({}, Path("/proc"))
    assert place.objects == place.folder and "slower" in place.warnings[-1]
    assert place.options()["_plasma_directory"] == str(place.folder)
    assert 80 << 20 <= int(str(place.options()["object_store_memory"])) <= 1 << 30


def test_too_few_open_files_are_reported_before_startup() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "from pipelines.cluster import UnreachableCluster, check_place\n"
        "try: check_place()\nexcept UnreachableCluster as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "Ray can't start here: a process may open 100 files: Ray needs 256: raise the hard limit of `ulimit -Hn`\n"
    )


def test_ray_messages_are_quoted_from_the_session_of_this_process(tmp_path: Path) -> None:
    for pid, said in ((1, "of another"), (42, SAID)):
        logs = tmp_path / f"session_2026-12-31_23-59-59_1_{pid}" / "logs"
        logs.mkdir(parents=True)
        (logs / "raylet.err").write_text(said)
    assert first_words(tmp_path, 42) == f"raylet.err: {TIMED_OUT}"
    assert first_words(tmp_path, 7) == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[2026-12-31 23:59:59,1 I 1 1] logging.cc:303: Set ray log level", ""),
        ("[2026-12-31 23:59:59,1 E 1 1] (raylet) main.cc:1: no such file", "no such file"),
        ("bash: raylet: Permission denied", "bash: raylet: Permission denied"),
        ("", ""),
    ],
)
def test_log_line_is_an_error_or_not(line: str, said: str) -> None:
    assert trouble_in(line) == said
