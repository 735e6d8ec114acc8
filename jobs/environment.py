"""The environment variables that commands read, as values.

Commands read variables only here: DATABASE_URL, RAYDEX_HOME, RAY_ADDRESS, the URL and key of an embedding endpoint, and
RAYDEX_…. Slow modules are imported inside the functions that need them, because `raydex status` must start fast.
"""

import contextlib
import errno
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from pipelines import tracing

if TYPE_CHECKING:
    from pipelines.answering.settings import AnswerSettings
    from pipelines.llm.servers import FoundLLM
    from pipelines.store import Store


class BadVariable(ValueError):
    """An environment variable can't be used; the message names the setting and the problem."""


def locale_language() -> str:
    """Return the language of the terminal (BCP 47), "" if it is not supported."""
    from pipelines.text.languages import LANGUAGES, without_region

    tag = without_region(next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), ""))
    return tag if tag in LANGUAGES else ""


def home() -> Path:
    """Return the folder for all of Raydex's files on this machine. Raises BadVariable for a relative path."""
    from platformdirs import user_data_path

    given = os.environ.get("RAYDEX_HOME")
    if not given:
        return user_data_path("raydex")
    folder = Path(given).expanduser()
    if not folder.is_absolute():
        raise BadVariable(
            f"RAYDEX_HOME {given!r} is relative, so it differs from folder to folder: write {folder.absolute()}"
        )
    return folder


def describe_trouble_at_home(error: BaseException) -> str | None:
    """Return the problem with the home folder, if that is why a file can't be used."""
    if not isinstance(error, OSError) or not isinstance(error.filename, (str, os.PathLike)):
        return None
    folder, path = home(), Path(os.fsdecode(error.filename)).absolute()
    if not path.is_relative_to(folder) and not folder.is_relative_to(path):  # a parent folder that can't be created
        return None
    remedy = "free space there, or set RAYDEX_HOME to a folder on another disk"
    if error.errno != errno.ENOSPC:
        remedy = "set RAYDEX_HOME to a folder in which this user may write"
    return f"RAYDEX_HOME {str(folder)!r} can't be used: {path}: {(error.strerror or str(error)).lower()}; {remedy}"


def read_configuration() -> "AnswerSettings":
    """Return the answer settings, from the same variables as the service.

    Raises BadVariable.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsConfigDict, SettingsError

    from pipelines.answering.settings import AnswerSettings, describe_errors
    from pipelines.answering.settings.variables import FromVariables, explain_not_json

    class Variables(FromVariables, AnswerSettings):
        model_config = SettingsConfigDict(extra="ignore")

    try:
        return AnswerSettings.model_validate(Variables(home=home()).model_dump(exclude_unset=True))
    except ValidationError as error:
        raise BadVariable(describe_errors(error)) from error
    except SettingsError as error:
        raise BadVariable(explain_not_json(error, os.environ)) from error


def find_models(settings: "AnswerSettings") -> tuple["AnswerSettings", "FoundLLM"]:
    """Return the settings with the language model that the service would use, and the search result."""
    from pipelines.answering.settings import AnswerSettings
    from pipelines.llm.servers import find_llm

    found = find_llm(os.environ)
    if not {"llm_model", "llm_off"} & set(found.settings):
        return settings, found
    return AnswerSettings.model_validate({**settings.model_dump(exclude_unset=True), **found.settings}), found


def warn_of_unread() -> None:
    """Warn about each variable RAYDEX_… that nothing reads. Imports nothing if only the home is set."""
    if {name for name in os.environ if name.upper().startswith("RAYDEX_")} - {"RAYDEX_HOME", "RAYDEX_DEBUG"}:
        from pipelines.answering.settings.variables import warn_of_unread

        warn_of_unread(os.environ)


def database_url() -> str:
    """Return DATABASE_URL, "" for the embedded Postgres."""
    return os.environ.get("DATABASE_URL") or ""


def service_port() -> int:
    """Return the port that the service will listen on. Raises BadVariable."""
    given = os.environ.get("RAYDEX_PORT") or "8000"
    if not given.isdecimal() or int(given) > 65_535:
        raise BadVariable(f"RAYDEX_PORT {given!r} is not a port: write a number from 0 to 65535")
    return int(given)


@contextlib.contextmanager
def open_database() -> Iterator[str]:
    """Yield DATABASE_URL if it is set, else the URL of the embedded Postgres, which runs while it is used.

    Waits for an unavailable server. Raises BadDatabaseUrl, StoreUnavailable.
    """
    from pipelines import embedded, store

    if given := database_url():
        store.wait_for_database(given, logging.getLogger(__name__).warning, store.DATABASE_PATIENCE_S)
    with embedded.open_database(given, home()) as url:
        yield url


@contextlib.contextmanager
def open_store() -> Iterator["Store"]:
    """Yield a Store on the database, with its schema up to date; its calls wait while the database restarts.

    Until it ends, SIGTERM ends the command like Ctrl-C, with an exception, so that a run is recorded as interrupted.
    The command is traced if a collector is configured.
    """
    from pipelines.store import DATABASE_PATIENCE_S, Store

    tracing.start(os.environ)
    try:
        with ended_by_sigterm(), open_database() as url, Store(url, retry_s=DATABASE_PATIENCE_S) as store:
            store.migrate()
            yield store
    finally:
        tracing.stop()


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Make SIGTERM raise SystemExit while the body runs, in the main thread of a process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def ray_address() -> str:
    """Return RAY_ADDRESS, the cluster that a job connects to, or "local" for its own Ray."""
    return os.environ.get("RAY_ADDRESS") or "local"


def wants_json_lines() -> bool:
    """Return whether RAYDEX_LOG selects JSON log lines. Raises BadVariable."""
    given = os.environ.get("RAYDEX_LOG") or "text"
    if given not in ("text", "json"):
        raise BadVariable(f"RAYDEX_LOG {given!r} is not a log format: write text or json")
    return given == "json"


def ray_folders() -> list[Path]:
    """Return the folders in which this machine's Rays keep their sessions."""
    from pipelines.ray_place import folders_for_ray

    return [*folders_for_ray(os.environ)]


def in_ray_job() -> bool:
    """Return whether this is the driver of a submitted Ray job, whose working directory is a temporary copy."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def indexing_options() -> dict[str, Any]:
    """Return the reindex options from the environment: Ray, the models' folder, whether paths may be relative.

    They include the URL and key of the endpoint of `openai:` embedding models.
    """
    here = {"ray_address": ray_address(), "model_cache": home() / "models", "relative_paths": not in_ray_job()}
    return here | {
        name: os.environ.get(f"RAYDEX_EMBEDDING__{own}") or os.environ.get(f"RAYDEX_EMBEDDING_{own}") or stand_in
        for name, own, stand_in in (
            ("embedding_url", "URL", os.environ.get("OPENAI_BASE_URL")),
            ("embedding_key", "KEY", os.environ.get("OPENAI_API_KEY")),
        )
    }


def tell_secrets() -> dict[str, Any]:
    """Return the secrets for sending notices and reports, and the URL of Slack's Web API."""
    from pipelines.nights.notices.teller import SERVICE_VARIABLE

    given = {
        "webhook": os.environ.get("RAYDEX_WEBHOOK_SECRET"),
        "slack": os.environ.get("SLACK_BOT_TOKEN"),
        "smtp": os.environ.get("RAYDEX_SMTP_PASSWORD"),
        "slack_api": os.environ.get("SLACK_API_URL"),
        "services": {name: value for name, value in os.environ.items() if name.startswith(SERVICE_VARIABLE)},
    }
    return {name: value for name, value in given.items() if value}


def variables() -> Mapping[str, str]:
    """Return all variables, for code that picks the ones it needs."""
    return dict(os.environ)


def service_key() -> str | None:
    """Return RAYDEX_KEY, the API key that commands send to a service."""
    return os.environ.get("RAYDEX_KEY") or None


def debugging() -> bool:
    """Return whether to show the tracebacks of expected errors too."""
    return bool(os.environ.get("RAYDEX_DEBUG"))


def set_variables(variables: Mapping[str, str]) -> None:
    """Set variables for the rest of this process, overriding the environment."""
    os.environ.update(variables)


def child_environment(**variables: str) -> dict[str, str]:
    """Return the environment for a child process: this process's, plus `variables`."""
    return os.environ | variables
