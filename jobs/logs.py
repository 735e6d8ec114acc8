"""Shows the logs of a run's processes: its job on a Ray cluster, and its workers on every node.

With RAY_ADDRESS it reads them from the cluster's dashboard, otherwise from the files of this machine's Rays.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from jobs.cli import DONE, FAILED, BadInput, main, say
from jobs.environment import open_store, ray_address, ray_folders
from jobs.flags import Json, command
from pipelines.cluster import as_it_is, send_token, why_unreachable
from pipelines.logs import as_began
from pipelines.text.parsing import NotParsed, parse_json

FOLLOW_S = 2.0
OF_PROCESSES = "worker-*"  # logs of tasks and actors; other files are Ray's own


def run(
    run: Annotated[int, Parameter(help="number of the run")],
    /,
    *,
    follow: Annotated[bool, Parameter(help="continue until the run has ended")] = False,
    as_json: Json = False,
) -> int:
    shown: Counter[str] = Counter()
    with open_store() as store:
        row = store.find_run(run)
        say(f"run {row['id']}: {row['kind']} of {row['collection']}, {row['state']}, began {row['started']:%F %T %Z}")
        show_new(row, shown, as_json)
        while follow and row["alive"]:
            time.sleep(FOLLOW_S)
            row = store.find_run(run)
            show_new(row, shown, as_json)
    if not shown:
        where = f"under {', '.join(map(str, ray_folders()))}" if ray_address() == "local" else f"at {ray_address()}"
        say(f"run {run} left no log {where}: it wrote nothing, or its logs are gone with its Ray")
    if row["error"]:
        say(f"run {run}: {row['error']}")
    return DONE if shown else FAILED


def show_new(run: Mapping[str, Any], shown: Counter[str], as_json: bool) -> None:
    """Print the lines of the run after the number of lines already `shown` of each file."""
    for name, text in files_of_this_machine() if ray_address() == "local" else files_of_cluster(ray_address()):
        entries = [read_line(line) for line in text.splitlines()]
        if f"run {run['id']} of collection {run['collection']}" in text or any(is_of(run, entry) for entry in entries):
            for entry in entries[shown[name] :]:
                print_entry(run["id"], name, entry, as_json)
            shown[name] = len(entries)


def read_line(line: str) -> dict[str, Any]:
    """Return a line of a log: its JSON, or the line itself as the message."""
    try:
        entry = parse_json(line)
    except NotParsed:
        entry = None
    return entry if isinstance(entry, dict) and "message" in entry else {"message": line}


def is_of(run: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether a line belongs to the run.

    A run of another database may have the same number, but not the same start.
    """
    names = run["id"], run["collection"], as_began(run["started"])
    return (entry.get("run"), entry.get("collection"), entry.get("began")) == names


def print_entry(run: int, file: str, entry: Mapping[str, Any], as_json: bool) -> None:
    """Print a line, unless it belongs to another run."""
    if entry.get("run", run) == run:
        words = (entry[name] for name in ("time", "level", "message", "exception") if name in entry)
        print(json.dumps({"file": file, **entry}) if as_json else " ".join([f"{file}:", *words]), flush=True)


def files_of_this_machine() -> Iterator[tuple[str, str]]:
    """Yield the name and text of each log of each Ray session. Unreadable logs are skipped."""
    for folder in ray_folders():
        for path in sorted(folder.glob(f"session_2*/logs/{OF_PROCESSES}")):
            try:
                text = path.read_text(errors="replace")
            except OSError:
                continue
            yield str(path.relative_to(folder)), text


def files_of_cluster(address: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of the log of each job, and of each process of each node."""
    send_token()
    with as_it_is(address):
        yield from ask_dashboard(address)


def ask_dashboard(address: str) -> Iterator[tuple[str, str]]:
    """Yield the logs from the dashboard of the cluster at `address`. Raises BadInput."""
    from ray.exceptions import RayError
    from ray.job_submission import JobSubmissionClient
    from ray.util.state import get_log, list_logs, list_nodes
    from ray.util.state.exception import RayStateApiException

    try:
        if problem := why_unreachable(address):  # the client would retry for most of a minute
            raise ConnectionError(problem)
        client = JobSubmissionClient(address)
    except (RayError, ConnectionError, RuntimeError) as error:
        raise BadInput(
            f"the dashboard of {address} can't be reached: {error}. `raydex submit logs RUN` asks it"
        ) from error
    for job in client.list_jobs():
        if job.submission_id:
            yield f"job {job.submission_id}", client.get_job_logs(job.submission_id)
    for node in list_nodes(address, filters=[("state", "=", "ALIVE")]):
        where: Any = {"address": address, "node_id": node.node_id}
        try:
            names = list_logs(**where, glob_filter=OF_PROCESSES)
            for name in sorted({name for group in names.values() for name in group}):
                yield f"{node.node_ip} {name}", "".join(get_log(**where, filename=name, errors="replace"))
        except (OSError, RayStateApiException) as error:  # its agent is not running, or the node has just left
            say(f"warning: node {node.node_ip} gives no logs: {error}")


app = command("logs", __doc__, run)


if __name__ == "__main__":
    main(app)
