"""Shows collections: their indexes, pages by state, last runs and failed pages."""

import argparse
from collections.abc import Mapping
from typing import Any

from jobs.cli import DONE, BadInput, add_collection, add_json, command, finish, main
from jobs.environment import open_store


def arguments() -> argparse.ArgumentParser:
    parser = command("status", __doc__)
    add_collection(parser, "show this collection alone")
    parser.add_argument(
        "--most", type=int, default=5, metavar="N", help="show at most N runs and N failed pages (default 5)"
    )
    add_json(parser)
    return parser


def work(args: argparse.Namespace) -> int:
    with open_store() as store:
        names = [row["name"] for row in store.collections()]
        if args.collection and args.collection not in names:
            raise BadInput(f"there is no collection {args.collection!r}; collections: {', '.join(names) or 'none'}")
        wanted = [args.collection] if args.collection else names
        status = {name: _add_live(store.status(name, args.most)) for name in wanted}
    text = "\n\n".join(describe(name, entry) for name, entry in status.items())
    finish({"collections": status}, args.json, text or "no collection yet: create one with `raydex index URL`")
    return DONE


def _add_live(entry: dict[str, Any]) -> dict[str, Any]:
    """Return `entry` with the live index, or None, under `live`."""
    live = next((index for index in entry["indexes"] if index["state"] == "live"), None)
    return {"live": live and {key: live[key] for key in ("id", "revision", "stats", "published_at")}, **entry}


def describe(name: str, entry: Mapping[str, Any]) -> str:
    """Return the lines about one collection for a person."""
    lines = [f"collection {name}"]
    for index in entry["indexes"]:
        settings, stats = index["settings"], index["stats"]
        lines.append(
            f"  index {index['id']:<4} {index['state']:<10} revision {index['revision']}, "
            f"{stats.get('pages', 0):,} pages, {stats.get('chunks', 0):,} chunks, {settings['model']}"
        )
    lines.append(
        "  pages      " + (", ".join(f"{count:,} {state}" for state, count in entry["pages"].items()) or "none")
    )
    for run in entry["runs"]:
        ended = f"{(run['ended'] - run['started']).total_seconds():.1f} s" if run["ended"] else "not ended"
        error = f": {run['error']}" if run["error"] else ""
        lines.append(
            f"  run {run['id']:<6} {run['started']:%Y-%m-%d %H:%M} {run['kind']} {run['state']}, {ended}{error}"
        )
    lines += [f"  failed     {page['url']}: {page['error']} (tried {page['attempts']}×)" for page in entry["failures"]]
    return "\n".join(lines)


if __name__ == "__main__":
    main(arguments(), work)
