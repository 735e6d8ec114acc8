"""What a job takes from its environment, and how it starts and ends: the entry point of every `python -m jobs.<verb>`.

Environment variables are read here and nowhere else in jobs/: DATABASE_URL, RAYDEX_HOME, RAY_ADDRESS, the address
and key of an embedding endpoint, and RAYDEX_… for what answers are made with.
"""

import argparse
import contextlib
import json
import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError
from rich.console import Console

from pipelines import embedded
from pipelines.answering.settings import Configuration, complaint
from pipelines.store import CollectionBusy, Store

# Exit codes: 0 done, 1 failed, 2 bad input (argparse's own), 3 done but nothing was deleted for a reason that
# needs a look, 75 another run holds the collection (EX_TEMPFAIL of sysexits.h).
FAILED, BAD_INPUT, NOTHING_DELETED, BUSY = 1, 2, 3, 75
# Modules whose errors say all there is to say.
OURS = ("pipelines.", "jobs.")

LOOPBACK = {"localhost", "127.0.0.1", "::1"}

console = Console(stderr=True, highlight=False, soft_wrap=True)


class BadInput(ValueError):
    """Something the user gave can't be used; the message says what, its value and what to do."""


def home() -> Path:
    """The absolute folder of everything that Raydex keeps on this machine."""
    given = os.environ.get("RAYDEX_HOME")
    return Path(given).expanduser().absolute() if given else user_data_path("raydex")


class Answering(BaseSettings, Configuration):
    """What answers are made with, from the variables that the service reads too."""

    model_config = SettingsConfigDict(
        env_prefix="RAYDEX_", populate_by_name=True, extra="ignore", hide_input_in_errors=True
    )


def answering() -> Answering:
    """The configuration of answers. Raises BadInput for a variable that can't be used."""
    try:
        return Answering(home=home())
    except ValidationError as error:
        raise BadInput(complaint(error)) from error
    except SettingsError as error:
        raise BadInput(f"{error}: write it as JSON") from error


@contextlib.contextmanager
def database() -> Iterator[str]:
    """Yield DATABASE_URL if it is set, else the URL of the embedded Postgres, running as long as it is used."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    with embedded.running(home()) as url:
        yield url


@contextlib.contextmanager
def open_store(retry_s: float = 60.0) -> Iterator[Store]:
    """Yield a Store on the database, its schema up to date."""
    with database() as url, Store(url, retry_s=retry_s) as store:
        store.migrate()
        yield store


@contextlib.contextmanager
def ray_connected() -> Iterator[str]:
    """The Ray that is connected already, that of RAY_ADDRESS, or a local one; yields its address."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # `uv run` would build its environment in every worker
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # ray#53727 prints an alarm for every actor pool
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    ours = not ray.is_initialized()
    if ours:
        address = os.environ.get("RAY_ADDRESS") or "local"
        local: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        with hushed():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local)
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        if ours:
            ray.shutdown()


@contextlib.contextmanager
def ray_cluster() -> Iterator[list[Mapping[str, float]]]:
    """The connected Ray (see ray_connected); yields its nodes' free resources."""
    with ray_connected():
        import ray

        # Ray 2.60 offers free resources by node nowhere else; their sum would promise actors that fit no node.
        yield list(ray._private.state.available_resources_per_node().values())  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Keep back what native code prints on standard error, unless the body fails."""
    with tempfile.TemporaryFile() as kept:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(saved, kept.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def in_ray_job() -> bool:
    """Whether this is the driver of a submitted Ray job, whose working directory is a copy that goes away."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def machines() -> set[str]:
    """Addresses of the machines of the connected cluster."""
    import ray

    return {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]


def check_reach(database_url: str, machines: set[str]) -> None:
    """Raise BadInput if the cluster has other machines and the database answers on this one only."""
    parts = urlsplit(database_url)
    if len(machines) > 1 and parts.scheme and (parts.hostname or "localhost") in LOOPBACK:
        raise BadInput(
            f"the cluster has {len(machines)} machines and the database is on {parts.hostname or 'a local socket'}, "
            "which is another one for each: set DATABASE_URL to a Postgres that all of them reach"
        )


def embedding_endpoint() -> dict[str, Any]:
    """Address and key of the endpoint of `openai:` embedding models."""
    return {
        "embedding_url": os.environ.get("OPENAI_BASE_URL"),
        "embedding_key": os.environ.get("OPENAI_API_KEY"),
    }


def say(message: str) -> None:
    """One line for a person, on standard error: standard output is the result's."""
    console.print(message, markup=False)


def finish(summary: Mapping[str, Any], as_json: bool, text: str) -> None:
    """Print the result: `text`, and as the very last line the JSON object if asked for."""
    if as_json:
        print(json.dumps(summary, default=str, ensure_ascii=False), flush=True)
    else:
        print(text, flush=True)


def run_job(
    parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], int], argv: Sequence[str] | None
) -> int:
    """Parse and run; an expected failure is one clear message, an unexpected one its traceback as well."""
    args = parser.parse_args(argv)
    try:
        return work(args)
    except CollectionBusy as error:
        say(f"{parser.prog}: {error}")
        return BUSY
    except (ValueError, LookupError) as error:
        say(f"{parser.prog}: {in_words(error)[0]}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say(f"{parser.prog}: interrupted; what was done is kept, the next run goes on from there")
        return 130
    except Exception as error:
        if os.environ.get("RAYDEX_DEBUG") or not _expected(error):
            traceback.print_exc()
        say(f"{parser.prog}: {in_words(error)[0]}")
        return FAILED


def _expected(error: Exception) -> bool:
    return in_words(error)[1]


def in_words(error: Exception) -> tuple[str, bool]:
    """What went wrong, in words, and whether it is one of our own errors.

    An error of a Ray task carries the cause inside a long text of where it was; that of an actor, and what Ray Data
    makes of one, only names it in a line of its own.
    """
    cause = getattr(error, "cause", None) or error
    module = type(cause).__module__
    if module.startswith("ray."):
        ours = [line for line in f"{error}\n{cause}".splitlines() if line.startswith(OURS) and ": " in line]
        return (ours[-1].partition(": ")[2], True) if ours else (str(cause), False)
    return str(cause), module.startswith((*OURS, "__main__"))


def main(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], int]) -> None:
    """`run_job` on the command line."""
    sys.exit(run_job(parser, work, None))
