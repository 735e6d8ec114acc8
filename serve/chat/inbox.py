"""Tracks which messages are taken, so that each is answered exactly once.

A platform that saw no acknowledgement delivers a message again, to this process or another one. Each message has a
file. Its process holds a lock on the file, and the file has the message's text until the answer is complete. So another
process can find and answer the messages of a killed one. Without a folder, this works only within one process.
"""

import fcntl
import json
import logging
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path

from pipelines.files.shared_files import state_of
from pipelines.text.parsing import parse_json
from serve.chat.question import Asked

log = logging.getLogger(__name__)

# Slack redelivers a message for about an hour; a day is far longer, and the folder stays small.
KEEP_S = 24 * 3600.0
SWEEP_EVERY_S = 3600.0
ANSWERED = "{}"


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """A message to answer; `first` is the reply that an earlier process started, "" if there is none."""

    asked: Asked
    first: str = ""
    age_s: float = 0.0


class Inbox:
    """Hands out each message once among all processes that use `folder`."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = _prepared(folder)
        self._held: dict[str, TextIOWrapper] = {}
        self._seen: dict[str, None] = {}  # in order of arrival
        self._swept = -math.inf

    def take(self, asked: Asked) -> TakenMessage | None:
        """Return a message to answer; None if it is answered, or being answered."""
        if asked.id in self._seen:
            return None
        self._see(asked.id)
        if self._folder is None:
            return TakenMessage(asked)
        self._sweep()
        path = self._folder / f"{asked.id}.json"
        try:
            file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+")  # noqa: PTH123, SIM115
        except FileExistsError:
            return self._take_over(path)
        except OSError as error:  # a full disk must not prevent an answer
            log.warning("a restart may answer a message twice: %s", error)
            return TakenMessage(asked)
        fcntl.flock(file, fcntl.LOCK_EX)
        self._held[asked.id] = file
        self._write(asked.id, json.dumps({"asked": asdict(asked), "first": ""}))
        return TakenMessage(asked)

    def note(self, asked: Asked, first: str) -> None:
        """Store the id of the first message of the answer in progress."""
        self._write(asked.id, json.dumps({"asked": asdict(asked), "first": first}))

    def close(self, asked: Asked) -> None:
        """Mark a message as answered, and delete its text."""
        self._write(asked.id, ANSWERED)
        if file := self._held.pop(asked.id, None):
            file.close()

    def left_over(self) -> Iterator[TakenMessage]:
        """Yield messages whose process ended before answering them, and take them over."""
        for path in sorted(self._folder.glob("*.json")) if self._folder else []:
            if path.stem not in self._seen and (taken := self._take_over(path)):
                self._see(taken.asked.id)
                yield taken

    def release(self) -> None:
        """Leave unanswered messages to other processes."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def _take_over(self, path: Path) -> TakenMessage | None:
        """Return the message in a file that no process has locked and that is not answered."""
        try:
            file = path.open("r+")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            age_s = time.time() - path.stat().st_mtime
            body = parse_json(file.read() or ANSWERED)
            taken = TakenMessage(Asked(**body["asked"]), str(body["first"]), age_s) if body else None
        except (OSError, ValueError, KeyError, TypeError):  # another process has it, or it is not our file
            return None
        if taken is None:
            file.close()
            return None
        self._held[taken.asked.id] = file
        return taken

    def _write(self, id: str, text: str) -> None:
        if not (file := self._held.get(id)):
            return
        try:
            file.seek(0)
            file.truncate()
            file.write(text)
            file.flush()
        except OSError as error:
            log.warning("a restart may answer a message twice: %s", error)

    def _see(self, id: str) -> None:
        self._seen[id] = None
        while len(self._seen) > 10_000:
            self._seen.pop(next(iter(self._seen)))

    def _sweep(self) -> None:
        """Delete old files."""
        if self._folder is None or time.monotonic() - self._swept < SWEEP_EVERY_S:
            return
        self._swept = time.monotonic()
        for path in self._folder.glob("*.json"):
            state = state_of(path)
            if state and path.stem not in self._held and time.time() - state.st_mtime > KEEP_S:
                path.unlink(missing_ok=True)


def _prepared(folder: Path | None) -> Path | None:
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        log.warning("a restart may answer a message twice: %s can't be made: %s", folder, error)
        return None
    return folder
