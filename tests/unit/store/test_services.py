"""A running service can be found in its home folder; a stopped or killed one cannot."""

import signal
import subprocess
import sys
from pathlib import Path

from pipelines.files.services import announce, find_services

KILLED = """
import sys, time
from pathlib import Path
from pipelines.files.services import announce
with announce(Path(sys.argv[1]), "http://127.0.0.1:1", "docs"):
    print("announced", flush=True)
    time.sleep(600)
"""


def test_service_is_found_while_it_runs_latest_first(tmp_path: Path) -> None:
    assert find_services(tmp_path / "nothing here") == []
    with announce(tmp_path, "http://127.0.0.1:8000"):
        with announce(tmp_path, "http://127.0.0.1:8001", "docs"):
            assert [(found.url, found.collection) for found in find_services(tmp_path)] == [
                ("http://127.0.0.1:8001", "docs"),
                ("http://127.0.0.1:8000", ""),
            ]
        assert [found.url for found in find_services(tmp_path)] == ["http://127.0.0.1:8000"]
    assert find_services(tmp_path) == []


def test_killed_service_is_not_found_and_its_file_is_removed_by_the_next(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline()
        assert [(found.pid, found.collection) for found in find_services(tmp_path)] == [(child.pid, "docs")]
        child.send_signal(signal.SIGKILL)
    assert find_services(tmp_path) == []
    with announce(tmp_path, "http://127.0.0.1:2"):
        assert len(list((tmp_path / "services").iterdir())) == 1


def test_file_that_is_no_announcement_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "strange.json").write_text("no JSON")
    assert find_services(tmp_path) == []


def test_file_that_vanishes_while_a_service_starts_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "vanished.json").symlink_to(tmp_path / "nothing here")  # listed, but has no state
    with announce(tmp_path, "http://127.0.0.1:3"):
        assert [found.url for found in find_services(tmp_path)] == ["http://127.0.0.1:3"]
