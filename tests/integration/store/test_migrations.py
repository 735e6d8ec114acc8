"""Migrations: any released database is updated without loss, once, or stays unchanged."""

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from kit.databases import evaluation_row
from kit.workshop import BASE, Workshop, small_site

from pipelines.store import MigrationFailed, Store, UnusableDatabase, give_database, key_hash
from pipelines.store.migrations import migrate as migrating
from pipelines.store.migrations.migrate import read_migrations
from pipelines.store.migrations.state import read_state
from pipelines.version import raydex_version

DATA = Path(__file__).parents[2] / "data"
TOKEN = "rdx_" + "A" * 43


@pytest.fixture
def first_database_url(empty_database_url: str) -> str:
    """Return the URL of a database made by Raydex 0.1.0, with data in it."""
    with psycopg.connect(empty_database_url) as connection:
        connection.execute((DATA / "database_0.1.0.sql").read_text())  # type: ignore[call-overload]
    return empty_database_url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the migrations, to which tests add more."""
    return Path(shutil.copytree(migrating.FOLDER, tmp_path / "migrations"))


def further(folder: Path, text: str) -> str:
    """Add a migration and return its name."""
    name = f"{read_migrations(folder)[-1].number + 1:03}_further"
    (folder / f"{name}.sql").write_text(text)
    return name


def schema(url: str) -> list[Any]:
    """Return every column and index of the tables made by migrations."""
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "select table_name, column_name, data_type, udt_name, is_nullable, column_default, is_identity "
            "from information_schema.columns where table_schema = 'public' and table_name not like 'chunk%' "
            "order by 1, 2"
        ).fetchall()
        indexes = connection.execute(
            "select indexdef from pg_indexes where schemaname = 'public' and tablename not like 'chunk%' order by 1"
        ).fetchall()
        checks = connection.execute(
            "select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint "
            "where connamespace = 'public'::regnamespace and contype <> 'n' "
            "and conrelid::regclass::text not like 'chunk%' order by 1, 2"
        ).fetchall()
    return [*columns, *indexes, *checks]


def applied(url: str) -> list[tuple[int, str]]:
    with psycopg.connect(url) as connection:
        return connection.execute("select number, name from schema_version order by number").fetchall()


# ---------------------------------------------------------------------------------------------- from the first schema


def test_database_of_the_first_release_gets_the_schema_of_a_new_one(first_database_url: str, store: Store) -> None:
    with Store(first_database_url) as first:
        first.migrate()
    assert schema(first_database_url) == schema(store.url)
    assert applied(first_database_url) == applied(store.url) == [(m.number, m.name) for m in read_migrations()]


def test_everything_in_a_database_of_the_first_release_is_readable(first_database_url: str) -> None:
    with Store(first_database_url) as store:
        store.migrate()
        workshop = Workshop(store, "docs", "hash:8")
        texts = small_site(4, 2)
        assert workshop.texts() == {
            **{f"{page}#{anchor}": [text] for page in ("p00", "p03") for anchor, text in texts[page].items()},
            "p02#s0": ["Another text on page 2."],
        }
        assert workshop.live().revision == 2
        assert workshop.search("Title › s0 Another text on page 2.", 1)[0].source == BASE + "p02#s0"
        revision, changes = store.changes_since(workshop.live().id, 1)
        assert revision == 2 and sum(hit is None for _, hit in changes) == 4 and len(changes) == 5
        assert store.status("docs")["pages"] == {"gone": 1, "ok": 4}
        question, failed = store.question("q1"), store.question("q2")
        assert question and question.answer and failed and (failed.answer, failed.error) == (None, "away")
        assert (question.answer.text, question.answer.hits[0].plain) == ("So [1].", "Another text on page 2.")
        assert [turn.cited for turn in store.conversation("talk", key_name="ci")] == [question.answer.cited]
        assert [row["comment"] for row in store.feedback("q1")] == ["good"]
        key = store.find_key(key_hash(TOKEN))
        assert key is not None and (key.name, key.rate_per_minute) == ("ci", 60)
        assert evaluation_row(store, 1)["scores"] == {"mrr": 0.5}
        assert store.evaluated_questions(1)["one"].scores == {"similarity": 0.5}
        assert store.get_judgements(["h1"])["h1"].score == 4.0
        assert [trial.form for trial in store.model_trials()] == ["written"]
        assert [one.answer for one in store.verified_answers("docs")] == ["So [1]."]


def test_database_of_the_first_release_is_indexed_further(first_database_url: str) -> None:
    """Vectors embedded by a dead run are used, and a publish's replacements can be undone."""
    with Store(first_database_url) as store:
        store.migrate()
        workshop = Workshop(store, "docs", "hash:8")
        site = {**small_site(4, 2), "p01": "gone", "p02": {"s0": "Another text on page 2."}}
        published = workshop.reindex(site)  # this includes the page fetched and embedded by the dead run
        assert published.changed and workshop.embedded == 0  # a later version of sectioning rewrites every page
        assert workshop.reindex(site).changed is False
        assert workshop.reindex(site | {"p06": {"s0": "A new page."}}).written == 1
        assert workshop.embedded == 1


# ---------------------------------------------------------------------------------------------- foreign databases


def refusal(url: str) -> str:
    """Return why a database is refused, and assert that nothing in it has changed."""
    before = schema(url)
    with Store(url) as store, pytest.raises(UnusableDatabase) as caught:
        store.migrate()
    assert schema(url) == before
    with pytest.raises(UnusableDatabase) as again:
        read_state(url)
    assert str(again.value) == str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("numbered", [True, False])
def test_database_older_than_the_first_release_is_refused(first_database_url: str, numbered: bool) -> None:
    """Such a database has the tables, and another record of its migrations, or none."""
    with psycopg.connect(first_database_url) as connection:
        connection.execute("alter table schema_version rename to schema_migration")
        if not numbered:
            connection.execute("drop table schema_migration")
    assert re.search(r"older than 0\.1\.0 .*RAYDEX_HOME.*index again.*`raydex dump`", refusal(first_database_url))
    with psycopg.connect(first_database_url) as connection:
        assert connection.execute("select count(*) from question").fetchone() == (2,)


@pytest.mark.parametrize("table", ["page", "question"])
def test_database_with_tables_of_another_program_is_refused(empty_database_url: str, table: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(f"create table {table} (id integer)")
        connection.execute(f"insert into {table} values (1)")
    assert re.search(rf"another program's tables .*\({table}\).*DATABASE_URL", refusal(empty_database_url))
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select count(*) from pg_extension where extname = 'vector'").fetchone() == (0,)


def test_database_of_another_program_without_such_tables_is_used(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("create table customer (id integer)")
    with Store(empty_database_url) as store:
        store.migrate()
    assert applied(empty_database_url) == [(m.number, m.name) for m in read_migrations()]


# ---------------------------------------------------------------------------------------------- additional migrations


def test_migration_is_applied_completely_or_not_at_all_and_loses_nothing(first_database_url, folder):
    name = further(folder, "create table half (id integer); alter table question drop column answer; select 1 / 0")
    with Store(first_database_url) as store:
        store.migrate()
        before = schema(first_database_url), applied(first_database_url)
        with pytest.raises(MigrationFailed, match=rf"{name} failed and was rolled back: division by zero"):
            store.migrate(folder)
        assert (schema(first_database_url), applied(first_database_url)) == before
        (folder / f"{name}.sql").write_text("alter table question add column note text not null default 'none'")
        store.migrate(folder)
        question = store.question("q1")
        assert question is not None and question.answer is not None and question.answer.text == "So [1]."
    with psycopg.connect(first_database_url) as connection:
        assert connection.execute("select note from question").fetchone() == ("none",)
    assert applied(first_database_url)[-1] == (int(name[:3]), "further")


@pytest.mark.parametrize("url_of", ["empty_database_url", "first_database_url"])
def test_each_migration_is_applied_once_however_many_migrate_at_once(url_of, folder, request):
    url = request.getfixturevalue(url_of)
    further(folder, "create table once (id integer); insert into once values (1)")
    further(folder, "update once set id = id + 1")

    def migrate(_: int) -> None:
        with Store(url) as store:
            store.migrate(folder)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(migrate, range(6)))
    with psycopg.connect(url) as connection:
        assert connection.execute("select id from once").fetchall() == [(2,)]
    assert len(applied(url)) == len(read_migrations(folder))


def test_database_newer_than_the_code_is_refused_with_its_migration(store: Store, folder: Path) -> None:
    name = further(folder, "create table of_the_future (id integer)")
    store.migrate(folder)
    with pytest.raises(
        UnusableDatabase, match=rf"newer Raydex \({raydex_version()}\) .*{name}.*upgrade Raydex"
    ) as caught:
        store.migrate()
    assert "DATABASE_URL" in str(caught.value)


# ---------------------------------------------------------------------------------------------- rights


@pytest.fixture
def limited_url(database_url: str, superuser_url: str) -> Iterator[str]:
    """Return the URL of a role that can read and write every table and create none."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute("create role limited login password 'x'")
        connection.execute("revoke create on schema public from public")
        connection.execute("grant select, insert, update, delete on all tables in schema public to limited")
    parts = urlsplit(database_url)
    yield urlunsplit(parts._replace(netloc=f"limited:x@{parts.hostname}:{parts.port}"))
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute("drop owned by limited")
        connection.execute("drop role limited")


def test_role_without_create_rights_works_unless_a_migration_is_due(limited_url, folder):
    with Store(limited_url) as store:
        store.migrate()
        store.record_feedback("q1", 1)
        assert len(store.feedback("q1")) == 1
        further(folder, "create table more (id integer)")
        with pytest.raises(MigrationFailed, match=r"permission denied.*owner of the database"):
            store.migrate(folder)


def test_concurrent_grants_to_one_role_succeed(superuser_url: str, empty_database_url: str) -> None:
    """Two commands started together do this. Without an order, Postgres fails with "tuple concurrently updated"."""
    with ThreadPoolExecutor(8) as threads:
        given = [
            threads.submit(give_database, url, "raydex_test_role", "password")
            for url in [superuser_url, empty_database_url] * 20
        ]
    for one in given:
        one.result()
