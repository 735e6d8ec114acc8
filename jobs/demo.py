"""Indexes a documentation site over HTTP, serves it, asks a question and keeps serving until Ctrl-C.

Runs the same commands as a user would, `raydex index`, `raydex serve` and `raydex ask`, on one database, with the
language model that it finds on this machine. Without --site it crawls Raydex's own documentation (README.md and docs/
as HTML), served on loopback.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated
from urllib.parse import urlsplit

import httpx
from cyclopts import Parameter

from jobs.cli import DONE, NEEDS_A_LOOK, main, say
from jobs.documentation import serve_documentation
from jobs.environment import child_environment, open_database, variables
from jobs.flags import NoLLM, command
from pipelines.indexing.building.pools import HERE_PAGES
from pipelines.llm.servers import find_llm

ROOT = Path(__file__).resolve().parent.parent
PACKED = ROOT / "raydex_documents"  # in an installed wheel; otherwise the repository's files are used
SERVE_PORT = 8000
READY_S, STOP_S = 180.0, 20.0
OWN_QUESTION = "How does Raydex keep the index fresh?"
ANY_QUESTION = "What is this documentation about?"


class DemoFailed(RuntimeError):
    """A command of the demo ended with an error; its own message is above."""


def run(
    *,
    site: Annotated[str | None, Parameter(help="crawl this site instead of the documentation of Raydex")] = None,
    question: Annotated[str | None, Parameter(help="question to ask")] = None,
    max_pages: Annotated[int, Parameter(help="index at most this many pages of --site")] = 200,
    port: Annotated[int, Parameter(help="port of the service")] = SERVE_PORT,
    once: Annotated[bool, Parameter(help="stop after the first answer")] = False,
    no_llm: NoLLM = None,
) -> int:
    _catch_signals()
    began, base = time.perf_counter(), f"http://127.0.0.1:{port}"
    llm = find_model(bool(no_llm))
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(open_database())
        say("database is up")
        address = site or stack.enter_context(serve_documentation(PACKED if PACKED.is_dir() else ROOT))
        host, collection = urlsplit(address), collection_of(site)
        environment = child_environment(DATABASE_URL=url, RAYDEX_COLLECTION=collection, **llm)
        messages = stack.enter_context(tempfile.TemporaryFile("w+"))
        service = stack.enter_context(run_service(environment, port, messages))
        say(f"indexing {address} into the collection {collection}")
        scope = ["--max-pages", str(max_pages)] if site else []
        scope += ["--allow-private"] * (host.hostname in ("127.0.0.1", "::1", "localhost"))
        few = not site or max_pages <= HERE_PAGES  # embedded sooner than actors start
        moved = ["--max-delete-ratio", "1"]  # the pages of a port that the site has left are no loss
        words = ["index", address, "--collection", collection, *scope, *moved, *["--no-ray"] * few]
        run_command(environment, *words, service=service, messages=messages)
        wait_until_ready(service, f"{base}/health/ready", messages)
        print(flush=True)
        run_command(environment, "ask", question or (ANY_QUESTION if site else OWN_QUESTION), "--url", base)
        try:
            print(farewell(port, time.perf_counter() - began), flush=True)
            if once:
                return DONE
            service.wait()
        except KeyboardInterrupt:  # the way to end a demo
            say("stopping")
    return DONE


def collection_of(site: str | None) -> str:
    """Return the collection of a site, or of Raydex's own documentation, which is the same on any port.

    Each host has its own collection, so that the demo of one site does not answer from another.
    """
    return f"demo-{re.sub(r'[^a-z0-9.]+', '-', (urlsplit(site).hostname or '').lower())}" if site else "demo"


def find_model(no_llm: bool) -> dict[str, str]:
    """Return the variables that make the service answer with the language model found here, and print its name."""
    found = find_llm({**variables(), "RAYDEX_LLM_OFF": "true"} if no_llm else variables())
    for line in found.lines:
        say(line)
    return found.variables | ({"RAYDEX_LLM_OFF": "true"} if no_llm else {})


def farewell(port: int, seconds: float) -> str:
    """Return the next steps, as commands to copy."""
    raydex, base = shown_command(), f"http://127.0.0.1:{port}"
    where = "" if port == SERVE_PORT else f" --url {base}"
    return f"""
answered {seconds:.0f} s after the start. Ask more:
  in a browser   {base}/
  in a terminal  {raydex} ask "your question"{where}
  by HTTP        curl -s {base}/query -H 'content-type: application/json' -d '{{"question": "your question"}}'
Index your own site:
  {raydex} index https://docs.example.com/
  {raydex} status
Ctrl-C stops everything."""


def shown_command() -> str:
    """Return how to call this installation's `raydex` from the current folder."""
    script = Path(sys.executable).with_name("raydex")
    if shutil.which("raydex") == str(script):
        return "raydex"
    if not script.exists():
        return f"{sys.executable} -m jobs"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def run_command(
    environment: Mapping[str, str],
    verb: str,
    *words: str,
    service: "subprocess.Popen[bytes] | None" = None,
    messages: IO[str] | None = None,
) -> None:
    """Run a command until it ends, or the `service` ends. Raises DemoFailed, with the service's `messages`."""
    with subprocess.Popen([sys.executable, "-m", "jobs", verb, *words], env=environment, cwd=ROOT) as command:
        try:
            while command.poll() is None:
                if service and messages and service.poll() is not None:
                    raise DemoFailed(
                        last_words(messages) or f"`raydex serve` ended with exit code {service.returncode}"
                    )
                time.sleep(0.1)
        except BaseException:
            command.terminate()
            raise
    if command.returncode not in (DONE, NEEDS_A_LOOK):
        raise DemoFailed(f"`raydex {verb}` ended with exit code {command.returncode}")


def last_words(messages: IO[str]) -> str:
    """Return the last line of a service's output, "" if there is none."""
    messages.seek(0)
    return (messages.read().strip().splitlines() or [""])[-1]


@contextlib.contextmanager
def run_service(environment: Mapping[str, str], port: int, messages: IO[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the service as a child that ends with the demo; its standard error goes to `messages`."""
    words = [sys.executable, "-m", "jobs", "serve", "--port", str(port)]
    null = subprocess.DEVNULL
    service = subprocess.Popen(words, env=environment, cwd=ROOT, stdout=null, stderr=messages, start_new_session=True)
    try:
        yield service
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(service.pid, signal.SIGINT)
        try:
            service.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(service.pid, signal.SIGKILL)


def wait_until_ready(service: "subprocess.Popen[bytes]", url: str, messages: IO[str]) -> None:
    """Poll the service until it can answer. Raises DemoFailed, with the service's own message if it has ended."""
    deadline, problem = time.monotonic() + READY_S, "it does not answer"
    while time.monotonic() < deadline and service.poll() is None:
        try:
            reply = httpx.get(url, timeout=5, trust_env=False)
            if reply.is_success:
                return
            problem = reply.text
        except httpx.HTTPError as error:
            problem = str(error)
        time.sleep(0.3)
    if service.poll() is not None and (said := last_words(messages)):
        raise DemoFailed(said)
    raise DemoFailed(f"the service is not ready at {url}: {problem}; run `raydex serve` to see its output")


def _catch_signals() -> None:
    """Make both termination signals interrupt the demo, because shells start background jobs with SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


app = command("demo", __doc__, run)


if __name__ == "__main__":
    main(app)
