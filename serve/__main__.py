"""`python -m serve` and `raydex serve`: serves on this machine until Ctrl-C.

Unless DATABASE_URL is set, it runs its own Postgres; unless RAY_ADDRESS is set, its own Ray. If no language model is
configured, it looks for one on this machine. While it runs, its home folder records its address. `raydex serve --help`
lists the flags.
"""

import contextlib
import io
import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ray import serve

from pipelines.answering.forms import describe_forms
from pipelines.answering.retrieval.live import CollectionNotNamed, choose_collection
from pipelines.answering.settings import all_agents
from pipelines.cluster import SERVICE_NICENESS, UnreachableCluster, connect_ray
from pipelines.embedded import open_database
from pipelines.files.services import announce
from pipelines.llm.servers import find_llm
from pipelines.store import Store
from pipelines.text.mistakes import nearest
from serve import proxy
from serve.app import build
from serve.chat.running import ChatRefused
from serve.port import AddressUnusable, claim_port, is_of_this_machine, url_of
from serve.proxy.listening import running_address
from serve.settings import CANNOT_START, Settings, explain_start

APP = "raydex"
LOCAL = "local"


class ClusterTaken(RuntimeError):
    """The cluster already serves Raydex; a second `raydex serve` would replace that service, and remove it on exit."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the Ray cluster {address} serves Raydex already: stop that service first, or unset RAY_ADDRESS to "
            "serve with a Ray of its own"
        )


def main() -> int:
    """Serve until interrupted. Exit codes: 0 stopped, 1 failed, 2 invalid setting."""
    if sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        return check(Path(sys.argv[2]))
    if sys.argv[1:]:
        return _failed(f"{sys.argv[1]}: `python -m serve` takes no flags, `raydex serve` does", 2)
    stop = threading.Event()
    _at_signals(partial(_interrupt, stop))
    try:
        found = find_llm(os.environ)
        settings = Settings(**found.settings)
        for line in found.lines:
            _say(line)
        with claim(settings) as port, open_database(settings.database_url, settings.home) as url:
            _at_signals(stop.set)  # an exception while Ray starts would crash the process on exit
            with local_ray(settings.metrics_port):
                _at_signals(partial(_interrupt, stop))  # replaces Ray's handlers, which print a stack trace
                if not stop.is_set():
                    run(settings.model_copy(update={"database_url": url, "port": port}), stop)
    except KeyboardInterrupt:
        pass
    except (*CANNOT_START, ChatRefused, AddressUnusable, ClusterTaken, UnreachableCluster) as error:
        message, code = explain_start(error)
        return _failed(message, 2 if isinstance(error, ChatRefused) else code)
    return 0


def check(path: Path) -> int:
    """Print the faults of a Serve config file. Exit codes: 0 none, 2 faults."""
    from serve.check import check_file

    for fault in (faults := check_file(path)):
        _say(f"{path}: {fault}")
    if not faults:
        print(f"{path} is ok: `serve deploy {shlex.quote(str(path))}` deploys it")
    return 2 if faults else 0


def run(settings: Settings, stop: threading.Event) -> None:
    """Deploy the application, print and announce its address, wait for `stop`, and delete the application."""
    with Store(settings.database_url) as store:
        store.migrate()
        note_what_is_missing(store, settings.collection)
        for line in describe_forms(all_agents(settings), store.model_trials()):
            _say(line)
    shared = running_address()
    if shared and APP in serve.status().applications:
        raise ClusterTaken(ray_address())
    serve.start(http_options={"host": settings.host, "port": settings.port}, proxy_location="HeadOnly")
    try:
        serve.run(build(settings), name=APP, route_prefix="/")
        url = url_of(settings.host, (shared and shared.port) or settings.port)
        with announce(settings.home, url, settings.collection):
            print(f"ask in a browser at {url}/ or with: raydex ask 'your question' --url {url}", flush=True)
            stop.wait()
    finally:
        with contextlib.redirect_stdout(io.StringIO()):  # Ray prints a message when the controller ends
            serve.delete(APP)
            if not shared:
                serve.shutdown()


def note_what_is_missing(store: Store, collection: str) -> None:
    """Print on standard error what to index before questions can be answered."""
    rows = store.collections()
    published = [row["name"] for row in rows if row["index"] is not None]
    if not published:
        _say("nothing is indexed yet: `raydex index URL` does it, and the service answers from then on")
    elif collection and collection not in published:
        near = nearest(collection, published)
        meant = f"; did you mean {near}?" if near else ""
        _say(f"the collection {collection!r} has no published index; those that have: {', '.join(published)}{meant}")
    elif not collection:
        try:
            choose_collection(rows)
        except CollectionNotNamed as error:
            _say(str(error))


def claim(settings: Settings) -> contextlib.AbstractContextManager[int]:
    """Claim the configured port; if the proxy listens on a cluster's head elsewhere, only yield the port."""
    head = re.sub(r"^ray://|:\d+$", "", ray_address())
    here = head in (LOCAL, "auto") or is_of_this_machine(head.strip("[]"))
    return claim_port(settings.host, settings.port) if here else contextlib.nullcontext(settings.port)


def ray_address() -> str:
    """Return RAY_ADDRESS, or LOCAL for a Ray that only this process uses."""
    return os.environ.get("RAY_ADDRESS") or LOCAL


def local_ray(metrics_port: int) -> contextlib.AbstractContextManager[object]:
    """Connect to the cluster at RAY_ADDRESS, or start a Ray only for this process; disconnect at the end."""
    proxy.configure(os.environ)
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    return connect_ray(ray_address(), SERVICE_NICENESS, metrics_port)


def _at_signals(do: Callable[[], object]) -> None:
    """Call `do` on either of the signals that end a process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: do())


def _interrupt(stop: threading.Event) -> None:
    """Raise KeyboardInterrupt, but only once: it interrupts a start, which takes long, but not a shutdown."""
    if not stop.is_set():
        stop.set()  # in case the exception is lost, as in a finalizer
        raise KeyboardInterrupt


def _failed(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    print(f"raydex serve: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
