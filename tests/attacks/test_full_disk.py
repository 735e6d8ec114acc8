"""A full disk under Postgres is reported as such, loses nothing, and the next run finishes the work.

Requires the right to mount a small tmpfs (root). Without it, only the translation of the error is tested.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from kit.processes import eventually
from kit.reporting import leave_table
from kit.workshop import Workshop, small_site

from pipelines import embedded
from pipelines.store import DatabaseFull, Store, StoreUnavailable, can_connect

SIZE_MB, LEFT_MB = 400, 1
SITE = small_site(20)
LARGE = SITE | {
    f"q{page:03}": {f"s{part}": f"Subject {page * 40 + part} " + f"of {page} " * 100 for part in range(40)}
    for page in range(20)
}


def test_full_disk_is_not_treated_as_an_unreachable_database(database_url):
    with Store(database_url, retry_s=60) as store:
        calls = []

        def full(connection: psycopg.Connection) -> None:
            calls.append(1)
            raise psycopg.errors.DiskFull("could not extend file: No space left on device")

        with pytest.raises(DatabaseFull, match=r"disk of the database is full.*raydex prune"):
            store._do(full)
        assert len(calls) == 1  # it is not waited for


@contextmanager
def small_disk() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="raydex-full-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    try:
        if mounted.returncode:
            pytest.skip(f"may not mount a small disk: {mounted.stderr.strip()}")
        yield folder
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)
        folder.rmdir()


def fill(folder: Path, left: int = LEFT_MB) -> Path:
    """Leave that many MB free."""
    disk = os.statvfs(folder)
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - (left << 20))
    return ballast


@pytest.mark.slow
def test_run_on_a_full_disk_fails_clearly_and_loses_nothing(request):
    with small_disk() as folder, embedded.run_postgres(folder / "home") as url, Store(url, retry_s=3) as store:
        store.migrate()
        workshop = Workshop(store)
        workshop.reindex(SITE)
        before = workshop.texts()
        ballast = fill(folder)
        with pytest.raises(StoreUnavailable) as failed:
            workshop.reindex(LARGE)
        ballast.unlink()
        eventually(lambda: _answers(store), "the database answers again", 60)
        assert workshop.texts() == before
        assert workshop.reindex(LARGE).published
        undisturbed = Workshop(store, "undisturbed")
        undisturbed.reindex(LARGE)
        assert workshop.texts() == undisturbed.texts()
        chunks = sum(map(len, workshop.texts().values()))
    tried, said = f"{LEFT_MB} MB left for {len(LARGE)} pages", f"{type(failed.value).__name__}: {failed.value}"[:150]
    rows = [(tried, said, f"{chunks:,} chunks equal to those of a run undisturbed")]
    leave_table(request.config, "full disk", ("tried", "error", "after room was made"), rows)


@pytest.mark.slow
def test_server_reports_a_full_disk_and_starts_once_there_is_room():
    with small_disk() as folder:
        home = folder / "home"
        with embedded.run_postgres(home):
            pass
        eventually(lambda: not embedded._is_kept(home), "the server is stopped")
        ballast = fill(folder, left=0)
        with pytest.raises(embedded.EmbeddedPostgresFailed, match=r"disk is full \(0 MiB left\)"):
            embedded.run_postgres(home).__enter__()
        ballast.unlink()
        with embedded.run_postgres(home) as url:
            assert can_connect(url)
        eventually(lambda: not embedded._is_kept(home), "the server is stopped")


def _answers(store: Store) -> bool:
    try:
        store.collections()
    except StoreUnavailable:
        return False
    return True
