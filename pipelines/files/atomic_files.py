"""Writes a file or folder that appears under its name only when it is complete.

It is written next to its final place, under a hidden name, and renamed last, so a reader never sees half of it. The
next writer overwrites the leftovers of a killed one. Two writers of the same path must take turns.
"""

import contextlib
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield the path to write to; the file replaces `path` when the block ends, and is deleted if the block raises.

    `private`: only this account can read it, from its first byte on.
    """
    making = path.with_name(f".{path.name}.making")
    making.unlink(missing_ok=True)
    if private:
        making.touch(mode=0o600)
    try:
        yield making
        making.replace(path)
    finally:
        making.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill; it replaces `path` when the block ends, and is deleted if the block raises.

    `private`: only this account can enter it.
    """
    making = path.with_name(f".{path.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700 if private else 0o777, parents=True)
    try:
        yield making
        replace_folder(path, making)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def keep_private(path: Path) -> None:
    """Remove all other accounts' permissions from a file or folder. Raises PermissionError with the command."""
    state = path.stat()
    if not stat.S_IMODE(state.st_mode) & 0o077:
        return
    try:
        path.chmod(stat.S_IMODE(state.st_mode) & 0o700)
    except PermissionError as error:
        raise PermissionError(
            f"{path} belongs to another account and is open to others: from that account, run `chmod go= {path}`"
        ) from error


def replace_folder(path: Path, whole: Path) -> None:
    """Move the folder `whole` to `path`; an old folder there is missing only between two renames, then removed."""
    settle_folder(path)
    if path.exists():
        path.rename(_old(path))
    whole.rename(path)
    settle_folder(path)


def settle_folder(path: Path) -> None:
    """Complete a killed `replace_folder`: restore the old folder if there is no new one, otherwise delete it."""
    if not path.exists() and _old(path).exists():
        _old(path).rename(path)
    shutil.rmtree(_old(path), ignore_errors=True)


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")
