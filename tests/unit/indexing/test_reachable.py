"""An unreachable host is reported within seconds, with the reason in plain words."""

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from kit.certificates import certificate
from kit.web import Site, closed_port, page

from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.crawling.reachable import find_unreachable


def host(url: str, **settings: object) -> CrawlSettings:
    return CrawlSettings(start_urls=(url,), allow_private=True, **settings)  # type: ignore[arg-type]


def reason(settings: CrawlSettings, quiet_s: float = 30.0) -> str:
    """Return the reason for the only host, or "" if it can be reached. Nothing may be reported about it before."""
    told: list[str] = []
    reasons = find_unreachable([settings], told.append, quiet_s)
    assert told == []
    return reasons.get(settings.start_urls[0], "")


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_site_that_recovers_within_a_second_is_reachable() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            server.listen()
            server.accept()[0].sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        threading.Timer(0.2, answer).start()
        assert reason(host(f"http://127.0.0.1:{server.getsockname()[1]}/")) == ""


def test_unknown_name_is_reported_as_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # so that no name server is needed
    assert reason(host("https://docs.exmaple.invalid/")) == "no such host"


@pytest.mark.parametrize(("url", "failure"), [
    ("https://docs.example.invalid/", socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
    ("http://docs.example.invalid/", ConnectionRefusedError(111, "Connection refused")),
    ("https://docs.example.invalid/", OSError(101, "Network is unreachable")),
])  # fmt: skip
def test_crawl_that_ignores_a_configured_proxy_says_so(
    monkeypatch: pytest.MonkeyPatch, url: str, failure: OSError
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise failure

    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", fails)
    assert "PROXY" not in reason(host(url))
    scheme = url.partition(":")[0].upper()
    monkeypatch.setenv(f"{scheme}_PROXY", "http://user:secret@proxy.test:3128")
    said = reason(host(url))
    assert f"{scheme}_PROXY is set, but the crawler uses no proxy" in said and "`--path`" in said
    assert "secret" not in said
    monkeypatch.setenv("NO_PROXY", ".invalid")
    assert "PROXY" not in reason(host(url)), "no program would ask the proxy for this host"


def test_silent_host_is_reported_at_once_and_given_up_at_its_time_limit(silent: str) -> None:
    told: list[str] = []
    reasons = find_unreachable([host(silent, timeout_s=1.0)], told.append, quiet_s=0.1)
    assert told == [f"{silent} has timed out after 0.1 s: waiting up to 1 s for an answer"]
    assert reasons == {silent: "timed out: no answer within 1 s"}


def test_private_address_is_refused_before_connecting(silent: str) -> None:
    assert reason(CrawlSettings(start_urls=(silent,))).startswith(
        "refused: 127.0.0.1 is a loopback address; `--allow-private`"
    )


def test_any_reply_means_reachable_and_a_closed_port_means_refused() -> None:
    with Site({"/": page()}) as site, closed_port() as port:
        hosts, told = [host(f"{site.url}/"), host(f"http://127.0.0.1:{port}/docs/")], list[str]()
        assert find_unreachable(hosts, told.append) == {f"http://127.0.0.1:{port}/docs/": "connection refused"}
    assert told == []


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("name", "until", "trusted", "words"),
    [
        ("127.0.0.1", NOW + timedelta(days=2), True, ""),
        ("127.0.0.1", NOW + timedelta(days=2), False, "TLS: certificate self-signed"),
        ("127.0.0.1", NOW - timedelta(days=2), True, "TLS: certificate expired"),
        ("127.0.0.1", NOW + timedelta(days=32), True, "TLS: certificate not valid yet"),
        ("elsewhere.test", NOW + timedelta(days=2), True, "TLS: certificate of another address"),
    ],
)  # fmt: skip
def test_bad_certificate_is_reported(tmp_path, monkeypatch, name, until, trusted, words):
    path = certificate(tmp_path, name, until)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with Site({"/": page()}) as site:
        site.use_tls(path)
        assert reason(host(f"{site.url}/")) == words
        assert reason(host(f"{site.url}/", verify_tls=False)) == ""


def test_port_without_tls_is_reported() -> None:
    with Site({"/": page()}) as site:
        found = reason(host(site.url.replace("http:", "https:") + "/"))
    assert found == "TLS: wrong version number"
