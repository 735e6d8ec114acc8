"""Where a night's dumps lie: in a folder of this machine, or of a bucket.

Knows files, and file systems by their URLs; not what is in a dump.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pyarrow import ArrowException
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, copy_files

from pipelines.store import DumpNotWritten

LOCAL = LocalFileSystem()


class BadDumpFolder(ValueError):
    """The folder that `night.dump` names is not there, or can't be read or written."""

    def __init__(self, folder: str, error: Exception) -> None:
        reason = str(error).partition("\n")[0]
        super().__init__(f"night.dump.folder: {folder} can't be used ({reason}): make it, or name another one")


@dataclass(frozen=True, slots=True)
class DumpFolder:
    """A folder of dumps, named without the options of its URL; `home` has room for a dump on its way to a bucket."""

    name: str
    system: FileSystem
    path: str
    home: Path

    @classmethod
    def open(cls, name: str, beside: Path, home: Path) -> Self:
        """Return the folder of a URL, or of a path relative to `beside`. Raises BadDumpFolder."""
        if "://" not in name:
            return cls(str(beside / name), LOCAL, str((beside / name).absolute()), home)
        try:
            system, path = FileSystem.from_uri(name)
        except (OSError, ArrowException) as error:
            raise BadDumpFolder(name, error) from error
        return cls(name.partition("?")[0], system, path, home)

    def names(self) -> list[str]:
        """Return the names of the files in it. Raises BadDumpFolder."""
        try:
            # A bucket has no folder without a file in it.
            found = self.system.get_file_info(FileSelector(self.path, allow_not_found=not self._is_local))
        except OSError as error:
            raise BadDumpFolder(self.name, error) from error
        return [info.base_name for info in found if info.type == FileType.File]

    def check(self) -> None:
        """Raise BadDumpFolder if nothing can be written into it: an empty file is, and is deleted."""
        self.names()
        probe = self._at(".raydex-can-write")
        try:
            self.system.open_output_stream(probe).close()
            self.system.delete_file(probe)
        except OSError as error:
            raise BadDumpFolder(self.name, error) from error

    def put(self, name: str, write: Callable[[Path], object]) -> int:
        """Put the file that `write` makes into the folder, where it appears only when it is whole; return its bytes.

        Raises DumpNotWritten, and as `write`.
        """
        made = Path(self._at(name)) if self._is_local else self.home / name
        write(made)
        size = made.stat().st_size
        if not self._is_local:
            try:
                self._upload(made, size)
            finally:
                made.unlink()
        return size

    def _upload(self, made: Path, size: int) -> None:
        place = self._at(made.name)
        try:
            copy_files(str(made), place, source_filesystem=LOCAL, destination_filesystem=self.system)
            if (found := self.system.get_file_info(place).size) != size:
                raise OSError(f"{found} of its {size} bytes came there")
        except OSError as error:
            with contextlib.suppress(OSError):
                self.system.delete_file(place)
            raise DumpNotWritten(
                f"{self.name}: {made.name} can't be written: {error}; nothing is left of it"
            ) from error

    @contextlib.contextmanager
    def get(self, name: str) -> Iterator[Path]:
        """Yield a file of the folder as one of this machine. Raises OSError."""
        if self._is_local:
            yield Path(self._at(name))
            return
        with tempfile.TemporaryDirectory(prefix="dump-", dir=self.home) as folder:
            got = Path(folder, name)
            copy_files(self._at(name), str(got), source_filesystem=self.system, destination_filesystem=LOCAL)
            yield got

    def remove(self, name: str) -> None:
        """Remove a file of the folder."""
        self.system.delete_file(self._at(name))

    @property
    def _is_local(self) -> bool:
        return isinstance(self.system, LocalFileSystem)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"
