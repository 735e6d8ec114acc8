"""Shows all collections, or one in full: sources, settings, pages by state, runs, failures."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from jobs.cli import DONE, check_range, finish, main
from jobs.environment import home, open_store
from jobs.flags import Json, at_most_one, command
from pipelines.answering.verified.writing import REVIEW, review_answers
from pipelines.files.services import RunningService, find_services
from pipelines.indexing.summary import describe_layouts, describe_settings
from pipelines.nights.journal import night_steps
from pipelines.nights.result import outcome_of
from pipelines.store import Freshness, Store, is_copy
from pipelines.store.collections.catalog import SHOWN
from pipelines.text.counts import counted
from pipelines.text.progress import describe_seconds
from pipelines.text.sheets import Fact, Grid, Sheet

WATCH_S = 2.0
CLEAR_SCREEN = "\x1b[H\x1b[2J"
NOTHING = "no collection yet: create one with `raydex index URL`"


def run(
    collection: Annotated[str | None, Parameter(help="show only this collection, in full")] = None,
    *,
    failed: Annotated[bool, Parameter(help="list every page that failed, with its reason")] = False,
    most: Annotated[int | None, Parameter(help="show at most N runs and N failed pages")] = None,
    live: Annotated[bool, Parameter("--watch", help="follow the last run of each collection until Ctrl-C")] = False,
    as_json: Json = False,
) -> int:
    at_most_one(watch=live, json=as_json)
    check_range("--most", most, 1)
    with open_store() as store:
        if live:
            return watch(store, collection)
        rows = store.collections()
        chosen = [store.find_collection(collection)["name"]] if collection else [row["name"] for row in rows]
        failures = most or (None if failed else SHOWN)
        status = {name: _status(store, name, most or SHOWN, failures) for name in chosen}
    default = next((row["name"] for row in rows if row["is_default"]), None)
    services = find_services(home())
    shown = {name: entry for name, entry in status.items() if collection or not is_copy(name)}
    if failed:
        result: Sheet | str = "\n".join(
            line for name, one in shown.items() for line in list_failures(name, one["failures"])
        )
    elif len(shown) == 1:
        (name, entry), *_ = shown.items()
        result = describe_collection(name, entry, default)
    else:
        result = list_collections(shown, default)
    if isinstance(result, Sheet) and not collection:
        result = Sheet(result.title, [*result.parts, *map(describe_service, services)])
    summary = {"collections": status, "default": default, "services": [service.url for service in services]}
    finish(summary, as_json, result)
    return DONE


def watch(store: Store, wanted: str | None, pause: Callable[[float], object] = time.sleep) -> int:
    """Refresh the last runs every WATCH_S on a terminal; in a pipe, print each state and step once."""
    printed: set[object] = set()
    try:
        while True:
            names = [store.find_collection(wanted)["name"]] if wanted else [row["name"] for row in store.collections()]
            lines = dict(line for name in names for line in _watched(store, name))
            if sys.stdout.isatty():
                print(CLEAR_SCREEN + ("\n".join(lines.values()) or NOTHING), flush=True)
            else:
                print(*(f"{line}\n" for key, line in lines.items() if key not in printed), sep="", end="", flush=True)
                printed |= lines.keys()
            pause(WATCH_S)
    except KeyboardInterrupt:
        return DONE


def _watched(store: Store, name: str) -> Iterator[tuple[object, str]]:
    """Yield the lines for the last run of a collection, each with a key that changes with its news."""
    for run in store.last_runs(name, 1):
        shown = _describe_run(run)
        head, *more = shown.text.split("\n")
        yield (run["id"], run["state"], run["alive"]), f"{name}: {shown.name}, {head}"
        if run["alive"] and sys.stdout.isatty():
            staged = store.staged_counts(run["id"])
            more.append(
                f"so far {counted(staged['pages'], 'page')} and {counted(staged['chunks'], 'chunk')} to publish"
            )
        yield from (((run["id"], line), f"  {line}") for line in more)


def _status(store: Store, name: str, runs: int, failures: int | None) -> dict[str, Any]:
    """Return the status of a collection, with its live index, or None, under `live`."""
    entry = {**store.status(name, runs), "failures": store.failed_pages(name, failures)}
    entry["layouts"] = store.layouts(name)[1]
    entry["verified"] = dict(Counter(one.state for one in review_answers(store, name)))
    live = next((index for index in entry["indexes"] if index["state"] == "live"), None)
    return {"live": live and {key: live[key] for key in ("id", "revision", "stats", "published_at")}, **entry}


# ---------------------------------------------------------------------------------------------- several collections


def list_collections(status: Mapping[str, Mapping[str, Any]], default: str | None) -> Sheet:
    """Return a table of collections."""
    if not status:
        return Sheet("", [NOTHING])
    head = ("  collection", "pages", "chunks", "published", "last run", "source")
    rows = [(f"{'*' if name == default else ' '} {name}", *_row(entry)) for name, entry in status.items()]
    meant = (
        "* is asked when a question names none"
        if default
        else "`raydex default NAME` sets the one that is asked when a question names none"
    )
    return Sheet("", [Grid(head, rows, "<>><"), "", f"{meant}; `raydex status NAME` shows one in full"])


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    live = entry["live"] or {"stats": {}, "published_at": None}
    counts = [f"{live['stats'].get(key, 0):,}" if entry["live"] else "-" for key in ("pages", "chunks")]
    published = f"{live['published_at'].astimezone():%Y-%m-%d %H:%M}" if live["published_at"] else "-"
    run = outcome_of(entry["runs"][0]) if entry["runs"] else "-"
    first, *others = [*summary_of_sources(entry["settings"]), ""]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return *counts, published, run, first + more


def describe_service(service: RunningService) -> str:
    """Return a line about a running service."""
    since = datetime.fromtimestamp(service.started, UTC).astimezone()
    return f"service {service.url} since {since:%Y-%m-%d %H:%M} (process {service.pid})"


# ---------------------------------------------------------------------------------------------- one collection


def describe_collection(name: str, entry: Mapping[str, Any], default: str | None = None) -> Sheet:
    """Return a collection in full."""
    pages = ", ".join(f"{count:,} {state}" for state, count in entry["pages"].items())
    freshness = Freshness(**entry.get("freshness") or {})
    facts = [
        *(Fact("source", source) for source in summary_of_sources(entry["settings"])),
        *map(_describe_index, entry["indexes"]),
        Fact("pages", pages or "none"),
        *([Fact("fresh", freshness.describe())] if freshness.describe() else []),
        *(Fact("warning", line) for line in freshness.warnings()),
        *(Fact("layout", line) for line in describe_layouts(entry.get("layouts") or {})),
        *_describe_verified(entry.get("verified") or {}),
        *map(_describe_run, entry["runs"]),
        *(Fact("failed", f"{page['url']}: {page['error']}{_tries(page)}") for page in entry["failures"]),
    ]
    if more := entry["pages"].get("failed", 0) - len(entry["failures"]):
        facts.append(Fact("", f"and {more:,} more: `raydex status {name} --failed`"))
    return Sheet(f"collection {name}{', the default' if name == default else ''}", facts)


def _describe_index(index: Mapping[str, Any]) -> Fact:
    stats = index["stats"]
    counts = f"{counted(stats.get('pages', 0), 'page')}, {counted(stats.get('chunks', 0), 'chunk')}"
    built = f"{index['state']}, revision {index['revision']}: {counts}"
    return Fact(f"index {index['id']}", f"{built}; {describe_settings(index['settings'])}")


def _describe_verified(counts: Mapping[str, int]) -> Iterator[Fact]:
    if counts:
        hint = ": `raydex answers review`" if counts.get(REVIEW) else ""
        yield Fact("verified", f"{', '.join(f'{count:,} {state}' for state, count in counts.items())}{hint}")


def summary_of_sources(settings: Mapping[str, Any]) -> list[str]:
    """Return a line for each source of a collection, with its non-default settings."""
    from pipelines.indexing.collection import CRAWL, Folder

    sites = [(", ".join(site["start_urls"]), _changed(site, CRAWL.model_dump(mode="json")))
             for site in settings.get("sites", [])]  # fmt: skip
    plain = Folder(path="", base_url="http://localhost/").model_dump(mode="json")
    folders = [(f"{folder['path']} as {folder['base_url']}", _changed(folder, plain))
               for folder in settings.get("folders", [])]  # fmt: skip
    others = [(" ".join(filter(None, (source["kind"], source.get("path")))), _changed(source, {}))
              for source in settings.get("sources", [])]  # fmt: skip
    return [f"{source} ({changed})" if changed else source for source, changed in (*sites, *folders, *others)]


def _changed(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return the keys with non-default values."""
    sources = ("start_urls", "path", "base_url", "kind")
    changed = {key: value for key, value in given.items() if key not in sources and value != defaults.get(key)}
    return ", ".join(f"{key}: {_value(value)}" for key, value in changed.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _describe_run(run: Mapping[str, Any]) -> Fact:
    taken = (run["ended"] or datetime.now(UTC)) - run["started"]
    began, seconds = run["started"].astimezone(), describe_seconds(taken.total_seconds())
    lines = [f"{began:%Y-%m-%d %H:%M} {run['kind']} {outcome_of(run)}, {seconds}"]
    lines += [f"{name}: {step['said']}" for name, step in night_steps(run["steps"]).items()]
    lines += (run["error"] or "").split("; ") if run["error"] else []
    return Fact(f"run {run['id']}", "\n".join(lines))


def _tries(page: Mapping[str, Any]) -> str:
    return f" (tried {counted(page['attempts'], 'time')})" if page["attempts"] > 1 else ""


def list_failures(name: str, failures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each failed page, and how to retry them."""
    if not failures:
        return [f"collection {name}: no page failed"]
    lines = [f"{page['url']}: {page['error']}{_tries(page)}" for page in failures]
    return [*lines, f"collection {name}: `raydex index … --retry-failed` fetches only these again"]


app = command("status", __doc__, run)


if __name__ == "__main__":
    main(app)
