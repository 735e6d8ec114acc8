"""Requests JSON from a server: with a time limit, without redirects, and directly if it is nearby.

Bypasses proxies for nearby servers. Knows HTTP and its failures; knows no model.
"""

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pipelines.proxies import direct_mounts
from pipelines.text.parsing import NotParsed, parse_json
from pipelines.text.phrases import read_table

T = TypeVar("T")

SIGNS: list[tuple[str, str]] = read_table(__name__)["signs"]
# A server lists its models in milliseconds, or in seconds if a model or other work uses all its processors.
ANSWER_S = 5.0
LARGEST = 4_000_000  # maximum bytes of a reply; OpenRouter's list of models, the longest known, has 0.6 MB


class NoAnswer(RuntimeError):
    """A server returned no JSON. The message has its URL and the problem; `status` is its HTTP status or 0."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class OutOfTime(RuntimeError):
    """A function did not finish within its time limit."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of `work`, or raise its exception. Raises OutOfTime; `work` then keeps running unattended.

    It runs in a separate thread, because no library's timeout covers name resolution or a reply that trickles in.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # raised again by the caller's thread
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    if not wait([done], seconds).done:
        raise OutOfTime(f"nothing came within {seconds:g} s")
    return done.result()


def ask(base: str, path: str, *, key: str = "", body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON object from a GET of `base` + `path`, or from a POST of `body`. Raises NoAnswer.

    `key` is sent as a bearer token; no error message repeats it.
    """
    import httpx  # imported here: it takes a second on a busy machine, and must not count as the server's time

    shown = without_password(base)
    if not _is_url(base):
        raise NoAnswer(f"{shown!r} is not a URL: write http://HOST:PORT/v1")
    try:
        status, kind, text = within(ANSWER_S, lambda: _send(base + path, key, body, ANSWER_S))
    except (OutOfTime, httpx.TimeoutException):  # one of them notices first
        raise NoAnswer(f"{shown} did not answer within {ANSWER_S:g} s{_if_tls(base)}") from None
    except Exception as error:  # httpx, the resolver and the TLS library raise dozens of types
        raise NoAnswer(_describe(shown, error, key)) from None
    if status in (401, 403):
        raise NoAnswer(f"{shown} {'refuses the' if key else 'wants an'} API key (HTTP {status})", status)
    if status != 200:
        raise NoAnswer(f"{shown}{path} answers HTTP {status}{_hint(status, base, text)}", status)
    try:
        reply = parse_json(text)
    except NotParsed:
        reply = None
    if not isinstance(reply, dict):
        what = kind or "something"
        raise NoAnswer(f"{shown}{path} answers with {what}, not with JSON: no language model's server", status)
    return reply


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # bad brackets or a bad port
        return False


def is_loopback(url: str) -> bool:
    """Return whether the host name of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def without_password(url: str) -> str:
    """Return a URL without its user and password, for display."""
    return re.sub(r"//[^/@]*@", "//", url)


def _send(url: str, key: str, body: Mapping[str, Any] | None, timeout_s: float) -> tuple[int, str, bytes]:
    """Return the status, media type and body of the reply."""
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    method = "GET" if body is None else "POST"
    tls = url.startswith("https:")  # certificates load slowly, so only for TLS
    with (
        httpx.Client(timeout=timeout_s, follow_redirects=False, verify=tls, mounts=direct_mounts(url)) as client,
        client.stream(method, url, json=body, headers=headers) as response,
    ):
        text = bytearray()
        for part in response.iter_bytes():
            text += part
            if len(text) > LARGEST:
                break
        return response.status_code, response.headers.get("content-type", "").partition(";")[0], bytes(text)


def _describe(url: str, error: Exception, key: str) -> str:
    """Return what went wrong with a connection, and the likely cause."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = f"{type(error).__name__}: {text.replace(key, '…') if key else text}"[:300]
    said = next(said for sign, said in SIGNS if re.search(sign, text, re.IGNORECASE))
    return said.format(url=url, bare=url.partition("://")[2], text=text)


def _if_tls(url: str) -> str:
    """Return a hint for a local server that may not speak TLS."""
    bare = without_password(url).partition("://")[2]
    return f"; if it does not use TLS, write http://{bare}" if url.startswith("https:") and is_loopback(url) else ""


def _hint(status: int, url: str, text: bytes) -> str:
    """Return the probable meaning of an HTTP status."""
    if 300 <= status < 400:
        return ", a redirect, which is not followed: name the address that it leads to"
    if b"HTTPS" in text and url.startswith("http:"):
        return f": it uses TLS, write https://{without_password(url).partition('://')[2]}"
    return ""
