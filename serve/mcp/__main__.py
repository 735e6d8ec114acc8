"""`raydex mcp`, `python -m serve.mcp`: speaks the Model Context Protocol on standard input and output.

With RAYDEX_SERVICE it forwards to that service. Otherwise it answers in this process, without Ray, with the same home
and settings as `raydex serve`. Standard output carries only the protocol; messages go to standard error.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.settings.variables import warn_of_unread
from pipelines.embedded import open_database
from pipelines.llm.servers import find_llm
from pipelines.store import NoSuchCollection, Store
from serve.api.inquiry import Inquiries
from serve.mcp.forwarder import Forwarder
from serve.mcp.server import Handlers, make_server
from serve.mcp.toolbox import Toolbox
from serve.recorder import Recorder
from serve.settings import CANNOT_START, Settings, explain_start
from serve.threads import DatabaseThreads

PATIENCE_S = 60.0  # agents can wait: without a service the first question builds BM25


def main() -> int:
    """Serve until standard input ends. Exit codes: 0 it ended, 1 failed, 2 invalid setting."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="raydex mcp: %(message)s")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warn_of_unread(os.environ)
    service = os.environ.get("RAYDEX_SERVICE", "")
    if service and not service.startswith(("http://", "https://")):
        return _failed(f"the service {service!r} is not a URL: write it as http://HOST:PORT", 2)
    if sys.stdin.isatty():
        _say("a coding agent's program starts this and speaks to it: docs/mcp.md has its configuration; Ctrl-C ends it")
    try:
        if service:
            anyio.run(speak, make_server(Forwarder(service, os.environ.get("RAYDEX_KEY", ""))))
            return 0
        with open_toolbox() as toolbox:
            anyio.run(speak, make_server(Handlers(toolbox)))
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # a thread is still reading standard input
    except NoSuchCollection as error:
        return _failed(f"{error}; `raydex index` makes one", 2)
    except CANNOT_START as error:
        return _failed(*explain_start(error))
    return 0


async def speak(server: Server[Any]) -> None:
    """Answer requests on standard input until it ends. Raises KeyboardInterrupt on a signal."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_await_signal)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _await_signal() -> None:
    # Exceptions in a signal handler can be lost, for example in a finalizer, so a task raises it instead.
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            raise KeyboardInterrupt


@contextlib.contextmanager
def open_toolbox() -> Iterator[Toolbox]:
    """Yield the tools over an engine in this process, with the settings of the service."""
    found = find_llm(os.environ)
    for line in found.lines:
        _say(line)
    patience: dict[str, Any] = {"retrieval": {"patience_s": PATIENCE_S}}
    settings = Settings(**{**patience, **found.settings})
    with (
        open_database(settings.database_url, settings.home) as url,
        Store(url, settings.database_connections) as store,
        contextlib.closing(make_retriever(settings, store)) as retriever,
    ):
        store.migrate()
        if settings.collection:
            store.find_collection(settings.collection)
        threading.Thread(target=retriever.warm, daemon=True).start()
        engine, threads = make_engine(settings, retriever, store=store), DatabaseThreads()
        recorder = Recorder(store, **settings.recording.model_dump())
        with contextlib.closing(recorder):
            sessions = Inquiries(engine, store, threads, recorder)
            yield Toolbox(engine, store, threads, sessions, settings.collection)


def _failed(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    print(f"raydex mcp: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
