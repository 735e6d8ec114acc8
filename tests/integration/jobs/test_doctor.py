"""`raydex doctor` on real databases reports faults and changes nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from kit.scripted_llm import Reply, ScriptedLLM

from pipelines.diagnosis import Check, Finding, run_check
from pipelines.diagnosis.database import DatabaseCheck
from pipelines.store import Store
from pipelines.store.migrations.migrate import FOLDER, read_migrations
from pipelines.store.migrations.state import read_state

ROOT = Path(__file__).parents[3]


def check(url: str, dimensions: int = 0) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    database = DatabaseCheck(url, Path("/nowhere"), lambda opening: opening.__enter__())
    checks = {
        "database": database.check_database,
        "pgvector": database.check_pgvector,
        "schema": database.check_schema,
        "collections": lambda: database.check_collections(lambda model: dimensions),
    }
    for name, work in checks.items():
        run_check(Check(name, work, 30), lambda finding, name=name: found.setdefault(name, finding))
    return found


def test_empty_database_stays_empty(empty_database_url: str) -> None:
    found = check(empty_database_url)
    states = {name: finding.state for name, finding in found.items()}
    assert states == {"database": "ok", "pgvector": "ok", "schema": "ok"}
    assert "the first command creates the extension" in found["pgvector"].found
    assert "no tables yet" in found["schema"].found
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select count(*) from pg_class where relname = 'page'").fetchone() == (0,)


def test_healthy_database_passes(database_url: str) -> None:
    found = check(database_url)
    assert [finding.state for finding in found.values()] == ["ok", "ok", "ok", "warn"]
    assert "raydex index URL" in found["collections"].remedy


def test_pending_migrations_are_listed_but_not_applied(database_url: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "migrations"))
    name = f"{len(read_migrations()) + 1:03}_notes"
    (folder / f"{name}.sql").write_text("create table note (id integer)")
    database = DatabaseCheck(database_url, tmp_path, lambda _: "")
    database.state = read_state(database_url, folder)
    (finding,) = database.check_schema()
    assert finding.state == "warn" and name in finding.found
    assert list(database.check_collections(lambda model: 0)) == []
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from pg_class where relname = 'note'").fetchone() == (0,)


def test_database_of_a_newer_version_is_reported(database_url: str, superuser_url: str) -> None:
    with psycopg.connect(superuser_url) as connection:
        connection.execute("insert into schema_version (number, name, raydex) values (999, 'later', '9.1.0')")
    found = check(database_url)["database"]
    assert found.state == "failed" and "Raydex (9.1.0)" in found.found and "999_later" in found.found


def test_database_older_than_the_first_release_is_reported(database_url: str, superuser_url: str) -> None:
    with psycopg.connect(superuser_url) as connection:
        connection.execute("drop table schema_version")
    found = check(database_url)["database"]
    assert found.state == "failed" and found.found.endswith("can't be upgraded") and "RAYDEX_HOME" in found.remedy


def test_role_without_rights_is_reported(database_url: str, superuser_url: str) -> None:
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute("drop role if exists reader")
        connection.execute("create role reader login password 'r3ader'")
    name, host = database_url.rpartition("/")[2], database_url.rpartition("@")[2].partition("/")[0]
    found = check(f"postgresql://reader:r3ader@{host}/{name}")
    assert found["schema"].state == "failed" and "the role reader may not read and write" in found["schema"].found
    wrong = check(f"postgresql://reader:wr0ng@{host}/{name}")
    assert "correct user and password" in wrong["database"].remedy and "wr0ng" not in str(wrong)
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute("drop role reader")


def test_collection_whose_model_makes_other_vectors_is_reported(database_url: str, superuser_url: str) -> None:
    settings = json.dumps({"model": "hash:64", "dimension": 64})
    with Store(database_url) as store:
        store.migrate()
    with psycopg.connect(superuser_url) as connection:
        connection.execute("insert into collection (name, settings) values ('docs', '{}'), ('empty', '{}')")
        connection.execute(
            "insert into index (collection, settings, state, stats, fingerprint, revision, published_at)"
            " values ('docs', %s, 'live', '{\"chunks\": 5, \"pages\": 1}', 'f', 1, now())",
            (settings,),
        )
    assert check(database_url, 64)["collections"].found == "docs: 5 chunks of 1 page, hash:64"
    other = check(database_url, 32)["collections"]
    assert other.state == "failed" and "makes 32 dimensions, but the index has 64" in other.found


@pytest.mark.exhaustive
def test_command_checks_everything_and_starts_a_local_ray(database_url: str, tmp_path: Path, exports: Path) -> None:
    (tmp_path / "models").symlink_to(exports)
    with ScriptedLLM(default=Reply(status=401, error={"message": "no such key: sk-9"})) as llm:
        environment = {"DATABASE_URL": database_url, "RAYDEX_HOME": str(tmp_path), "RAY_ADDRESS": "local",
                       "RAYDEX_LLM_URL": llm.url, "RAYDEX_LLM_MODEL": "scripted", "RAYDEX_LLM_KEY": "sk-9"}  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "jobs", "doctor", "--json"], env={**os.environ, **environment},
                              cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    assert "sk-9" not in done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1 and said["failed"] == 1
    states = {(one["check"], one["state"]) for one in said["checks"]}
    assert {("Ray", "ok"), ("agent llm", "failed"), ("model", "ok"), ("schema", "ok"), ("form", "ok")} <= states
    assert any(one["check"] == "form" and "`raydex models --try`" in one["found"] for one in said["checks"])
    assert any(one["check"] == "Ray" and "starts here" in one["found"] for one in said["checks"])
    assert all(one["remedy"] for one in said["checks"] if one["state"] == "failed")
