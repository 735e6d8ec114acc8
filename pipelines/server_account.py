"""Chooses the account that runs the embedded Postgres: the user's, or for root one without privileges.

Postgres refuses to run as root. The replacement account has to pass through folders that only root may enter (the data
folder, an environment below /root). No folder's permissions are widened for it; instead, it keeps one capability and no
other privilege. Postgres checks by access(2) whether it may run its own programs. That call ignores the capabilities of
an ordinary account, unless the secure bit `no_setuid_fixup` is set. This module knows nothing of data or ports.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# An unprivileged account that every Unix has.
UNPRIVILEGED = "nobody"
# Either one lets an account enter any folder. A container's root often has only the second, which also lets it write.
PASSING = ("dac_read_search", "dac_override")
# The capabilities root needs to start a server as another account, give it its folder, and stop it; their kernel bits.
BITS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "kill": 5, "setgid": 6, "setuid": 7, "setpcap": 8}
NEEDED = ("chown", "kill", "setgid", "setuid")
SECURE_BIT, DIES_WITH_PARENT = "--securebits=+no_setuid_fixup", "--pdeathsig=INT"
# The Postgres programs that are started here, and the permissions that let every account run one.
PROGRAMS, RUN_BY_ALL = ("initdb", "pg_ctl", "postgres"), 0o555
OTHER_ACCOUNT = "use another account than root"


class NoServerAccount(RuntimeError):
    """Root can start the server as no other account; the message says why and what to do."""


@dataclass(frozen=True)
class ServerAccount:
    """The account `name`, None for the user's own; `prefix` starts a command as that account."""

    name: str | None
    prefix: tuple[str, ...] = ()

    def command(self, *words: str | Path) -> list[str]:
        """Return the command that runs `words` as this account and, if setpriv supports it, ends with its parent."""
        return [*self.prefix, *map(str, words)]

    def own(self, path: Path) -> None:
        """Make this account the owner of a file or folder."""
        if self.name:
            shutil.chown(path, self.name)


def server_account(program: Path) -> ServerAccount:
    """Return the account that can run `program`, found by trying. Raises NoServerAccount."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0:
        ends = (setpriv or "", DIES_WITH_PARENT)
        return ServerAccount(None, ends if setpriv and _fails(*ends, "true") is None else ())
    if not setpriv:
        raise _refusal("the command `setpriv` is missing", "install the package util-linux")
    lacking = _lacking()
    if lacking:
        raise _refusal(f"root lacks {_named(lacking)} here", _add(lacking))
    _open(program.with_name(name) for name in PROGRAMS)
    return _try(setpriv, program)


def _open(programs: Iterable[Path]) -> None:
    """Let every account run programs that were installed under a umask such as 077; the capability only covers
    reading.
    """
    for program in programs:
        with contextlib.suppress(OSError):  # read-only file system: if the server fails, its log says so
            mode = program.stat().st_mode
            if mode & RUN_BY_ALL != RUN_BY_ALL:
                program.chmod(mode | RUN_BY_ALL)


def _try(setpriv: str, program: Path) -> ServerAccount:
    """Return the first combination that works: old releases of setpriv and some kernels lack one part or the other."""
    who = [setpriv, f"--reuid={UNPRIVILEGED}", f"--regid={_group()}", "--clear-groups"]
    kept = f"-all,+{_passing()}"
    keeps = [f"--inh-caps={kept}", f"--ambient-caps={kept}"]
    problem = ""
    for secure, ends in itertools.product(([SECURE_BIT], []), ([DIES_WITH_PARENT], [])):
        prefix = (*who, *secure, *keeps, *ends)
        said = _fails(*prefix, "true")
        if said is None and not secure and not _reaches(who, program):
            lacking = [] if "setpcap" in _capabilities() else ["setpcap"]
            reason = f"it may not enter a folder above {program}, and the secure bit that allows it can't be set"
            where = "create the environment in a folder that every account may enter (not below /root)"
            raise _refusal(reason + f" without {_named(lacking)}" * bool(lacking), f"{where}, {_add(lacking)}")
        if said is None:
            return ServerAccount(UNPRIVILEGED, prefix)
        problem = problem or said
    raise _refusal(f"setpriv says {problem!r}", "install the package util-linux, 2.33 or newer")


def _reaches(who: list[str], program: Path) -> bool:
    """Return whether the account can run `program` without any capability."""
    return _fails(*who, "--inh-caps=-all", "test", "-x", str(program)) is None


def _fails(*command: str) -> str | None:
    """Run a command that prints nothing; if it fails, return the last line of its error, otherwise None."""
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, errors="replace", check=False)
    return ((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]) if done.returncode else None


def _capabilities() -> set[str]:
    """Return the capabilities in BITS that this process has."""
    status = Path("/proc/self/status").read_text()
    bits = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return {name for name, bit in BITS.items() if bits >> bit & 1}


def _lacking() -> list[str]:
    has = _capabilities()
    return [name for name in NEEDED if name not in has] + ([] if has & set(PASSING) else [PASSING[0]])


def _passing() -> str:
    has = _capabilities()
    return next(name for name in PASSING if name in has)


def _group() -> int:
    import pwd

    try:
        return pwd.getpwnam(UNPRIVILEGED).pw_gid
    except KeyError:
        raise _refusal("this machine has no such account", f"add it (`useradd --system {UNPRIVILEGED}`)") from None


def _named(capabilities: list[str]) -> str:
    return ", ".join(f"CAP_{name.upper()}" for name in capabilities)


def _add(capabilities: list[str]) -> str:
    return f"start the container with {' '.join(f'--cap-add={name.upper()}' for name in capabilities)}"


def _refusal(reason: str, remedy: str) -> NoServerAccount:
    return NoServerAccount(
        f"Postgres refuses root, and can't be started as the account {UNPRIVILEGED!r}: {reason}. "
        f"{remedy[0].upper()}{remedy[1:]}, or {OTHER_ACCOUNT}."
    )
