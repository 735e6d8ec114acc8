"""Every command explains a misspelled DATABASE_URL without showing any part of the password."""

import logging
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from jobs.__main__ import raydex
from jobs.verbs import VERBS
from pipelines.store import BadDatabaseUrl, Store, check_url
from pipelines.store.database.address import conninfo

MISSPELT = {
    "bad port": "postgresql://user:s3cret@127.0.0.1:54x2/db",
    "no such host": "postgresql://user:s3cret@no.such.host.invalid/db",
    "bad scheme": "postgres//user:s3cret@127.0.0.1/db",
    "unknown parameter": "postgresql://user:s3cret@127.0.0.1/db?sslmod=require",
    "bare %": "postgresql://user:s3cret%zz@127.0.0.1/db",
    "bare @": "postgresql://user:s3cret@s3cret@127.0.0.1/db",
    "bare /": "postgresql://user:s3cret/s3cret@127.0.0.1/db",
    "bare ?": "postgresql://user:1?s3cret@127.0.0.1/db",
    "password as port": "postgresql://user@127.0.0.1:s3cret/db",
    "bare blank": "host=127.0.0.1 password=pass s3cret user=user",
}
WORDS = {
    "index": ["https://127.0.0.1:9/", "--allow-private"],
    "ask": ["Why?"],
    "keys": ["list"],
    "restore": [str(Path(__file__).parents[2] / "data" / "index_0.1.0.dump")],
    "questions": ["make", "--collection", "x", "--out", "x.jsonl", "--without-llm"],
    "answers": ["list"],
    "dump": ["x", "x.dump"],
    "logs": ["1"],
    "evaluate": ["--dataset", "questions.jsonl"],
    "experiment": ["sweep.yaml"],
    "train": ["embedder", "--collection", "x", "--dataset", "questions.jsonl", "--output", "embedder"],
} | {verb: ["x"] for verb in ("publish", "rollback", "prune", "drop")}
WORDS |= {verb: ["x.yaml"] for verb in ("nightly", "plan", "report")}
# These do not read it: one asks the service, one runs the embedded Postgres, one passes it to a cluster, and one prints
# a script. The doctor has its own tests.
WITHOUT_DATABASE = {"slack", "database", "doctor", "submit", "completion"}
WAITING = {"serve", "demo"}  # they wait for a server that may be starting, even on an unknown host


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - WITHOUT_DATABASE))
def test_no_command_repeats_the_password_of_a_misspelled_url(verb, tmp_path, capfd, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.jsonl").write_text('{"question": "Why?", "sources": ["https://x.test/#a"]}\n')
    (tmp_path / "sweep.yaml").write_text(
        f"collection: x\ndataset: {tmp_path}/questions.jsonl\ngrid: {{retrieval.k: [3, 5]}}\n"
    )
    (tmp_path / "x.yaml").write_text("name: x\nsites:\n  - start_urls: [https://x.test/]\n")
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAYDEX_DEBUG", "1")  # include tracebacks
    monkeypatch.setattr("pipelines.store.DATABASE_PATIENCE_S", 0.1)
    for name, url in MISSPELT.items():
        if verb in WAITING and name == "no such host":
            continue
        monkeypatch.setenv("DATABASE_URL", url)
        with pytest.raises(SystemExit) as ended:
            raydex([verb, *WORDS.get(verb, [])])
        printed = capfd.readouterr()
        assert ended.value.code not in (None, 0), name
        assert "s3cret" not in printed.out + printed.err + caplog.text, name
        said = ("resolve host", "no.such.host") if name == "no such host" else ("DATABASE_URL can't be used",)
        assert any(words in printed.out + printed.err for words in said), (name, printed)


@pytest.mark.parametrize("url", MISSPELT.values(), ids=MISSPELT.keys())
def test_bad_url_is_refused_before_connecting(url: str) -> None:
    if "invalid" in url:
        assert check_url(url) == "no.such.host.invalid:5432"
        return
    with pytest.raises(BadDatabaseUrl) as error:
        Store(url)
    assert "s3cret" not in str(error.value) and error.value.__cause__ is None
    assert "is written postgresql://USER:PASSWORD@HOST:5432/DATABASE" in str(error.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://user:s3%40cret@db.test:6543/x?sslmode=require", "db.test:6543"),
        ("postgres://db.test/x", "db.test:5432"),
        ("postgresql://a:b@one.test:1,two.test:2/x", "one.test,two.test:1,2"),
        ("postgresql://a:b@one.test:1,two.test/x", "one.test,two.test:1,5432"),
        ("postgresql://db.test/x?user=me@server&password=a@b/c", "db.test:5432"),
        ("postgresql:///x?host=/run/postgresql", "/run/postgresql:5432"),
        ("host=db.test user=me password='a b@/?%'", "db.test:5432"),
        ("", "a local socket:5432"),
    ],
)
def test_good_url_tells_where_its_database_is(url: str, place: str) -> None:
    assert check_url(url) == place
    assert conninfo_to_dict(conninfo(url))["connect_timeout"] == "5"
    assert conninfo_to_dict(conninfo("host=db.test connect_timeout=9"))["connect_timeout"] == "9"
