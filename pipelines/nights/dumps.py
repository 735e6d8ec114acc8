"""The folder of a night's dumps, local or in a bucket.

Knows files, and file systems by their URLs; does not know a dump's contents.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pyarrow import ArrowException
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, copy_files

from pipelines.store import DumpNotWritten
from pipelines.text.counts import counted

LOCAL = LocalFileSystem()


class BadDumpFolder(ValueError):
    """The folder in `night.dump` is missing, or can't be read or written."""

    def __init__(self, folder: str, error: Exception) -> None:
        reason = str(error).partition("\n")[0]
        super().__init__(f"night.dump.folder: {folder} can't be used ({reason}): make it, or name another one")


@dataclass(frozen=True, slots=True)
class DumpFolder:
    """A folder of dumps, named without the options of its URL.

    A dump in progress is the file `aside`, or in a local folder a file with that name; an unfinished one is
    overwritten.
    """

    name: str
    system: FileSystem
    path: str
    aside: Path

    @classmethod
    def open(cls, name: str, beside: Path, aside: Path) -> Self:
        """Return the folder of a URL, or of a path relative to `beside`. Raises BadDumpFolder."""
        if "://" not in name:
            return cls(str(beside / name), LOCAL, str((beside / name).absolute()), aside)
        try:
            system, path = FileSystem.from_uri(name)
        except (OSError, ArrowException) as error:
            raise BadDumpFolder(name, error) from error
        return cls(name.partition("?")[0], system, path, aside)

    def names(self) -> list[str]:
        """Return the names of the non-empty files in it. Raises BadDumpFolder."""
        try:
            # In a bucket, a folder without files does not exist.
            found = self.system.get_file_info(FileSelector(self.path, allow_not_found=not self._is_local))
        except OSError as error:
            raise BadDumpFolder(self.name, error) from error
        # A killed upload to Azure leaves an empty file.
        return [info.base_name for info in found if info.type == FileType.File and info.size]

    def check(self) -> None:
        """Raise BadDumpFolder if the folder is not writable, by writing and deleting an empty file."""
        self.names()
        probe = self._at(".raydex-can-write")
        try:
            self.system.open_output_stream(probe).close()
            self.system.delete_file(probe)
        except OSError as error:
            raise BadDumpFolder(self.name, error) from error

    def put(self, name: str, write: Callable[[Path], object]) -> int:
        """Put the file that `write` makes into the folder, where it appears only when complete; return its bytes.

        Raises DumpNotWritten, and the errors of `write`.
        """
        write(self._passing)
        size = self._passing.stat().st_size
        try:
            if self._is_local:
                self._passing.replace(self._at(name))
            else:
                self._upload(name, size)
        finally:
            self._passing.unlink(missing_ok=True)
        return size

    def _upload(self, name: str, size: int) -> None:
        place = self._at(name)
        try:
            copy_files(str(self._passing), place, source_filesystem=LOCAL, destination_filesystem=self.system)
            if (found := self.system.get_file_info(place).size) != size:
                raise OSError(f"{found} of its {counted(size, 'byte')} arrived")
        except OSError as error:
            with contextlib.suppress(OSError):
                self.system.delete_file(place)
            raise DumpNotWritten(f"{self.name}: {name} can't be written: {error}; nothing is left of it") from error

    @contextlib.contextmanager
    def get(self, name: str) -> Iterator[Path]:
        """Yield a file of the folder as a local file. Raises OSError."""
        if self._is_local:
            yield Path(self._at(name))
            return
        try:
            copy_files(self._at(name), str(self._passing), source_filesystem=self.system, destination_filesystem=LOCAL)
            yield self._passing
        finally:
            self._passing.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file of the folder."""
        self.system.delete_file(self._at(name))

    @property
    def _is_local(self) -> bool:
        return isinstance(self.system, LocalFileSystem)

    @property
    def _passing(self) -> Path:
        return Path(self._at(self.aside.name)) if self._is_local else self.aside

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"
