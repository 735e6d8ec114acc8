"""Runs pgbouncer in front of a database, because hosted Postgres often has a pooler.

pgbouncer comes with the system (Debian: `apt-get install pgbouncer`). Tests skip if it is missing.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/opt/homebrew/bin")
needs_pgbouncer = pytest.mark.skipif(not PROGRAM, reason="pgbouncer is not installed (`apt-get install pgbouncer`)")


@contextmanager
def run_pooler(url: str, mode: str = "transaction", **settings: object) -> Iterator[str]:
    """Yield a URL of the database `url` through a pgbouncer with this `pool_mode`."""
    server = urlsplit(url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    values = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": mode,
        "default_pool_size": 12,
        **settings,
    }
    lines = [
        "[databases]",
        f"* = host={server.hostname} port={server.port} user={server.username} password={server.password}",
        "[pgbouncer]",
        *(f"{name} = {value}" for name, value in values.items()),
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "pgbouncer.ini")
        config.write_text("\n".join([*lines, ""]))
        Path(folder).chmod(0o755)
        account = ["-u", "nobody"] if os.geteuid() == 0 else []  # it refuses to run as root
        with Path(folder, "log").open("wb") as log:
            pooler = subprocess.Popen([str(PROGRAM), "-q", *account, str(config)], stdout=log, stderr=log)
        try:
            yield _ready(server._replace(netloc=f"me@127.0.0.1:{port}").geturl(), pooler, Path(folder, "log"))
        finally:
            pooler.kill()
            pooler.wait()


def _ready(url: str, pooler: "subprocess.Popen[bytes]", log: Path) -> str:
    """Return `url` once the pooler answers."""
    deadline = time.monotonic() + 30.0
    while pooler.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError as error:
            problem = str(error)
            time.sleep(0.05)
        else:
            return url
    raise AssertionError(f"pgbouncer does not answer: {problem if pooler.poll() is None else log.read_text()}")
