"""API keys and rates in the database: a key works until revoked, and a rate applies to all replicas."""

import math
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from kit.api import wait_for

from pipelines.store import BadKey, KeyNameTaken, NoSuchKey, Store, key_hash


def test_key_works_until_revoked_and_its_name_stays_taken(store: Store) -> None:
    key, token = store.create_key("ci", ["admin", "query"], rate_per_minute=60)
    assert token.startswith("rdx_") and len(token) == 47
    assert key.scopes == ("admin", "query") and key.may("query") and key.rate_per_minute == 60
    found = store.find_key(key_hash(token))
    assert found is not None and found.name == "ci"
    assert store.find_key(key_hash(token + "x")) is None
    assert store.list_keys()[0].last_used is not None
    assert store.revoke_key("ci").revoked_at is not None
    assert store.find_key(key_hash(token)) is None
    assert store.revoke_key("ci").revoked_at == store.list_keys()[0].revoked_at
    with pytest.raises(KeyNameTaken, match="'ci'"):
        store.create_key("ci")
    with pytest.raises(NoSuchKey, match="'nobody'"):
        store.revoke_key("nobody")


def test_key_works_until_it_expires_and_its_secret_is_never_stored(store: Store, database_url: str) -> None:
    _, token = store.create_key("trial", expires_days=1)
    assert store.find_key(key_hash(token)) is not None
    with psycopg.connect(database_url) as connection:
        row = str(connection.execute("select k::text, encode(hash, 'escape') from api_key k").fetchall())
    assert token not in row and token.removeprefix("rdx_") not in row
    with psycopg.connect(database_url) as connection:
        connection.execute("update api_key set expires = now() - interval '1 second'")
    assert store.find_key(key_hash(token)) is None


def test_full_bucket_is_forgotten(store: Store, database_url: str) -> None:
    store.take_token("address 00.9", 20, 20)
    store.take_token("address 00.10", 20, 20)
    with psycopg.connect(database_url) as connection:
        connection.execute("update rate_bucket set updated = now() - interval '5 minutes' where key like '%.9'")
    store.forget_buckets()
    with psycopg.connect(database_url) as connection:
        left = connection.execute("select key from rate_bucket").fetchall()
    assert left == [("address 00.10",)]


def test_publishable_key_is_bound_and_can_only_query(store: Store) -> None:
    key, token = store.create_key("site", origins=["https://Docs.test/", "https://docs.test"], collections=["docs"])
    assert token.startswith("pk_") and key.publishable and key.scopes == ("ask",)
    assert key.origins == ("https://docs.test",) and key.collections == ("docs",)
    assert key.may("ask") and not key.may("query") and not key.may("admin")
    assert store.find_key(key_hash(token)) == key
    assert key.sees("docs") and not key.sees("other") and store.create_key("ci")[0].sees("other")


def test_bound_origins_are_those_of_valid_keys(store: Store, database_url: str) -> None:
    store.create_key("one", origins=["https://a.test", "https://b.test"])
    store.create_key("two", origins=["https://b.test", "https://c.test"])
    store.create_key("old", origins=["https://d.test"], expires_days=1)
    with psycopg.connect(database_url) as connection:
        connection.execute("update api_key set expires = now() - interval '1 second' where name = 'old'")
    assert store.bound_origins() == {"https://a.test", "https://b.test", "https://c.test"}
    store.revoke_key("two")
    assert store.bound_origins() == {"https://a.test", "https://b.test"}


def test_all_replicas_share_one_secret_which_is_recreated_if_deleted(store, database_url):
    first = store.service_secret()
    with Store(database_url) as other:
        assert len(first) == 32 and other.service_secret() == first
        with psycopg.connect(database_url) as connection:
            connection.execute("delete from service_secret")
        assert store.service_secret() == other.service_secret() != first


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        (" ", {}, "name"),
        ("a", {"origins": ["docs.test"]}, "'docs.test'"),
        ("a", {"collections": ["docs"]}, "publishable"),
        ("a", {"scopes": ["root"]}, "root"),
        ("a", {"scopes": []}, "scopes"),
        ("a", {"rate_per_minute": -1}, "-1"),
        ("a", {"expires_days": 0}, "0 days"),
        ("a", {"expires_days": math.nan}, "nan"),
    ],
)
def test_invalid_key_request_names_the_error(store: Store, name: str, more: dict[str, object], words: str) -> None:
    with pytest.raises(BadKey, match=words):
        store.create_key(name, **more)  # type: ignore[arg-type]
    assert store.list_keys() == []


# ------------------------------------------------------------------------------------------------ rate


def test_all_replicas_share_one_bucket(database_url: str) -> None:
    def replica(_: int) -> list[bool]:
        with Store(database_url) as own:
            return [own.take_token("k", 6, 10).allowed for _ in range(20)]

    with ThreadPoolExecutor(3) as threads:
        taken = [allowed for all in threads.map(replica, range(3)) for allowed in all]
    assert len(taken) == 60 and 10 <= sum(taken) <= 12  # one more token every 10 s


def test_bucket_refills_over_time_up_to_its_depth(store: Store, database_url: str) -> None:
    assert [store.take_token("k", 60, 2).allowed for _ in range(3)] == [True, True, False]
    refused = store.take_token("k", 60, 2)
    assert not refused.allowed and 0 < refused.retry_after_s <= 1 and 0 <= refused.remaining < 1
    assert store.take_token("other", 60, 2) == (True, 0.0, 1.0)
    with psycopg.connect(database_url) as connection:
        connection.execute("update rate_bucket set updated = updated - interval '1 hour'")
    assert [store.take_token("k", 60, 2).allowed for _ in range(3)] == [True, True, False]


def test_clock_set_back_takes_nothing_away_and_locks_nobody_out(store: Store, database_url: str) -> None:
    store.take_token("k", 60, 5)
    with psycopg.connect(database_url) as connection:
        connection.execute("update rate_bucket set updated = updated + interval '1 hour'")
    assert store.take_token("k", 60, 5) == (True, 0.0, 3.0)
    with psycopg.connect(database_url) as connection:
        connection.execute("update rate_bucket set tokens = 0, updated = now() + interval '1 hour'")
    assert not store.take_token("k", 6_000, 1).allowed  # no tokens for the time before
    wait_for(lambda: store.take_token("k", 6_000, 1).allowed)
