"""Writes a collection's live index to one file, with its pages and embeddings."""

import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from jobs.cli import DONE, BadInput, finish, main
from jobs.environment import open_store
from jobs.flags import Json, Name, command
from pipelines.store import dump
from pipelines.text.counts import counted


class NameFirst(App):
    """The app of `raydex dump`: `--collection NAME FILE` is `NAME FILE`."""

    def parse_args(self, tokens: Any = None, **options: Any) -> Any:
        """Return what the tokens call, with the value of --collection as the first word."""
        words = list(tokens)
        for at, word in enumerate(words):
            flag, _, value = word.partition("=")
            if flag == "--collection" and "--" not in words[:at] and (value or at + 1 < len(words)):
                name = [value] if value else words[at + 1 : at + 2]
                words = [*name, *words[:at], *words[at + (1 if value else 2) :]]
                break
        return super().parse_args(words, **options)


def run(
    collection: Name,
    file: Annotated[Path, Parameter(help="file to write")],
    *,
    force: Annotated[bool, Parameter(help="replace the file if it exists")] = False,
    as_json: Json = False,
) -> int:
    if file.exists() and not force:
        raise BadInput(f"{file} exists: choose another name or use --force")
    if not file.absolute().parent.is_dir():
        raise BadInput(f"{file.absolute().parent} is not a folder")
    began = time.perf_counter()
    with open_store() as store:
        store.find_collection(collection)
        manifest = dump(store, store.live_index(collection), file)
    size, seconds = file.stat().st_size, round(time.perf_counter() - began, 3)
    summary = {
        "collection": collection,
        "file": str(file),
        "bytes": size,
        "seconds": seconds,
        **manifest.counts,
    }
    pages, chunks = (counted(manifest.counts[f"{thing}s"], thing) for thing in ("page", "chunk"))
    text = f"collection {collection}: {pages} and {chunks} in {file} ({size / 1e6:,.1f} MB, {seconds:.1f} s)"
    finish(summary, as_json, text)
    return DONE


app = command("dump", __doc__, run, kind=NameFirst)


if __name__ == "__main__":
    main(app)
