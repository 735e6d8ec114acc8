"""Reproduces a newcomer's machine: a fresh clone, its environment, an empty HOME, and `raydex demo`.

    with ground() as land:
        place = land.settle("closed/raydex")
        try_demo(place)

The environment is a hard-linked copy of the tests' own environment. It moves from clone to clone, and Raydex itself is
reinstalled in each of them. A clone's documentation is reduced to one page, which is indexed quickly.
"""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kit.head_process import ROOT, free_ports
from kit.processes import eventually, marked

from jobs.documentation import BESIDE

# The page that answers the demo's question.
KEPT_PAGE = "freshness.md"
ANSWERED = "Ctrl-C stops everything"
# The parts of the tests' own environment that a newcomer has.
USUAL = ("PATH", "LANG", "TERM", "OMP_NUM_THREADS", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE")


@dataclass
class Place:
    """A clone in `folder` with its environment, and an empty `home`. `within` is a command prefix.

    `account` is the user, or None for the tests' own account.
    """

    folder: Path
    home: Path
    within: Sequence[str] = ()
    account: str | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def raydex(self) -> Path:
        return self.folder / ".venv" / "bin" / "raydex"

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start `raydex …` there under the account."""
        return subprocess.Popen(
            [*self.within, str(self.raydex), *words],
            env=self.variables(),
            cwd=self.folder, user=self.account, group=_group(self.account), extra_groups=[] if self.account else None,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def variables(self) -> dict[str, str]:
        """Return the environment variables of a command there."""
        return usual_environment() | {"HOME": str(self.home)} | as_account(self.account) | self.environment

    def left(self) -> list[int]:
        """Return the processes that were started there and are still running."""
        return marked(f"HOME={self.home}")


def usual_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in USUAL if name in os.environ}


def as_account(account: str | None) -> dict[str, str]:
    return {"USER": account, "LOGNAME": account} if account else {}


class Ground:
    """A `folder` that every account can enter, unlike pytest's, with one environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = folder / ".venv"
        copied = subprocess.run(["cp", "-al", sys.prefix, str(self._environment)], capture_output=True, check=False)
        if copied.returncode:  # another file system
            shutil.rmtree(self._environment, ignore_errors=True)
            subprocess.run(["cp", "-a", sys.prefix, str(self._environment)], check=True)

    def clone(self, clone: str) -> Place:
        """Clone the repository, without an environment, and create a new HOME next to it. Skips without git."""
        folder, home = self.folder / clone, (self.folder / clone).with_name("home of a user")
        clone_repository(folder, home, 0o022)
        return Place(folder, home)

    def settle(self, clone: str, account: str | None = None, umask: int = 0o022) -> Place:
        """Clone the repository, move the environment there and create a new HOME next to it. Skips without git."""
        python = reachable_python() if account else Path(sys.executable).resolve()
        folder, home = self.folder / clone, (self.folder / clone).with_name("home of a user")
        clone_repository(folder, home, umask)
        if account:
            for path in (home, folder, *folder.rglob("*")):
                shutil.chown(path, account, _group(account))
        self._environment = self._environment.rename(folder / ".venv")
        install(folder, python)
        self._give_models(folder, home / ".local" / "share" / "raydex", account)
        return Place(folder, home, account=account)

    def _give_models(self, clone: Path, data: Path, account: str | None) -> None:
        """Put the output of `make models` into `data`. It is made once, because it takes longer than all the rest."""
        made = self.folder / "made"
        if not made.exists():
            (clone / ".venv" / ".installed").touch()
            environment = usual_environment() | {"RAYDEX_HOME": str(made), "HOME": str(self.folder)}
            subprocess.run(["make", "--silent", "models"], cwd=clone, env=environment, check=True)
        shutil.copytree(made / "models", data / "models")
        if account:
            for path in (data.parents[1], data.parent, data, *data.rglob("*")):
                shutil.chown(path, account, _group(account))


@contextmanager
def ground() -> Iterator[Ground]:
    """Yield a ground, and remove everything on it at the end."""
    with tempfile.TemporaryDirectory(prefix="raydex-new-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Ground(Path(folder))


def clone_repository(folder: Path, home: Path, umask: int) -> None:
    """Clone the committed state, and create the empty folder `home`. Skips without git."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no clone without git")
    folder.parent.mkdir(parents=True, exist_ok=True)
    previous = os.umask(umask)
    try:
        subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(folder)], check=True)
        home.mkdir()
        for page in (folder / "docs").rglob("*.md"):
            if page != folder / "docs" / KEPT_PAGE:
                page.unlink()
        for name in ("README.md", *BESIDE):
            (folder / name).write_text(f"# {name}\n\nLeft out.\n")
    finally:
        os.umask(previous)


def install(folder: Path, python: Path) -> None:
    """Install Raydex into a clone's environment, which uses the interpreter `python` from then on."""
    venv = folder / ".venv"
    for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
        (venv / "bin" / name).unlink(missing_ok=True)
        (venv / "bin" / name).symlink_to(python)
    replace(venv / "pyvenv.cfg", f"home = {python.parent}\ninclude-system-site-packages = false\n"
                                 f"version = {sys.version.split()[0]}\n")  # fmt: skip
    pip(folder, "install", "--no-deps", "--no-index", "--no-build-isolation", "--force-reinstall", "--editable", ".")


def pip(folder: Path, *words: str) -> None:
    """Run the pip of a clone's environment."""
    command = [str(folder / ".venv" / "bin" / "python"), "-m", "pip", "--quiet", *words]
    environment = usual_environment() | {"HOME": "/nonexistent", "PIP_ROOT_USER_ACTION": "ignore"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def replace(path: Path, text: str) -> None:
    """Replace a file. Its other hard links keep the old content."""
    path.unlink(missing_ok=True)
    path.write_text(text)


def reachable_python() -> Path:
    """Return the tests' interpreter, or one of the same version that every account can run. Skips if there is none."""
    name = f"python3.{sys.version_info.minor}"
    folders = ("/usr/bin", "/usr/local/bin", *os.environ["PATH"].split(":"))
    for path in (Path(sys.executable), *(Path(folder, name) for folder in folders)):
        if path.exists() and everyone_enters(path.resolve()):
            return path.resolve()
    pytest.skip(f"no {name} that every account may run")


def everyone_enters(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)


def _group(account: str | None) -> int | None:
    import pwd

    return pwd.getpwnam(account).pw_gid if account else None


def try_demo(place: Place, source: str = "/freshness.html#freshness") -> str:
    """Run the demo until an answer cites `source`, then press Ctrl-C. Nothing may keep running. Return the output."""
    process, said = place.start("demo", "--no-llm", "--port", *free_ports(1)), ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if ANSWERED in line:
                break
        assert ANSWERED in said, said
        assert re.search(rf"http://127\.0\.0\.1:\d+{source}", said), said
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        assert code == 0, f"exit code {code}: {said}{process.stdout.read()}"
        eventually(lambda: place.left() == [], "all of it has ended", 60)
        return said
    finally:
        for pid in place.left():
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()


def hindered_demo(place: Place) -> tuple[bool, str]:
    """Run a demo that may not work here. Nothing may keep running. Return whether it worked, and the output."""
    process = place.start("demo", "--no-llm", "--once", "--port", *free_ports(1))
    try:
        said, _ = process.communicate(timeout=600)
        assert "Traceback" not in said, said
        assert (process.returncode == 0) == (ANSWERED in said), said
        eventually(lambda: place.left() == [], "all of it has ended", 60)
        return process.returncode == 0, said
    finally:
        for pid in place.left():
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()
