"""Migrations: a database of any age is brought up to date without loss, once, or stays as it was."""

import json
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

from pipelines.records import Answer, Citation, Claims, Route, Usage
from pipelines.store import MigrationFailed, Store, UnusableDatabase, give_database, key_hash
from pipelines.store.database.jsonb import to_jsonb
from pipelines.store.migrations import migrate as migrating
from pipelines.store.migrations.migrate import read_migrations

DATA = Path(__file__).parents[2] / "data"
TOKEN = "rdx_" + "A" * 43


@pytest.fixture
def old_database_url(empty_database_url: str) -> str:
    """URL of a database of before numbered migrations, with data in it."""
    with psycopg.connect(empty_database_url) as connection:
        connection.execute((DATA / "database_before_migrations.sql").read_text())  # type: ignore[call-overload]
    return empty_database_url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the migrations, for more of them."""
    return Path(shutil.copytree(migrating.FOLDER, tmp_path / "migrations"))


def further(folder: Path, text: str) -> str:
    """Add a migration; returns its name."""
    name = f"{read_migrations(folder)[-1].number + 1:03}_further"
    (folder / f"{name}.sql").write_text(text)
    return name


def schema(url: str) -> list[Any]:
    """Every column and index of the tables that migrations make."""
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
        return connection.execute("select number, name from schema_migration order by number").fetchall()


# ---------------------------------------------------------------------------------------------- from the old schema


def test_old_database_gets_the_schema_of_a_new_one(old_database_url: str, store: Store) -> None:
    with Store(old_database_url) as old:
        old.migrate()
    assert schema(old_database_url) == schema(store.url)
    assert applied(old_database_url) == applied(store.url) == [(m.number, m.name) for m in read_migrations()]


def test_everything_in_an_old_database_is_readable_and_searchable(old_database_url: str) -> None:
    with Store(old_database_url) as store:
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
        question = store.question("q1")
        assert question is not None and question.answer is not None
        assert (question.answer.text, question.answer.hits[0].score) == ("So [1].", 0.5)
        assert [turn.cited for turn in store.conversation("talk", key_name="ci")] == [("c1",)]
        assert [row["comment"] for row in store.feedback("q1")] == ["good"]
        key = store.find_key(key_hash(TOKEN))
        assert key is not None and (key.name, key.rate_per_minute) == ("ci", 60)
        assert evaluation_row(store, 1)["scores"] == {"mrr": 0.5}
        assert store.evaluated_questions(1)["one"].scores == {"similarity": 0.5}
        assert store.get_judgements(["h1"])["h1"].score == 4.0


def test_old_database_is_updated_and_vectors_of_a_dead_run_are_reused(old_database_url: str) -> None:
    with Store(old_database_url) as store:
        store.migrate()
        workshop = Workshop(store, "docs", "hash:8")
        site = {**small_site(4, 2), "p01": "gone", "p02": {"s0": "Another text on page 2."}}
        published = workshop.reindex(site)  # the page that the dead run has fetched and embedded comes with it
        # Sections are newer than that database: all are made again, with the vectors that are there.
        assert (published.in_place, published.written, workshop.embedded) == (False, 6, 0)
        assert workshop.reindex(site).changed is False
        assert workshop.reindex(site | {"p06": {"s0": "A new page."}}).written == 1
        assert workshop.embedded == 1


def remove_from(folder: Path, number: int) -> None:
    """Leave the migrations before `number`."""
    for path in folder.glob("*.sql"):
        if path.name[:3].isdigit() and int(path.name[:3]) >= number:
            path.unlink()


def test_copies_without_a_recorded_original_are_not_reread(old_database_url: str, folder: Path) -> None:
    """The reasons are those that the version before wrote."""
    remove_from(folder, 17)
    copies = {"p00?ref=x": f"same content as {BASE}p00", "p00-copy": f"same page as {BASE}p00"}
    with Store(old_database_url) as store:
        store.migrate(folder)
        with psycopg.connect(old_database_url) as connection:
            for url, error in copies.items():
                connection.execute(
                    "insert into page (collection, url, state, error, canonical, content_hash, body, run, first_run, "
                    "changed_run) values ('docs', %s, 'duplicate', %s, %s, 'h', '', 1, 1, 1)",
                    (BASE + url, error, None if "?" in url else f"{BASE}p00"),
                )
        store.migrate()
        workshop = Workshop(store, "docs", "hash:8")
        live = workshop.live()
        assert [store.find_pages(live, [BASE + url]) for url in copies] == [[f"{BASE}p00"]] * 2
        with psycopg.connect(old_database_url) as connection:  # a crawl finds them as they were
            connection.execute("update page set state = 'ok' where state = 'duplicate'")
        assert store.pages_to_index("docs", 99, live.id, "other rules", [BASE + url for url in copies]) == []


def test_answers_older_than_answer_documents_still_read(empty_database_url: str, folder: Path) -> None:
    """The rows are those that the version before wrote: an answer, one that does not know, a failure."""
    remove_from(folder, 12)
    rows = json.loads((DATA / "questions_before_documents.json").read_text())
    with Store(empty_database_url) as store:
        store.migrate(folder)
        store._run("record_questions", {"rows": to_jsonb(rows)})
        store.migrate()
        known, unknown, failed = (store.question(row["id"]) for row in rows)
        assert [turn.cited for turn in store.conversation("talk", key_name="ci")] == [("c1", "c2")]
    assert known and unknown and failed and known.answer and unknown.answer
    assert (failed.answer, failed.error, failed.key_name) == (None, "away", "ci")
    first, second = known.answer.hits
    assert (first.source, first.chunk_id, first.text, first.ranks) == (
        "https://d.test/p1#a", "c1", rows[0]["hits"][0]["snippet"], {"bm25": 1},
    )  # fmt: skip
    assert second.source == "https://d.test/p2" and second.anchors == ()
    assert known.answer == Answer(
        "and then?", "Yes [1], also [2].", "strong",
        (Citation(1, first.source, "T", "snip", ("H",), {"bm25": 7.0}, False, 0.25, "attributed"),
         Citation(2, "https://d.test/other#x", "O", "s")),
        (first, second), ("bm25",), {"total": 0.5, "first_delta": 0.1}, 1, 2, "a1", True, Route("strong", "asked for"),
        ("What comes then?", "more"), ("A note.",), Usage(10, 5, 2, 0.25), (), "length",
        Claims(3, 2, 1, ("It is so.",)), "some", "docs",
    )  # fmt: skip
    assert (known.standalone, known.channel, known.page) == ("What comes then?", "widget", "https://d.test/a")
    assert (unknown.answer.known, unknown.answer.citations, unknown.standalone) == (False, (), "")


# ---------------------------------------------------------------------------------------------- further migrations


def test_migration_is_applied_completely_or_not_at_all_and_loses_nothing(old_database_url, folder, tmp_path):
    name = further(folder, "create table half (id integer); alter table question drop column answer; select 1 / 0")
    (tmp_path / "001_schema.sql").write_text("drop table question; select 1 / 0")
    with Store(old_database_url) as store:
        before = schema(old_database_url)
        with pytest.raises(MigrationFailed):
            store.migrate(tmp_path)
        assert schema(old_database_url) == before
        store.migrate()
        before = schema(old_database_url), applied(old_database_url)
        with pytest.raises(MigrationFailed, match=rf"{name} failed and was rolled back: division by zero"):
            store.migrate(folder)
        assert (schema(old_database_url), applied(old_database_url)) == before
        (folder / f"{name}.sql").write_text("alter table question add column note text not null default 'none'")
        store.migrate(folder)
        question = store.question("q1")
        assert question is not None and question.answer is not None and question.answer.text == "So [1]."
    with psycopg.connect(old_database_url) as connection:
        assert connection.execute("select note from question").fetchone() == ("none",)
    assert applied(old_database_url)[-1] == (int(name[:3]), "further")


@pytest.mark.parametrize("url_of", ["empty_database_url", "old_database_url"])
def test_each_migration_is_applied_once_despite_concurrent_migrations(url_of, folder, request):
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
    with pytest.raises(UnusableDatabase, match=rf"newer version of Raydex .*{name}.*upgrade Raydex") as caught:
        store.migrate()
    assert "DATABASE_URL" in str(caught.value)


# ---------------------------------------------------------------------------------------------- rights


@pytest.fixture
def limited_url(database_url: str, superuser_url: str) -> Iterator[str]:
    """URL of a role that may read and write every table and create none."""
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
    """As by two commands that start at a time: without an order Postgres fails with "tuple concurrently updated"."""
    with ThreadPoolExecutor(8) as threads:
        given = [
            threads.submit(give_database, url, "raydex_test_role", "password")
            for url in [superuser_url, empty_database_url] * 20
        ]
    for one in given:
        one.result()
