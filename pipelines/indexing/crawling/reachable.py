"""Finds out within seconds whether the hosts of a run can be reached, and if not, why.

It sends each host one small request before Ray is started and a crawl begins. The crawl has its own time limits and
retries. This check only saves a person from waiting for a crawl that can't work. It knows no database.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit
from urllib.request import (
    getproxies_environment,
    proxy_bypass_environment,  # pyrefly: ignore[missing-module-attribute]
)

from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.crawling.network import resolve_permitted, system_lookup
from pipelines.text.phrases import read_table

# After this many seconds, a person is told about a silent host; TCP sends its first packet at 0, 1 and 3 s.
QUIET_S = 3.0
# A site that restarts refuses connections for a moment: the request is repeated after each of these pauses.
RETRY_S = (0.5, 1.0)
CERTIFICATE: dict[str, str] = read_table(__name__)["certificate"]

Tell = Callable[[str], object]


class SiteUnreachable(ConnectionError):
    """No site of the collection can be reached; the message has the reason for each."""


def find_unreachable(hosts: Sequence[CrawlSettings], tell: Tell, quiet_s: float = QUIET_S) -> dict[str, str]:
    """Return the start URL of each unreachable host with the reason; probe all hosts at once.

    After `quiet_s` seconds, `tell` is called about hosts that are still silent. A host is given up after its own time
    limit.
    """
    probes = [_Probe(host) for host in hosts]
    deadline = time.monotonic() + quiet_s
    for probe in probes:
        probe.join(max(0.0, deadline - time.monotonic()))
        if probe.is_alive():
            tell(
                f"{probe.url} has timed out after {quiet_s:g} s: waiting up to {probe.host.timeout_s:g} s for an answer"
            )
    for probe in probes:
        probe.join(max(0.0, deadline - quiet_s + probe.host.timeout_s - time.monotonic()))
    return {probe.url: reason + _about_proxy(probe.url) for probe in probes if (reason := probe.reason)}


def _about_proxy(url: str) -> str:
    """Return a note about an unreachable site that other programs would reach through a proxy, else ""."""
    parts, proxies = urlsplit(url), getproxies_environment()
    if parts.scheme not in proxies or proxy_bypass_environment(parts.hostname or "", proxies):
        return ""
    named = f"{parts.scheme.upper()}_PROXY"
    return (
        f" ({named} is set, but the crawler uses no proxy: it connects to each site itself, so that it can refuse "
        "addresses inside your network; copy the site with `wget --mirror`, and index the copy with `--path`)"
    )


class _Probe(threading.Thread):
    """Probes one host; a daemon thread, because a name lookup can hang far longer than anyone waits."""

    def __init__(self, host: CrawlSettings) -> None:
        super().__init__(daemon=True)
        self.host, self.url = host, host.start_urls[0]
        self.reason = self._silence = f"timed out: no answer within {host.timeout_s:g} s"
        self.start()

    def run(self) -> None:
        for wait in (*RETRY_S, 0.0):
            try:
                self.reason = self._refusal()
                return
            except OSError as error:
                self.reason = self._silence if isinstance(error, TimeoutError) else describe_error(error)
                if not _may_pass(error):
                    return
                time.sleep(wait)

    def _refusal(self) -> str:
        """Wait for the first byte of a response; return why the address guard refuses the host, "" if it does not."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        addresses, refused = (
            (system_lookup(host, port), "") if self.host.allow_private else resolve_permitted(host, port)
        )
        if refused:
            return f"refused: {refused}; `--allow-private` permits such addresses"
        question = f"GET /robots.txt HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {self.host.user_agent}\r\n"
        with self._connected(addresses, host, port, parts.scheme == "https") as connection:
            connection.sendall(f"{question}Accept: */*\r\nConnection: close\r\n\r\n".encode())
            connection.recv(1)
        return ""

    def _connected(self, addresses: Sequence[str], host: str, port: int, tls: bool) -> socket.socket:
        """Return a connection to the first address that accepts one."""
        connection = _connect(addresses, port, self.host.timeout_s)
        if not tls:
            return connection
        context = ssl.create_default_context()
        context.check_hostname = self.host.verify_tls
        context.verify_mode = ssl.CERT_REQUIRED if self.host.verify_tls else ssl.CERT_NONE
        return context.wrap_socket(connection, server_hostname=host)  # closes the connection if that fails


def describe_error(error: OSError) -> str:
    """Describe in a few words why a connection failed."""
    match error:
        case ConnectionRefusedError():
            return "connection refused"
        case socket.gaierror():
            return "no name server answers" if error.errno == socket.EAI_AGAIN else "no such host"
        case ssl.SSLCertVerificationError():
            return f"TLS: {CERTIFICATE.get(str(error.verify_code), error.verify_message)}"
        case ssl.SSLError():
            return f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
    return (error.strerror or str(error)).lower()


def _may_pass(error: OSError) -> bool:
    """Return whether the same connection may succeed a moment later."""
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return not isinstance(error, ssl.SSLError | TimeoutError)


def _connect(addresses: Sequence[str], port: int, timeout_s: float) -> socket.socket:
    """Connect to the first of `addresses` that accepts a connection. Raises the error of the last one."""
    for number, address in enumerate(addresses, 1):
        try:
            return socket.create_connection((address, port), timeout_s / len(addresses))
        except OSError:
            if number == len(addresses):
                raise
    raise socket.gaierror(socket.EAI_NONAME, "no address")
