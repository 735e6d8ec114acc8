"""`make demo`: index a documentation site over HTTP, serve it, ask a question, go on serving until Ctrl-C.

Runs the very commands that a user would, `jobs.reindex`, `serve` and `jobs.ask`, on one database and one local Ray.
Without --site it serves Raydex's own documentation (docs/*.md as HTML) on loopback and crawls that.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from jobs.cli import BadInput, command, main, say
from jobs.documentation import pages_of
from jobs.environment import open_database, ray_address
from pipelines.cluster import connect_ray

ROOT = Path(__file__).resolve().parent.parent
# Page URLs hold the port, so it stays the same from run to run while it is free.
SITE_PORT, SERVE_PORT = 8765, 8000
READY_S = 180.0
OWN_QUESTION = "How does Raydex keep the index fresh?"
ANY_QUESTION = "What is this documentation about?"


class DemoFailed(RuntimeError):
    """A command of the demo ended with an error; its own message stands above."""


def arguments() -> argparse.ArgumentParser:
    parser = command("demo", __doc__)
    parser.add_argument("--site", help="crawl this site instead of Raydex's own documentation")
    parser.add_argument("--question", help="what to ask")
    parser.add_argument("--max-pages", type=int, default=200, help="at most so many pages of --site")
    parser.add_argument("--port", type=int, default=SERVE_PORT, help="port of the service")
    parser.add_argument("--once", action="store_true", help="stop after the first answer")
    return parser


def work(args: argparse.Namespace) -> int:
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(open_database())
        say("database is up")
        address = stack.enter_context(connect_ray(ray_address())).address
        say("Ray is up")
        site = args.site or stack.enter_context(own_documentation())
        collection = collection_name(site)
        environment = os.environ | {"DATABASE_URL": url, "RAY_ADDRESS": address, "RAYDEX_COLLECTION": collection}
        service = stack.enter_context(serving(environment, args.port))
        say(f"indexing {site}")
        scope = [*(["--max-pages", str(args.max_pages)] if args.site else []), *private_flag(site)]
        run(environment, "jobs.reindex", "--collection", collection, "--start-url", site, *scope)
        wait_until_ready(service, f"http://127.0.0.1:{args.port}/health/ready")
        question = args.question or (ANY_QUESTION if args.site else OWN_QUESTION)
        print(flush=True)
        run(environment, "jobs.ask", question, "--url", f"http://127.0.0.1:{args.port}")
        print(farewell(args.port, time.perf_counter() - began), flush=True)
        if not args.once:
            with contextlib.suppress(KeyboardInterrupt):  # how a demo ends
                service.wait()
            say("stopping")
    return 0


def collection_name(site: str) -> str:
    """A collection of its own for each site, so that the demo of one does not answer from another."""
    return "demo-" + re.sub(r"[^a-z0-9.]+", "-", urlsplit(site).netloc.lower())


def private_flag(site: str) -> list[str]:
    """Allow loopback only for a site that is named by it."""
    return ["--allow-private"] if urlsplit(site).hostname in ("127.0.0.1", "::1", "localhost") else []


def farewell(port: int, seconds: float) -> str:
    base = f"http://127.0.0.1:{port}"
    return f"""
answered {seconds:.0f} s after the start. Ask more:
  in a browser   {base}/
  in a terminal  .venv/bin/python -m jobs.ask "your question" --url {base}
  by HTTP        curl -s {base}/query -H 'content-type: application/json' -d '{{"question": "your question"}}'
Ctrl-C stops everything."""


def run(environment: Mapping[str, str], module: str, *arguments: str) -> None:
    """Run one command to its end. Raises DemoFailed."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], env=environment, cwd=ROOT, check=False)
    if done.returncode not in (0, 3):  # 3: done, but pages that vanished were kept
        raise DemoFailed(f"«python -m {module}» ended with {done.returncode}")


@contextlib.contextmanager
def serving(environment: Mapping[str, str], port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The service, as a child that ends with the demo."""
    named = {**environment, "RAYDEX_PORT": str(port)}
    service = subprocess.Popen([sys.executable, "-m", "serve"], env=named, cwd=ROOT, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    try:
        yield service
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(service.pid, signal.SIGINT)
        try:
            service.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(service.pid, signal.SIGKILL)


def wait_until_ready(service: "subprocess.Popen[bytes]", url: str) -> None:
    """Poll the service until it can answer. Raises DemoFailed."""
    deadline, said = time.monotonic() + READY_S, "it does not answer"
    while time.monotonic() < deadline and service.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
        except OSError as error:
            said = str(error)
        time.sleep(0.3)
    raise DemoFailed(f"the service is not ready at {url}: {said}; run «python -m serve» to see its output")


@contextlib.contextmanager
def own_documentation() -> Iterator[str]:
    """Serve docs/*.md as HTML on loopback; yields the site's URL."""
    pages = pages_of(ROOT)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.split("?")[0])
            if page is None:
                self.send_error(404)
                return
            if self.headers.get("If-None-Match") == page.etag:
                self.send_response(304)
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page.html)))
            self.send_header("ETag", page.etag)
            self.end_headers()
            self.wfile.write(page.html)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _listen(Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()


def _listen(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    for port in range(SITE_PORT, SITE_PORT + 20):
        with contextlib.suppress(OSError):
            return ThreadingHTTPServer(("127.0.0.1", port), handler)
    raise BadInput(f"no free port from {SITE_PORT} to {SITE_PORT + 19} for the documentation site")


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT, too: a shell starts background jobs with it ignored
        signal.signal(number, _interrupt)
    main(arguments(), work)
