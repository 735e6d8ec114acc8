"""Packs a BM25 folder into the store, and unpacks it on a machine that has none.

The unpacked files are checked before they become the folder. This module doesn't know their content.
"""

import logging
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from pipelines.lexical.documents import VERSION
from pipelines.store import LexicalArchive, Store
from pipelines.store.indexes import CHANGES_KEPT
from pipelines.store.lexical_archives import ArchiveDamaged, Piece

log = logging.getLogger(__name__)

# Other versions may not be able to open the files.
FORMAT = f"{VERSION}, tantivy {version('tantivy')}"
PIECE = 1 << 20  # bytes
# An archive that is this many revisions old is replaced, long before its changes are no longer stored.
RENEWED_AFTER = CHANGES_KEPT // 2


def unpack(store: Store, index: int, folder: Path) -> int | None:
    """Make `folder` from the archive of an index, and return its revision.

    Return None, and leave no folder, if no archive fits, it is damaged, or the folder can't be written.
    """
    making = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(making, ignore_errors=True)
    try:
        with store.lexical_pieces(index) as (archive, pieces):
            if archive is None or archive.format != FORMAT:
                return None
            making.mkdir(parents=True)
            for file, content in pieces:
                with (making / _checked(file)).open("ab") as writing:
                    writing.write(content)
        shutil.rmtree(folder, ignore_errors=True)
        making.rename(folder)
        return archive.revision
    except (ArchiveDamaged, OSError) as error:
        log.warning("BM25 of index %d is built, not copied: %s", index, error)
        return None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def needs_archive(store: Store, index: int, revision: int) -> bool:
    """Return whether the store has no archive for this version of Raydex, or an old one."""
    archive = store.lexical_archive(index)
    return archive is None or archive.format != FORMAT or revision - archive.revision >= RENEWED_AFTER


def freeze(folder: Path) -> Path:
    """Return a folder with links to the files of `folder`, which stay as they are. Call it while nobody writes there.

    tantivy writes new files and renames them into place, and never changes one.
    """
    frozen = folder.with_name(f"{folder.name}.archived")
    shutil.rmtree(frozen, ignore_errors=True)
    shutil.copytree(folder, frozen, copy_function=_link, ignore=shutil.ignore_patterns("*.lock"))
    return frozen


def pack(store: Store, index: int, revision: int, frozen: Path) -> None:
    """Store the files of a frozen folder as the archive of an index, and delete the folder.

    Raises NoSuchIndex, StoreUnavailable and OSError.
    """
    try:
        store.save_lexical_archive(index, LexicalArchive(revision, FORMAT), lambda: _pieces_of(frozen))
    finally:
        shutil.rmtree(frozen, ignore_errors=True)


def _pieces_of(folder: Path) -> Iterator[Piece]:
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            yield path.name, file.read(PIECE)
            while content := file.read(PIECE):
                yield path.name, content


def _checked(file: str) -> str:
    """Return the name of a file in a folder. Raises ArchiveDamaged for a path that leads elsewhere."""
    if Path(file).name != file or file in {"", ".", ".."}:
        raise ArchiveDamaged(f"{file!r} is not the name of a file")
    return file


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
