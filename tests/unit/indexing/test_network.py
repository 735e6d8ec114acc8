"""The address guard lets a crawl reach only public addresses, under any name."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_network

import pytest
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from pipelines.indexing.crawling.network import address_refusal, name_refusal, resolve_permitted, system_lookup
from pipelines.indexing.crawling.resolver import GuardedResolver
from pipelines.indexing.crawling.scope import normalize_url

# fmt: off
REFUSED = [
    "127.0.0.1", "127.0.0.53", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1",
    "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "169.254.0.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.1",
    "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16", "::1", "::", "::127.0.0.1",
    "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::7f00:1", "64:ff9b:1:ffff::1",
    "2002:7f00:1::1", "2002:a00:1::", "2002:c0a8:1::1", "2002:808:808::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:0:7f00:1::", "2001:2::1", "2001:10::1", "2001:20::1",
    "2001:db8::1", "3fff::1", "5f00::1", "100::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1",
    "fe80::1%eth0", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff05::1:3", "ff0e::1", "4000::1", "8000::1",
]

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.0.1", "172.32.0.1", "192.167.1.1", "2606:4700::1111",
    "2001:4860:4860::8888", "2001:200::1", "2003::1", "2400::1", "2620:4f:7fff::1", "2620:4f:8001::1", "2a00::1",
    "192.31.195.255", "192.31.197.0", "192.52.192.255", "192.175.49.0", "198.20.0.1", "223.255.255.254",
]

# All blocks of IANA's special-purpose registries for IPv4 and IPv6, including retired ones.
REGISTERED = [
    "0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32",
    "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32",
    "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
    "240.0.0.0/4", "255.255.255.255/32", "::1/128", "::/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96",
    "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "200::/7", "2001::/23", "2001::/32",
    "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
    "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3ffe::/16",
    "3fff::/20", "5f00::/8", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]

# Spellings that the C library's resolver accepts as an IPv4 address.
ODD_SPELLINGS = [
    "127.1", "127.0.1", "0x7f.1", "0x7f000001", "0x7f.0x0.0x0.0x1", "2130706433", "017700000001", "0177.0.0.1",
    "0", "0x0", "0xa9fea9fe", "2852039166", "169.254.43518", "10.1", "0300.0250.0.1",
]

NAMES = [
    "localhost", "LOCALHOST", "localhost.", "app.localhost", "metadata", "metadata.google.internal",
    "Metadata.Google.Internal.", "db.internal", "printer.local", "host.docker.internal",
    "kubernetes.default.svc.cluster.local", "router.home.arpa", "localhost.localdomain", "instance-data",
]

UNFETCHABLE = [
    "file:///etc/passwd", "ftp://example.com/", "gopher://127.0.0.1:6379/_INFO", "data:text/html,x",
    "javascript:alert(1)", "http://", "http:///etc", "http://user@example.com/", "http://user:pw@example.com/",
    "http://example.com@127.0.0.1/", "https://:80/", "http://example.com:99999/", "http://[::1",
    "//example.com/", "jar:http://x!/", "http://example.com:port/", "dict://127.0.0.1:11211/",
    "ldap://127.0.0.1/", "unix:/run/docker.sock",
]
# fmt: on


@pytest.mark.parametrize("block", REGISTERED)
def test_every_special_block_is_refused_from_first_to_last_address(block):
    network = ip_network(block)
    for address in (network[0], network[network.num_addresses // 2], network[-1]):
        assert address_refusal(str(address)), address


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address):
    assert address_refusal(address) == ""


@pytest.mark.parametrize("host", ODD_SPELLINGS)
def test_odd_spellings_of_an_address_are_refused_by_their_meaning(host):
    addresses, reason = resolve_permitted(host, 80)
    assert not addresses and reason


def test_impossible_host_name_is_not_found():
    with pytest.raises(socket.gaierror):
        system_lookup("docs..example.com", 443)


@pytest.mark.parametrize("host", NAMES)
def test_local_and_platform_names_are_refused_without_a_lookup(host):
    def never(host: str, port: int) -> list[str]:
        raise AssertionError(f"looked up {host}")

    assert name_refusal(host)
    assert resolve_permitted(host, 80, never)[0] == ()


@pytest.mark.parametrize("url", UNFETCHABLE)
def test_urls_other_than_plain_http_are_not_pages(url):
    assert normalize_url(url) is None


def test_addresses_are_returned_as_resolved_unless_one_is_private():
    assert resolve_permitted("open.test", 80, lambda *_: ["1.1.1.1", "8.8.8.8"]) == (["1.1.1.1", "8.8.8.8"], "")
    mixed = resolve_permitted("mixed.test", 80, lambda *_: ["1.1.1.1", "10.0.0.1"])
    assert mixed == ((), "10.0.0.1 is a private address")


def test_unresolvable_name_says_so():
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(f"no {host}")

    with pytest.raises(socket.gaierror):
        resolve_permitted("nowhere.test", 80, unknown)


class SameThread:
    """A thread pool that runs everything in the caller's thread."""

    def callInThreadWithCallback(self, done: Callable, work: Callable, *args, **kwargs) -> None:
        try:
            result = work(*args, **kwargs)
        except Exception:
            done(False, Failure())
        else:
            done(True, result)


class Reactor(MemoryReactorClock):
    """Records connections instead of making them. Resolves names with a GuardedResolver."""

    def __init__(self, lookup: Callable[[str, int], Sequence[str]], allow_private: bool = False):
        super().__init__()
        self.installNameResolver(GuardedResolver(self, allow_private, lookup))

    def getThreadPool(self) -> SameThread:
        return SameThread()

    def callFromThread(self, call: Callable, *args, **kwargs) -> None:
        call(*args, **kwargs)

    def connect(self, host: str) -> list[str]:
        """Return the addresses that a connection to `host` would reach."""
        connected = HostnameEndpoint(self, host, 80).connect(Factory.forProtocol(Protocol))
        connected.addErrback(lambda failure: None)
        return [client[0] for client in self.tcpClients]


def test_connection_goes_to_the_checked_address():
    answers = iter(("8.8.8.8", "127.0.0.1"))
    assert Reactor(lambda *_: [next(answers)]).connect("flip.test") == ["8.8.8.8"]
    assert list(answers) == ["127.0.0.1"]  # it was looked up once


@pytest.mark.parametrize("address", REFUSED)
def test_special_addresses_are_refused_without_opening_a_connection(address):
    assert address.split("%")[0] in address_refusal(address)
    reactor = Reactor(lambda *_: [address])
    assert reactor.connect("rebind.test") == []
    assert "rebind.test" in reactor.nameResolver.refusals


def test_name_that_becomes_private_later_is_refused_then():
    answers = iter(("8.8.8.8", "10.0.0.1"))
    reactor = Reactor(lambda *_: [next(answers)])
    assert reactor.connect("flip.test") == ["8.8.8.8"]
    assert reactor.connect("flip.test") == ["8.8.8.8"]  # the first connection, and no second one
    assert "10.0.0.1" in reactor.nameResolver.refusals["flip.test"]


def test_private_addresses_are_connected_to_if_allowed():
    assert Reactor(lambda *_: ["127.0.0.1"], allow_private=True).connect("localhost") == ["127.0.0.1"]
