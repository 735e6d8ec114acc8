"""What a job takes from its environment, and how it starts and ends: the entry point of every `python -m jobs.<verb>`.

Environment variables are read here and nowhere else in jobs/: DATABASE_URL, RAYDEX_HOME, RAY_ADDRESS, the address
and key of an embedding endpoint, and RAYDEX_… for what answers are made with.
"""

import argparse
import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def ray_address() -> str:
    """Return RAY_ADDRESS, the cluster that a job connects to, or "local" for a Ray of its own."""
    return os.environ.get("RAY_ADDRESS") or "local"


def in_ray_job() -> bool:
    """Whether this is the driver of a submitted Ray job, whose working directory is a copy that goes away."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


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
