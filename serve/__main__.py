"""`python -m serve` and `raydex serve`: serves on this machine until Ctrl-C.

Unless DATABASE_URL is set, it runs a Postgres of its own.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator

import ray
from pydantic import ValidationError
from pydantic_settings import SettingsError
from ray import serve

from pipelines import embedded
from pipelines.answering.settings import describe_errors
from pipelines.store import Store, StoreUnavailable, UnusableDatabase
from serve import proxy
from serve.app import build
from serve.settings import Settings

APP = "raydex"


def main() -> int:
    """Serve until interrupted. Exit codes: 0 stopped, 1 failed, 2 a setting is not valid."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = Settings()
        with database(settings) as url, local_ray():
            run(settings.model_copy(update={"database_url": url}), stop)
    except ValidationError as error:
        return _failed(describe_errors(error), 2)
    except SettingsError as error:
        return _failed(f"{error}: write it as JSON", 2)
    except (StoreUnavailable, UnusableDatabase, embedded.EmbeddedPostgresFailed) as error:
        return _failed(str(error), 1)
    return 0


def run(settings: Settings, stop: threading.Event) -> None:
    """Deploy the application, print its address, wait for `stop`, and delete the application."""
    with Store(settings.database_url) as store:
        store.migrate()
    serve.start(http_options={"host": settings.host, "port": settings.port}, proxy_location="HeadOnly")
    try:
        serve.run(build(settings), name=APP, route_prefix="/")
        base = f"http://{settings.host}:{settings.port}"
        print(f"ask in a browser at {base}/ or with: raydex ask 'your question' --url {base}", flush=True)
        stop.wait()
    finally:
        serve.delete(APP)
        serve.shutdown()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def database(settings: Settings) -> Iterator[str]:
    """Yield the URL of the database of the settings, or of the embedded one, which runs as long as the service."""
    if settings.database_url:
        yield settings.database_url
        return
    with embedded.run_postgres(settings.home) as url:
        yield url


@contextlib.contextmanager
def local_ray() -> Iterator[None]:
    """Connect to the cluster at RAY_ADDRESS, or start a Ray for this process alone; disconnect at the end."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # `uv run` would build an environment for each worker
    os.environ.setdefault(proxy.VARIABLE, proxy.VALUE)
    address = os.environ.get("RAY_ADDRESS") or "local"
    own = address == "local"
    for name in ("ray", "ray.serve"):
        logging.getLogger(name).setLevel(logging.ERROR)
    ray.init(
        address=address,
        include_dashboard=False if own else None,
        log_to_driver=False,  # Ray keeps the log of each process in its session folder
        logging_level=logging.ERROR,
        _node_ip_address="127.0.0.1" if own else None,  # Ray's own ports stay on this machine
    )
    try:
        yield
    finally:
        ray.shutdown()


def _failed(message: str, code: int) -> int:
    print(f"raydex serve: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
