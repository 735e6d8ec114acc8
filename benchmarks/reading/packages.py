"""Unpacks the source packages of public registries: PyPI, npm and Debian. Nothing is installed."""

import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

DEBIAN = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} {} main\n"
DOWNLOAD_S = 900


class NoSource(RuntimeError):
    """A package whose sources are not available here."""


def unpack(package: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Unpack the sources of a package into `folder`, without the topmost folder of the archive. Raises NoSource.

    A package is `pypi:NAME==VERSION`, `npm:NAME@VERSION` or `debian:RELEASE/NAME`.
    """
    registry, _, name = package.partition(":")
    with_archive = folder.with_name("download")
    shutil.rmtree(with_archive, ignore_errors=True)
    with_archive.mkdir(parents=True)
    _DOWNLOADS[registry](name, with_archive, environment)
    archive = next((path for path in with_archive.iterdir() if path.name.endswith(_ARCHIVES)), None)
    if archive is None:
        raise NoSource(f"{package}: no archive in the registry's reply")
    with tarfile.open(archive) as file:
        members = [_below(member) for member in file.getmembers() if "/" in member.name]
        file.extractall(folder, [member for member in members if member.name], filter=_safe)
    shutil.rmtree(with_archive)


_ARCHIVES = (".tar.gz", ".tar.xz", ".tgz")


def _below(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member of an archive without the topmost folder in its name, nor in the target of a hard link."""
    link = member.linkname.partition("/")[2] if member.islnk() else member.linkname
    return member.replace(name=member.name.removeprefix("./").partition("/")[2], linkname=link, deep=False)


def _safe(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Return a member as tarfile's own filter for data allows it; one that leads out of the folder is left out."""
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _from_pypi(name: str, folder: Path, environment: Mapping[str, str]) -> None:
    plain = name.partition("==")[0]
    _run(["pip", "download", "-q", "--no-deps", "--no-binary", plain, name], folder, environment)


def _from_npm(name: str, folder: Path, environment: Mapping[str, str]) -> None:
    _run(["npm", "pack", "--silent", name], folder, environment)


def _from_debian(name: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Download a package's sources from this machine's mirror, with apt's state apart from the machine's."""
    known = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"], folder, environment).split()
    if not known:
        raise NoSource("apt knows no Debian mirror on this machine")
    release, _, package = name.partition("/")
    lists, cache = folder / "lists", folder / "cache"
    for place in (lists / "partial", cache / "archives" / "partial"):
        place.mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(DEBIAN.format(known[0], release), encoding="utf-8")
    settings = {
        "Dir::State::lists": lists,
        "Dir::Cache": cache,
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Acquire::Retries": 3,
    }
    apt = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in settings.items())]
    _run([*apt, "update"], folder, environment)
    _run([*apt, "source", "--download-only", "--tar-only", package], folder, environment)


_DOWNLOADS = {"pypi": _from_pypi, "npm": _from_npm, "debian": _from_debian}


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    if not shutil.which(command[0], path=environment.get("PATH")):
        raise NoSource(f"no {command[0]} on this machine")
    try:
        done = subprocess.run(
            command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=DOWNLOAD_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise NoSource(f"{' '.join(command)}: no reply in {DOWNLOAD_S} s") from error
    if done.returncode:
        raise NoSource(f"{command[-1]}: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return done.stdout
