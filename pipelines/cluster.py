"""Connects to Ray: to a running cluster, or to a local Ray that stops after use.

Three parts of pipelines know Ray: this module, the chain that builds an index, and the distribution of an evaluation.
The other two need a connection, and a library user has no command line to open one. Ray is imported on first use, so a
run that only reads the database does not load it.
"""

import contextlib
import ipaddress
import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines import ray_internals
from pipelines.files.atomic_files import keep_private
from pipelines.ray_place import NoPlaceForRay, RayPlace, find_place, first_words
from pipelines.ray_ports import AGENT_START_MS, given_ports
from pipelines.text.counts import counted

log = logging.getLogger(__name__)

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
LOOK_S = 1.0
REMEDY = "`raydex submit --status` on the head shows the cluster; unset RAY_ADDRESS to start a local Ray"
LOCAL_REMEDY = "`raydex doctor` checks Ray's requirements"
BUSY_REMEDY = "end other programs (memory, CPUs), and try `python -c 'import ray; ray.init()'`, which shows more"


class UnreachableCluster(ConnectionError):
    """Nothing listens at the cluster's address, or Ray does not start here. The message gives the problem and a
    remedy.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}: {remedy}")
        self.problem, self.remedy = problem, remedy


class WorkFailed(RuntimeError):
    """A task on a Ray worker failed; the message comes from the worker's error."""


class UnreachableDatabase(ValueError):
    """The cluster has other machines, but only this one can reach the database."""


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A connected Ray; other processes find it at `address`."""

    address: str

    def free_resources(self) -> dict[str, Mapping[str, float]]:
        """Return the free resources of each node by node id, such as `{"CPU": 8.0, "GPU": 1.0}`."""
        import ray

        # No public API of Ray 2.60 gives free resources per node. Their sum would promise actors that fit on no node.
        if free := ray_internals.find(ray_internals.FREE_RESOURCES):
            return dict(free())
        return {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}

    def ask_for_node(self, needed: Mapping[str, float], enough: Callable[[], bool], within_s: float) -> None:
        """Ask the autoscaler for a node with `needed` resources, and wait until `enough()` or for at most `within_s`.

        Only an explicit request adds a node before any work runs (Ray's docs, `request_resources`).
        """
        from ray.autoscaler.sdk import request_resources

        until = time.monotonic() + within_s
        request_resources(bundles=[dict(needed)])
        try:
            while time.monotonic() < until and not enough():
                time.sleep(LOOK_S)
        finally:
            request_resources(bundles=[])

    def machines(self) -> set[str]:
        """Return the addresses of the machines that are alive. Nodes with loopback addresses all count as this
        machine.
        """
        import ray

        addresses = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        return {"127.0.0.1" if ipaddress.ip_address(address).is_loopback else address for address in addresses}


# A job yields the CPU to other programs on its machine, which is Ray's default. A service must not: when it shared two
# cores with a language model, its claim checks were 5 s late, and so were the sentences.
JOB_NICENESS, SERVICE_NICENESS = 15, 0


@contextlib.contextmanager
def connect_ray(address: str = "local", niceness: int = JOB_NICENESS, metrics: int = 0) -> Iterator[RayCluster]:
    """Yield the Ray that this process is connected to, or connect to the one at `address`; "local" starts one here.

    Workers of a Ray started here run at this `niceness`, and its metrics are at port `metrics` (0: a free port). On
    exit, a connection made here is closed and a Ray started here is stopped. Raises UnreachableCluster. If the body
    raises one of Ray's errors, it is replaced by the original error (see `own_error`).
    """
    # Ray reads these from the environment only. With `uv run`, it would build the environment again in each worker.
    # Ray's log prints a false alarm for each actor pool (ray#53727). By default, Ray Data waits ten seconds between
    # looks for new nodes.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DATA_MIN_GAP_BETWEEN_AUTOSCALING_REQUESTS", "2")
    if address != "local":
        send_token()
        # Ray waits for a task on a vanished host until it notices the dead connection, by default after seven minutes.
        # Ray's servers reject clients that ping more than once a minute (ENHANCE_YOUR_CALM).
        os.environ.setdefault("RAY_grpc_client_keepalive_time_ms", "65000")
        os.environ.setdefault("RAY_grpc_client_keepalive_timeout_ms", "20000")
    import ray
    from ray.exceptions import RayError

    logging.getLogger("ray").setLevel(logging.ERROR)
    ray_internals.warn_of_missing(ray_internals.OF_CLUSTERS)
    starts_here = not ray.is_initialized()
    if starts_here:
        if problem := why_unreachable(address):  # Ray would retry silently for minutes
            raise UnreachableCluster(problem, REMEDY)
        for warning in check_place().warnings if address == "local" else ():
            log.warning("%s", warning)
        with silent_stderr(), _own_sigterm():
            if address == "local":
                start_local_ray(_system_config={"worker_niceness": niceness}, _metrics_export_port=metrics or None)
            else:
                _join(address)
    try:
        yield RayCluster(ray.get_runtime_context().gcs_address)
    except RayError as error:
        raise own_error(error) from error
    finally:
        if starts_here:
            ray.shutdown()


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Restore this process's SIGTERM handling after the body, in which Ray connects.

    Ray 2.60 installs native code that prints `*** SIGTERM received` with a stack, and replaces the process's handler.
    If the process had no handler, Ray's stays, because it also stops Ray.
    """
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        own = before if callable(before) else signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, own)  # set it again, so that no native handler runs before it


def why_unreachable(address: str) -> str:
    """Return why no cluster can be at `address`; "" if something listens there or the address is a word such as
    `auto`.
    """
    host, _, port = address.rpartition("://")[2].rstrip("/").rpartition(":")
    if port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
        except (OSError, OverflowError) as error:
            return f"nothing answers at {address} ({getattr(error, 'strerror', None) or error})"
    return ""


def own_error(error: Exception) -> Exception:
    """Return the original error behind one of Ray's, without the text that Ray adds to its message.

    A task's error contains its cause, to which Ray Data appends advice. An actor's error, and the one Ray Data makes of
    it, only name the cause on a separate line of the message.
    """
    cause = getattr(error, "cause", None) or error
    if type(cause).__module__.startswith("ray."):
        own = re.findall(r"^pipelines\.[^\n]*?: (.*)", f"{error}\n{cause}", re.MULTILINE)
        return WorkFailed([str(cause), *own][-1])
    cause.args = tuple(arg.partition("\nFailed to ")[0] if isinstance(arg, str) else arg for arg in cause.args)
    return cause


def quiet_context() -> Any:
    """Return Ray Data's context, set to print nothing: the caller reports progress, and each error once."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", "The minimum number of concurrent actors")  # harmless: the input is short
    return context


def leave_to_others(context: Any, held: Mapping[str, float]) -> None:
    """Have Ray Data plan without the `CPU` and `GPU` that others hold; otherwise it would start actors there."""
    from ray.data import ExecutionResources

    # Ray will remove `exclude_resources` in 2027 in favor of `label_selector`, which can't express this: a service and
    # a run share nodes. `resource_limits` doesn't work either: it is a fixed number, so nodes that join later would
    # stay idle.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it would add one line to each job's log
        context.execution_options.exclude_resources = ExecutionResources(cpu=held["CPU"], gpu=held["GPU"])


def is_connected() -> bool:
    """Return whether this process is connected to Ray."""
    return "ray" in sys.modules and bool(sys.modules["ray"].is_initialized())


def start_local_ray(**options: Any) -> None:
    """Start a Ray that only this machine can reach, and connect to it; `options` are passed to `ray.init`.

    It has no dashboard, and neither collects nor sends usage statistics unless RAY_USAGE_STATS_ENABLED is 1. Raises
    UnreachableCluster.
    """
    import ray

    place = check_place()
    keep_token_private()
    quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    options["_system_config"] = {"agent_register_timeout_ms": AGENT_START_MS} | options.get("_system_config", {})
    try:
        with _loopback_alone(), _usage_as_asked(), given_ports():
            ray.init(address="local", **quiet, **place.options(), **options)
    except Exception as error:  # Ray raises a bare Exception if a busy machine is too slow for it
        said = first_words(place.folder, os.getpid())
        known = said and "Timed out" not in said  # a timeout means a busy machine
        reason, remedy = said or str(error), LOCAL_REMEDY if known else BUSY_REMEDY
        raise UnreachableCluster(f"Ray does not start here ({reason})", remedy) from error


def check_place() -> RayPlace:
    """Return the place where Ray can work on this machine. Raises UnreachableCluster."""
    try:
        return find_place(os.environ)
    except NoPlaceForRay as error:
        raise UnreachableCluster(f"Ray can't start here: {error.problem}", error.remedy) from error


def keep_token_private() -> None:
    """Write Ray's token if it doesn't exist, and make its file unreadable for other accounts.

    Ray 2.60 makes the file and its folder readable by everybody. Raises PermissionError.
    """
    folder = Path.home() / ".ray"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keep_private(folder)
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or folder / "auth_token").expanduser()
    if token.exists():
        keep_private(token)
    elif not os.environ.get("RAY_AUTH_TOKEN") and token.parent == folder:
        with tempfile.NamedTemporaryFile("w", dir=folder) as making, contextlib.suppress(FileExistsError):
            making.write(secrets.token_hex(32))
            making.flush()
            os.link(making.name, token)  # the file appears whole, and the first of several processes wins


def _join(address: str) -> None:
    """Connect to the cluster at `address`. Raises UnreachableCluster."""
    import ray

    try:
        with as_it_is(address):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError) as error:
        chain = f"{error}\n{error.__cause__}\n{error.__context__}"
        refused = "it refuses this account's token (~/.ray/auth_token, RAY_AUTH_TOKEN_PATH)"
        reason = refused if "InvalidAuthToken" in chain else str(error).partition("\n")[0]
        raise UnreachableCluster(f"the cluster at {address} can't be joined ({reason})", REMEDY) from error


def send_token() -> None:
    """Have Ray send this account's token to clusters, if there is one and RAY_AUTH_MODE is not set.

    Ray 2.60 sends no token by default. It reads the variable on its first import.
    """
    named = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if named or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def as_it_is(address: str) -> contextlib.AbstractContextManager[None]:
    """Return a context in which Ray connects to a loopback address unchanged.

    On Linux, Ray replaces it by a network address. A head on 127.0.0.1 does not listen there, and Ray gives up after 44
    s.
    """
    is_loopback = address.rsplit(":", 1)[0].strip("[]") in LOOPBACK
    return _loopback_alone() if is_loopback else contextlib.nullcontext()


@contextlib.contextmanager
def _loopback_alone() -> Iterator[None]:
    """Make a Ray that starts in the body listen on 127.0.0.1 only, as it does on Windows and macOS.

    On Linux, Ray 2.60 replaces a `_node_ip_address` of 127.0.0.1 by a network address.
    """
    name = ray_internals.find(ray_internals.CLUSTERS_VARIABLE)  # child processes read it
    if name is None:
        yield
        return
    saved = os.environ.get(name)
    os.environ[name] = "0"
    try:
        with _replaced(ray_internals.CLUSTERS, False):
            yield
    finally:
        os.environ.pop(name)
        os.environ.update({} if saved is None else {name: saved})


def _usage_as_asked() -> contextlib.AbstractContextManager[None]:
    """Return a context in which a new Ray collects and sends usage statistics only if RAY_USAGE_STATS_ENABLED is 1.

    Even without a dashboard, Ray 2.60 starts its process, to collect usage. That process queries the metadata addresses
    of three clouds before it checks whether it may. If the variable is 1, `ray.init` would set it back to 0.
    """
    if os.environ.get("RAY_USAGE_STATS_ENABLED") == "1":
        return _replaced(ray_internals.SET_USAGE, lambda enabled: None)
    return _replaced(ray_internals.START_DASHBOARD, lambda *_, **__: (None, None))


@contextlib.contextmanager
def _replaced(internal: ray_internals.Internal, value: object) -> Iterator[None]:
    """Have Ray read `value` in place of `internal` while the body runs; do nothing if this Ray has no such name."""
    saved = ray_internals.find(internal)
    if saved is None:
        yield
        return
    setattr(internal.owner, internal.name, value)
    try:
        yield
    finally:
        setattr(internal.owner, internal.name, saved)


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Hold back the output of native code on standard error; print it if the body fails."""
    with tempfile.TemporaryFile() as kept:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except UnreachableCluster:  # its message already says why
            raise
        except BaseException:
            kept.seek(0)
            os.write(saved, kept.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def check_reach(database_url: str, machines: set[str]) -> None:
    """Raise UnreachableDatabase if there are several machines and the database is on a loopback address or socket."""
    parts = urlsplit(database_url)
    if len(machines) > 1 and parts.scheme and (parts.hostname or "localhost") in LOOPBACK:
        raise UnreachableDatabase(
            f"the cluster has {counted(len(machines), 'machine')}, but the database is at "
            f"{parts.hostname or 'a local socket'}, which each machine reads as itself: set DATABASE_URL to a "
            "Postgres that all of them can reach"
        )
