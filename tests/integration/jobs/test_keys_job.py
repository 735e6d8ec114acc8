"""`python -m jobs.keys`: a key is shown once, listed without its secret, and opens nothing once it is revoked."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from jobs import keys
from jobs.cli import run_job
from pipelines.store import Store, key_hash


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads(self.out.strip().splitlines()[-1])


@pytest.fixture
def job(database_url, monkeypatch, capsys):
    """`python -m jobs.keys <words>`, in this process, on a fresh database."""
    monkeypatch.setenv("DATABASE_URL", database_url)

    def run(*words: str) -> Done:
        capsys.readouterr()
        code = run_job(keys.arguments(), keys.run, words)
        return Done(code, *capsys.readouterr())

    return run


def test_what_is_created_opens_and_is_printed_once(job, store: Store) -> None:
    made = job("create", "ci", "--scope", "query", "--scope", "admin", "--rate", "60", "--expires-days", "2")
    token = made.out.strip()
    found = store.find_key(key_hash(token))
    assert found is not None and found.scopes == ("admin", "query") and found.rate_per_minute == 60
    assert "only time" in made.err and token not in made.err
    listed = job("list")
    assert listed.out.startswith("ci: valid, admin query, 60 a minute, expires 2") and token not in listed.out


def test_json_holds_all_there_is_to_know(job) -> None:
    made = job("create", "ci", "--json").summary
    assert made["key"].startswith("rdx_") and made["scopes"] == ["query"] and made["rate_per_minute"] is None
    assert [(key["name"], key["state"]) for key in job("list", "--json").summary["keys"]] == [("ci", "valid")]
    assert job("revoke", "ci", "--json").summary["revoked_at"]


def test_a_revoked_key_opens_nothing_and_stays_listed(job, store: Store) -> None:
    token = job("create", "ci").out.strip()
    assert job("revoke", "ci").code == 0
    assert store.find_key(key_hash(token)) is None
    assert job("list").out.startswith("ci: revoked")


def test_a_publishable_key_says_where_it_may_be_and_what_it_asks(job, store: Store) -> None:
    flags = ("--publishable", "--origin", "https://Docs.test/", "--collection", "docs", "--rate", "60")
    made = job("create", "site", *flags)
    assert made.out.startswith("pk_") and "data-key" in made.err and "no collection 'docs' yet" in made.err
    listed = job("list").out
    assert listed.startswith("site: valid, publishable, on https://docs.test, asks docs, 60 answers a minute")
    key = job("list", "--json").summary["keys"][0]
    assert key["origins"] == ["https://docs.test"] and key["collections"] == ["docs"] and key["scopes"] == ["ask"]
    assert "session" not in key


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "taken"], "'taken' already"),
        (["revoke", "nobody"], "no key is named 'nobody'"),
        (["create", "a", "--rate", "-3"], "-3"),
        (["create", "a", "--expires-days", "-1"], "-1"),
        (["create", "  "], "name"),
        (["create", "a", "--publishable"], "--origin"),
        (["create", "a", "--origin", "https://a.b"], "--publishable"),
        (["create", "a", "--publishable", "--origin", "https://a.b/en"], "'https://a.b/en'"),
        (["create", "a", "--publishable", "--origin", "https://a.b", "--scope", "admin"], "admin"),
        (["create", "a", "--collection", "docs"], "publishable"),
    ],
)
def test_what_can_not_be_used_is_bad_input_and_named(job, words, said) -> None:
    job("create", "taken")
    refused = job(*words)
    assert refused.code == 2 and refused.out == ""
    assert said in refused.err and "Traceback" not in refused.err


@pytest.mark.parametrize("words", [[], ["create"], ["create", "a", "--scope", "root"], ["create", "a", "--rate", "x"]])
def test_a_command_that_is_none_is_refused_by_the_parser(words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        run_job(keys.arguments(), keys.run, words)
    assert ended.value.code == 2 and "usage" in capsys.readouterr().err
