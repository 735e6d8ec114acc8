"""Claims the port that the service listens on, and reports who has it if it is taken.

Ray's proxy shares its port with any process that asks to share it (SO_REUSEPORT). Without a claim, two services on one
port would both start, and each would get some of the requests. Knows neither Ray nor HTTP.
"""

import contextlib
import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from platformdirs import user_data_path

from pipelines.files.services import find_services

EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # addresses to listen on, but not to connect to
MOST_COMMAND_CHARACTERS = 120
# A suggested port must be free. Nobody starts twenty services on one machine by hand.
MOST_PROPOSALS = 20


class AddressUnusable(OSError):
    """The service can't listen at its address; the message says why and what to do."""


@contextlib.contextmanager
def claim_port(host: str, port: int) -> Iterator[int]:
    """Yield `port`, or a free one for 0; nobody else on this machine can claim it until the block ends.

    The claim is a socket that is bound but never listens, so it gets no connections. Raises AddressUnusable.
    """
    with _make_socket(host) as claim:
        try:
            claim.bind((host, port))
        except OSError as error:
            raise AddressUnusable(_explain(host, port, error)) from error
        claim.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 0
        )  # otherwise another process could make the same claim
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # lets Ray's proxy share the port
        yield claim.getsockname()[1]


def url_of(host: str, port: int) -> str:
    """Return the URL for reaching a service that listens on `host` from this machine."""
    host = EVERY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def describe_holder(port: int) -> str:
    """Describe the process that listens on `port`: a Raydex service with its home, or a process with its command."""
    pid = _listener(port)
    if pid is None:
        return "another process (it is only just starting, or this account can't see it)"
    home = _home_of(pid)
    service = next((found for found in find_services(home) if urlsplit(found.url).port == port), None)
    if service:
        return f"the Raydex service with the home {home} (process {service.pid}: {_command_of(service.pid)})"
    return f"process {pid}: {_command_of(pid)}"


def is_of_this_machine(host: str) -> bool:
    """Return whether `host` is an address of this machine."""
    try:
        with _make_socket(host) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _make_socket(host: str) -> socket.socket:
    """Return a socket that can bind even while connections of an ended service linger."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _explain(host: str, port: int, error: OSError) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"can't listen on {host}, port {port}: {error.strerror or error}; choose others with --host and --port"
    return (
        f"port {port} is taken by {describe_holder(port)}; choose another one with --port or RAYDEX_PORT, "
        f"for example `raydex serve --port {_next_free(host, port)}`"
    )


def _next_free(host: str, port: int) -> int:
    """Return the first free port after `port`; 0, which means any free one, if the next ones are all taken."""
    for near in range(port + 1, min(port + MOST_PROPOSALS, 65_536)):
        with _make_socket(host) as probe, contextlib.suppress(OSError):
            probe.bind((host, near))
            return near
    return 0


# ---------------------------------------------------------------------------------------------- processes


def _listener(port: int) -> int | None:
    """Return the process that listens on `port`; None if it is not visible."""
    with contextlib.suppress(psutil.AccessDenied):  # on macOS; Linux omits the processes of other accounts
        for seen in psutil.net_connections("tcp"):
            if seen.pid and seen.laddr and seen.status == psutil.CONN_LISTEN and seen.laddr.port == port:
                return int(seen.pid)
    return None


def _home_of(pid: int) -> Path:
    """Return the home folder of a process; the default one if it can't be read."""
    with contextlib.suppress(psutil.Error):
        if home := psutil.Process(pid).environ().get("RAYDEX_HOME"):
            return Path(home).expanduser().absolute()
    return user_data_path("raydex")


def _command_of(pid: int) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(" ".join(psutil.Process(pid).cmdline()).split())[:MOST_COMMAND_CHARACTERS]
    return "its command can't be read"
