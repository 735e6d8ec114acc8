"""Log lines of every process in one format: JSON, with the ids of the request, run and trace."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import IO, Any

from pipelines import tracing

LOGGERS = ("serve", "pipelines", "jobs", "raydex", "opentelemetry")

_ids: ContextVar[Mapping[str, Any]] = ContextVar("ids", default=MappingProxyType({}))


def ids() -> Mapping[str, Any]:
    """Return the ids of the current work, by name."""
    return _ids.get()


@contextmanager
def with_ids(**more: Any) -> Iterator[None]:
    """Add ids such as `request_id` or `run` to the log lines of the body."""
    before = _ids.set({**_ids.get(), **more})
    try:
        yield
    finally:
        _ids.reset(before)


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON: time (UTC), level, logger, message, ids and its `extra`.

    The ids `own` are added to every line of the process.
    """

    ORDINARY = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"})

    def __init__(self, **own: Any) -> None:
        super().__init__()
        self._own = own

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._own,
            **ids(),
            **({"trace_id": trace} if (trace := tracing.trace_id()) else {}),
            **{name: value for name, value in record.__dict__.items() if name not in self.ORDINARY},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=True)


def log_as_json(stream: IO[str] | None = None, level: int = logging.INFO, **own: Any) -> None:
    """Write Raydex's log records as JSON lines to `stream` (default: stderr), each with the ids `own`.

    A second call replaces the first.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(**own))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [kept for kept in logger.handlers if not isinstance(kept.formatter, JsonLines)] + [handler]
        logger.setLevel(level)
        logger.propagate = False


def as_began(started: datetime) -> str:
    """Return a run's start in the format of the log field `began`."""
    return started.astimezone(UTC).isoformat()


def log_work_of(run: int, collection: str, began: str) -> None:
    """Write this process's log as JSON lines that name its run, and log that it works for that run.

    `began` distinguishes the run from one with the same number in another database.
    """
    log_as_json(run=run, collection=collection, began=began)
    logging.getLogger(__name__).info("works for run %s", run)
