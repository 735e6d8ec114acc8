"""`python -m jobs.keys`: a key is shown once, listed without its secret, and useless once revoked."""

import re

import pytest
from kit.reindexing import Jobs

from jobs import keys
from jobs.flags import BadFlags, read_words
from pipelines.store import Store, key_hash


def test_created_key_works_and_is_printed_once(jobs: Jobs, store: Store) -> None:
    words = ("--scope", "query", "--scope", "admin", "--rate", 60, "--expires-days", 2)
    made = jobs.run("keys", "create", "ci", *words)
    token = made.summary["key"]
    found = store.find_key(key_hash(token))
    assert found is not None and found.scopes == ("admin", "query") and found.rate_per_minute == 60
    assert "only time" in made.messages and token not in made.messages
    listed = jobs.text("keys", "list")
    head, row = listed.splitlines()
    assert head.split()[:3] == ["key", "state", "allows"] and token not in listed
    assert row.startswith("ci   valid  admin query  all          60 a minute  2")


def test_revoked_key_stops_working_but_stays_listed(jobs: Jobs, store: Store) -> None:
    token = jobs.text("keys", "create", "ci").strip()
    (key,) = jobs.run("keys", "list").summary["keys"]
    assert (key["name"], key["state"], key["scopes"], key["rate_per_minute"]) == ("ci", "valid", ["query"], None)
    assert token.startswith("rdx_") and store.find_key(key_hash(token))
    assert jobs.run("keys", "revoke", "ci").summary["revoked_at"]
    assert store.find_key(key_hash(token)) is None
    assert jobs.text("keys", "list").splitlines()[1].startswith("ci   revoked")


def test_publishable_key_lists_its_origins_and_collections(jobs: Jobs) -> None:
    flags = ("--publishable", "--origin", "https://Docs.test/", "--collection", "docs", "--rate", 60)
    made = jobs.run("keys", "create", "site", *flags)
    assert made.summary["key"].startswith("pk_")
    assert "data-key" in made.messages and "no collection 'docs' yet" in made.messages
    listed = jobs.text("keys", "list")
    assert "  publishable  docs from https://docs.test  60 a minute  never" in listed
    (key,) = jobs.run("keys", "list").summary["keys"]
    assert key["origins"] == ["https://docs.test"] and key["collections"] == ["docs"] and key["scopes"] == ["ask"]
    assert "session" not in key
    announcing = jobs.run("keys", "create", "merges", "--scope", "changes", "--collection", "docs").messages
    assert "the key may announce its changes once" in announcing


@pytest.mark.parametrize(("words", "said"), [
    ("create taken", "'taken' already"),
    ("revoke nobody", "no key is named 'nobody'"),
    ("create a --rate -3", "-3"),
    ("create a --expires-days -1", "-1"),
    ("create \t", "name"),
    ("create a --publishable", "--origin"),
    ("create a --origin https://a.b", "--publishable"),
    ("create a --publishable --origin https://a.b/en", "'https://a.b/en'"),
    ("create a --publishable --origin https://a.b --scope admin", "admin"),
    ("create a --collection docs", "publishable"),
])  # fmt: skip
def test_unusable_input_is_rejected_by_name(jobs: Jobs, words: str, said: str) -> None:
    jobs.run("keys", "create", "taken")
    refused = jobs.run("keys", *words.split(" "))
    assert (refused.code, refused.summary) == (2, {})
    assert said in refused.messages and "Traceback" not in refused.messages


@pytest.mark.parametrize(("words", "said"), [
    ("", "choose an action: create, list, secret, revoke"),
    ("craete a", 'Did you mean "create"?'),
    ("create", "NAME is missing"),
    ("create a --scope root", 'Choose from: "query", "changes", "admin"'),
    ("create a --rate x", "invalid value for --rate"),
])  # fmt: skip
def test_words_that_no_action_takes_are_refused_with_what_to_write(words: str, said: str) -> None:
    with pytest.raises(BadFlags, match=re.escape(said)):
        read_words(keys.app, words.split())
