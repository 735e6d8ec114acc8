"""The test network of hosts works as described: reachable, cut off, filtered, slow, and removed at the end."""

import subprocess
import sys
import time

import pytest
from kit.hosts import NetHost, network
from kit.processes import eventually
from kit.web import Site

pytestmark = pytest.mark.exhaustive

FETCH = """
import sys, time, urllib.request
began = time.monotonic()
print(len(urllib.request.urlopen(sys.argv[1], timeout=float(sys.argv[2])).read()), time.monotonic() - began)
"""
SERVE = "import http.server as h; h.HTTPServer(('0.0.0.0', {port}), h.SimpleHTTPRequestHandler).serve_forever()"


def fetch(host: NetHost, url: str, within_s: float = 20.0) -> tuple[int, float] | None:
    """Return the size and duration of a request from this host, or None if it fails."""
    command = [*host.host.enter, sys.executable, "-c", FETCH, url, str(within_s)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    size, seconds = done.stdout.split()
    return int(size), float(seconds)


def serve(host: NetHost, port: int) -> str:
    """Serve a file on a port of this host and return its URL."""
    subprocess.Popen([*host.host.enter, sys.executable, "-c", SERVE.format(port=port)], stderr=subprocess.DEVNULL)
    return f"http://{host.host.address}:{port}/"


def test_hosts_reach_each_other_and_published_ports_until_cut_off():
    with network() as net, Site({"/": "x" * 1000}) as site:
        one, two = net.host(), net.host()
        url = net.publish(site.url + "/")
        theirs = serve(two, 8000)
        assert fetch(one, url)[0] == 1000
        eventually(lambda: fetch(one, theirs) is not None, "hosts reach one another")
        two.cut()
        assert fetch(two, url, 1) is None
        assert fetch(one, theirs, 1) is None
        assert fetch(one, url)[0] == 1000
        two.mend()
        assert fetch(two, url)[0] == 1000
        assert fetch(one, theirs) is not None
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    links = subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
    assert net.bridge not in names + links


def test_only_listed_ports_are_open_and_others_are_reported():
    with network() as net:
        one, two = net.host(), net.host()
        listed, other = serve(two, 8000), serve(two, 8001)
        eventually(lambda: fetch(one, listed) is not None and fetch(one, other) is not None, "both answer")
        two.open_only(["6379", "7999-8000"])
        assert fetch(one, listed) is not None
        assert fetch(one, other, 1) is None
        assert two.refused() == {8001}


def test_slow_link_is_as_slow_as_configured():
    with network() as net, Site({"/small": "x", "/large": "x" * 1_250_000}) as site:
        slow, fast = net.host(delay_s=0.05, bits_per_s=10e6), net.host()
        url = net.publish(site.url)
        began = time.monotonic()
        assert fetch(fast, f"{url}/large")[1] < 0.5
        size, seconds = fetch(slow, f"{url}/small")
        assert (size, 0.2 <= seconds < 0.4) == (1, True), seconds  # a handshake, then a request: two round trips
        size, seconds = fetch(slow, f"{url}/large")
        assert (size, 1.1 <= seconds < 3) == (1_250_000, True), seconds  # a second at 10 Mbit/s, and TCP's slow start
        assert time.monotonic() - began < 20
