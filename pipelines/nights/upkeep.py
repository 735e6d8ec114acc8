"""Maintenance after a night's verdict: forget, prune, tidy, dump, test-restore the dump.

Each is a step that returns a description of its result. Knows the store; does not know whether the night published.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from pipelines.embedded import run_scratch_postgres
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.lexical import remove_lexical_folders
from pipelines.nights.dumps import DumpFolder
from pipelines.nights.gate import REGRESSION_SET
from pipelines.nights.journal import StepResult
from pipelines.records.night_choices import NightChoices
from pipelines.store import BuildResources, Store, dump, restore
from pipelines.text.counts import counted
from pipelines.text.progress import Progress


@dataclass(frozen=True)
class NightUpkeep:
    """The maintenance of one collection; `home` is this machine's data folder, `folder` the collection file's folder.

    `dumps` is the folder of the dumps, if the file names one. Raises BadDumpFolder.
    """

    store: Store
    collection: str
    choices: NightChoices
    home: Path
    folder: Path
    progress: Progress

    def __post_init__(self) -> None:
        self._stored()

    @cached_property
    def dumps(self) -> DumpFolder | None:
        aside = self.home / f".{self.collection}.dump"
        return DumpFolder.open(self.choices.dump.folder, self.folder, aside) if self.choices.dump else None

    def check(self) -> None:
        """Raise BadDumpFolder if no dump can be written."""
        if self.dumps:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.dumps.check()

    def steps(self, name: str, evaluations: Sequence[int]) -> dict[str, Callable[[], StepResult]]:
        """Return the steps by name; `name` is the dump's name, `evaluations` are those to keep."""
        chosen = self.choices
        steps = {
            "forget": self._forget if chosen.retention_days is not None else None,
            "prune": self._prune if chosen.prune is not None else None,
            "tidy": lambda: self._tidy(evaluations),
            "dump": (lambda: self._dump(name)) if chosen.dump else None,
            "try restore": (lambda: self._try_restore(name)) if chosen.dump and chosen.dump.try_restore else None,
        }
        return {step: work for step, work in steps.items() if work}

    def plan(self) -> dict[str, str]:
        """Return descriptions of the planned steps."""
        chosen, said = self.choices, {}
        if chosen.retention_days is not None:
            said["forget"] = f"questions older than {counted(chosen.retention_days, 'day')}"
        if chosen.prune is not None:
            retired = [str(one.id) for one in self.store.retired_indexes(self.collection)[chosen.prune :]]
            said["prune"] = f"retired indexes {', '.join(retired) or 'none yet'}; the newest {chosen.prune} stay"
        if chosen.vacuum:
            said["tidy"] = f"tables {', '.join(self._due()) or 'none'}"
        if chosen.dump:
            said["dump"] = (
                f"to {self.dumps and self.dumps.name}, which keeps {chosen.dump.keep}; there are {len(self._stored())}"
            )
        return said

    def _forget(self) -> StepResult:
        days = self.choices.retention_days or 0.0
        count = self.store.forget_questions(days, self.collection)
        return {"said": f"{counted(count, 'question')} older than {counted(days, 'day')}", "questions": count}

    def _prune(self) -> StepResult:
        pruned = self.store.prune(self.collection, self.choices.prune or 0)
        remove_lexical_folders(self.home, self.store.url, pruned)
        return {"said": f"retired indexes {', '.join(map(str, pruned)) or 'none'}", "indexes": pruned}

    def _tidy(self, evaluations: Sequence[int]) -> StepResult:
        forgotten = self.store.forget_evaluations(self.collection, REGRESSION_SET, evaluations) if evaluations else 0
        runs, pages = self.store.forget_past(self.collection)
        due = self._due() if self.choices.vacuum else []
        for table in due:
            self.store.vacuum(table)
        said = (
            f"{counted(forgotten, 'evaluation')} of earlier nights, {counted(runs, 'run')} and "
            f"{counted(pages, 'page')} long gone"
        )
        return {"said": f"{said}; {counted(len(due), 'table')} vacuumed", "tables": due}

    def _due(self) -> list[str]:
        indexes = self.store.status(self.collection)["indexes"]
        return self.store.tables_to_vacuum([index["id"] for index in indexes])

    def _dump(self, name: str) -> StepResult:
        """Dump the live index, then remove the oldest dumps beyond the number to keep."""
        assert self.dumps and self.choices.dump
        size = self.dumps.put(name, partial(dump, self.store, self.store.live_index(self.collection)))
        old = self._stored()[self.choices.dump.keep :]
        for stored in old:
            self.dumps.remove(stored)
        return {"said": f"{self.dumps.name}: {name} ({size / 1e6:,.1f} MB); {counted(len(old), 'old one')} removed"}

    def _try_restore(self, name: str) -> StepResult:
        """Restore the dump into a temporary Postgres. Raises NotADump if the dump is incomplete."""
        assert self.dumps
        self.progress(f"restoring {name} on trial")
        with (
            self.dumps.get(name) as file,
            run_scratch_postgres(self.home / f"scratch-{self.collection}") as url,
            Store(url) as scratch,
        ):
            scratch.migrate()
            with hold_collection(scratch, self.collection) as lock, record_run(lock, "restore", None) as record:
                _, counts = restore(lock, record.run, file, BuildResources())
        return {
            "said": f"{counted(counts['pages'], 'page')} and {counted(counts['chunks'], 'chunk')} came back",
            "counts": counts,
        }

    def _stored(self) -> list[str]:
        """Return the dumps of this collection written by nights, newest first. Raises BadDumpFolder."""
        pattern = rf"{re.escape(self.collection)}-\d{{4}}-\d\d-\d\d-run(\d+)\.dump"
        found = [re.fullmatch(pattern, name) for name in self.dumps.names()] if self.dumps else []
        return [match[0] for match in sorted(filter(None, found), key=lambda match: -int(match[1]))]


def dump_name(collection: str, day: str, run: int) -> str:
    """Return the name of the dump written by the night of `run`."""
    return f"{collection}-{day}-run{run}.dump"
