"""Makes an earlier state of a collection live again: an earlier revision, or the previous index.

An update can be undone while the data it replaced is kept: the last ten updates, for 30 days, until `raydex prune`. A
rollback is itself an update and can be undone too; the next `raydex index` updates the collection from its sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from jobs.cli import DONE, BadInput, finish, main, say
from jobs.environment import open_store
from jobs.flags import Json, Name, Wait, at_most_one, command
from pipelines.indexing.lock import hold_known, record_run
from pipelines.indexing.publish import KnownState, known_states, rollback
from pipelines.text.sheets import Grid, Sheet

HEAD = ("flag", "published", "changed")


def run(
    collection: Name,
    *,
    to: Annotated[int | None, Parameter(help="undo all updates after this revision of the live index")] = None,
    to_index: Annotated[int | None, Parameter(help="make this retired index live")] = None,
    show: Annotated[bool, Parameter("--list", help="list what the collection can return to")] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> int:
    at_most_one(to=to is not None, to_index=to_index is not None, list=show)
    with open_store() as store:
        if show:
            states = known_states(store, store.find_collection(collection)["name"])
            finish(
                {"collection": collection, "states": list(map(asdict, states))},
                as_json,
                list_states(collection, states),
            )
            return DONE
        with hold_known(store, collection, wait, say) as lock:
            state = choose(collection, known_states(store, collection), to, to_index)
            with record_run(lock, "rollback", None) as record:
                before, index, revision = rollback(store, lock, record.run, state)
                record.counts = {"collection": collection, "from": before.id, "index": index, "revision": revision}
                record.counts["to"] = state.revision
    text = f"collection {collection}: index {index} is live again (revision {revision}), {before.id} is retired"
    if state.kind != "retired":
        was = f"is as it was at revision {state.revision} (now revision {revision})"
        text = f"collection {collection}: index {index} {was}"
    finish(record.counts, as_json, text)
    return DONE


def choose(collection: str, states: Sequence[KnownState], to: int | None, index: int | None) -> KnownState:
    """Return the requested state, or the only one that is not live. Raises BadInput."""
    earlier = [one for one in states if one.kind != "live"]
    if not earlier:
        raise BadInput(f"collection {collection!r} has nothing to return to: no replaced data is kept, "
                       "and no retired index")  # fmt: skip
    found, why = earlier, "several states"
    if to is not None:
        found, why = [one for one in earlier if one.kind == "earlier" and one.revision == to], f"no revision {to}"
    elif index is not None:
        found = [one for one in earlier if one.kind == "retired" and one.index == index]
        why = f"no retired index {index}"
    if len(found) == 1:
        return found[0]
    raise BadInput(f"collection {collection!r} has {why} to return to: name one of these\n"
                   f"{list_states(collection, states)}")  # fmt: skip


def list_states(collection: str, states: Sequence[KnownState]) -> Sheet:
    """Return a row for each state: the flag that returns to it, its publication time, its changes."""
    title = f"collection {collection}, index {states[0].index}"
    notes = [] if len(states) > 1 else ["nothing to return to"]
    return Sheet(title, [Grid(HEAD, list(map(row_of, states)), "<"), *notes])


def row_of(state: KnownState) -> tuple[str, str, str]:
    """Return the cells of a state, in the order of HEAD."""
    if state.kind == "retired":
        return f"--to-index {state.index}", "-", f"the index that was live before, at revision {state.revision}"
    flag = f"--to {state.revision}" if state.kind == "earlier" else f"live: {state.revision}"
    since = f"{state.since.astimezone():%Y-%m-%d %H:%M}" if state.since else "-"
    if state.returned_to is not None:
        return flag, since, f"{summary_of_changes(state.changes)} (back to revision {state.returned_to})"
    return flag, since, summary_of_changes(state.changes) if any(state.changes.values()) else "whole"


def summary_of_changes(counts: Mapping[str, int]) -> str:
    """Return the counts of a publish: "pages +1 ~2 -0, chunks +3 ~4 -0" for added, changed and removed."""
    signs = {"added": "+", "changed": "~", "removed": "-"}
    parts = {what: " ".join(f"{sign}{counts[f'{what}_{how}']:,}" for how, sign in signs.items())
             for what in ("pages", "chunks")}  # fmt: skip
    return ", ".join(f"{what} {said}" for what, said in parts.items())


app = command("rollback", __doc__, run)


if __name__ == "__main__":
    main(app)
