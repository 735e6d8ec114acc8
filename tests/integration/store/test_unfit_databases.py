"""Each unusable database is refused in one line that says what to do."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from kit.databases import DatabaseServer, url_of
from kit.workshop import Workshop, small_site

from jobs import cli
from jobs import status as status_job
from pipelines.diagnosis.database import DatabaseCheck
from pipelines.store import RunLock, Store, StoreUnavailable, UnusableDatabase, wait_for_database
from pipelines.store.database import connection as connecting
from pipelines.store.database.errors import NotAllowed

ENCODINGS = ("SQL_ASCII", "LATIN1", "EUC_JP", "WIN1252")


@pytest.fixture(params=ENCODINGS)
def strange_url(request: pytest.FixtureRequest, server: DatabaseServer) -> Iterator[str]:
    """Return the URL of an empty database in an encoding other than UTF8."""
    name = f"in_{request.param.lower()}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            f"create database {name} encoding '{request.param}' template template0 lc_collate 'C' lc_ctype 'C'"
        )
        yield url_of(server.url, name)
        connection.execute(f"drop database {name} with (force)")


def test_other_encodings_are_refused_in_one_line(strange_url, tmp_path):
    with Store(strange_url) as store, pytest.raises(UnusableDatabase, match=r"encoding \w+, .*createdb") as caught:
        store.migrate()
    assert "\n" not in str(caught.value)
    check = DatabaseCheck(strange_url, tmp_path, lambda _: "")
    (finding,) = check.check_database()
    assert finding.state == "failed" and "encoding" in finding.found and check.state is None


def test_command_ends_with_that_line(strange_url, monkeypatch, capsys):
    monkeypatch.setenv("DATABASE_URL", strange_url)
    assert cli.run_job(status_job.app, []) == cli.FAILED
    said = capsys.readouterr().err
    assert said.startswith("raydex status: the database ") and said.count("\n") == 1


@pytest.mark.parametrize("given", ["?client_encoding=latin1", "?options=-c%20client_encoding%3Dlatin1", ""])
def test_texts_are_sent_as_utf8_despite_the_encoding_in_the_url(database_url, monkeypatch, given):
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    with Store(f"{database_url}{given}") as store:
        assert store._do(lambda connection: connection.execute("select '→ 東京' as text").fetchone()) == {
            "text": "→ 東京"
        }
        with store.connect() as connection:
            assert connection.execute("show client_encoding").fetchone() == {"client_encoding": "UTF8"}


def test_read_only_database_can_be_queried_and_refuses_a_run_in_one_line(store, superuser_url, tmp_path):
    Workshop(store).reindex(small_site(2))
    store.close()
    with psycopg.connect(superuser_url, autocommit=True) as server:
        name = server.info.dbname
        server.execute(f'alter database "{name}" set default_transaction_read_only = on')
    with Store(store.url, retry_s=60.0) as replica:
        replica.migrate()
        assert replica.live_index("docs").revision == 1
        lock = RunLock(replica, "docs")
        assert lock.try_acquire()
        with pytest.raises(NotAllowed, match=r"only be read: cannot execute .*primary server") as caught:
            lock.begin("reindex", {})
        lock.release()
        assert "\n" not in str(caught.value)
    check = DatabaseCheck(store.url, tmp_path, lambda _: "")
    list(check.check_database())
    (finding,) = check.check_schema()
    assert finding.state == "failed" and "only be read" in finding.found and finding.remedy


def test_role_without_write_rights_is_refused_in_one_line(store, superuser_url):
    Workshop(store).reindex(small_site(2))
    with psycopg.connect(superuser_url, autocommit=True) as server:
        server.execute("drop role if exists onlooker")
        server.execute("create role onlooker login password 'onl00ker'")
        server.execute("grant select on all tables in schema public to onlooker")
    try:
        url = urlsplit(store.url)._replace(netloc=f"onlooker:onl00ker@{store.place}").geturl()
        with Store(url, retry_s=60.0) as reader:
            reader.migrate()
            assert reader.live_index("docs").revision == 1
            lock = RunLock(reader, "docs")
            assert lock.try_acquire()
            with pytest.raises(NotAllowed, match=r"permission denied for table .*raydex doctor") as caught:
                lock.begin("reindex", {})
            lock.release()
            assert "\n" not in str(caught.value) and "onl00ker" not in str(caught.value)
    finally:
        with psycopg.connect(superuser_url, autocommit=True) as server:
            server.execute("drop owned by onlooker")
            server.execute("drop role onlooker")


def test_search_path_without_a_schema_is_refused_in_one_line(empty_database_url):
    with Store(f"{empty_database_url}?options=-c%20search_path%3Dnowhere", retry_s=60.0) as store:
        with pytest.raises(UnusableDatabase, match="no schema has been selected") as caught:
            store.migrate()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query": "sslmode=require"}, "SSL was required"),
        ({"query": "sslmode=verify-full&sslrootcert=/nowhere/root.crt"}, "SSL was required"),
        ({"netloc": "raydex_owner@{place}"}, "no password supplied"),
        ({"query": "require_auth=gss"}, "requirement"),
        ({"path": "/nothing"}, "does not exist"),
    ],
)
def test_permanent_errors_are_not_waited_for(database_url, change, said):
    place = urlsplit(database_url).netloc.rpartition("@")[2]
    url = urlsplit(database_url)._replace(**{key: value.format(place=place) for key, value in change.items()}).geturl()
    heard: list[str] = []
    with pytest.raises(StoreUnavailable, match=said) as caught:
        wait_for_database(url, heard.append)
    assert not heard and "\n" not in str(caught.value)


def test_outdated_pgvector_is_refused_with_the_location_of_a_newer_one(database_url, superuser_url, tmp_path):
    with psycopg.connect(superuser_url) as server:
        server.execute("update pg_extension set extversion = '0.8.0' where extname = 'vector'")
    with (
        Store(database_url) as store,
        pytest.raises(UnusableDatabase, match=r"0\.8\.0 is too old .*apt\.postgresql\.org"),
    ):
        store.migrate()
    check = DatabaseCheck(database_url, tmp_path, lambda _: "")
    list(check.check_database())
    (finding,) = check.check_pgvector()
    assert finding.state == "failed" and "apt.postgresql.org" in finding.remedy


def test_waiting_inside_a_command_is_reported_once(database_url, monkeypatch, caplog):
    monkeypatch.setattr(connecting, "TELL_S", 0.2)
    silent = re.sub(r"@[^/]*/", "@127.0.0.1:9/", database_url)
    with Store(silent, retry_s=1.5) as store, pytest.raises(StoreUnavailable):
        store.collections()
    (record,) = [record for record in caplog.records if not record.name.startswith("psycopg")]
    assert "waiting for the database at 127.0.0.1:9" in record.message and "Ctrl-C ends the wait" in record.message
