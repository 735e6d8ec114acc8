"""The HTTP face: what a request may be, what a reply holds, and errors that say what to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering_fakes import MemoryStore, WordEmbedder, make_hit
from fastapi.testclient import TestClient

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retriever import Retriever
from pipelines.answering.extractive import ExtractiveSynthesizer
from pipelines.lexical import LexicalIndex
from serve.api import create_app

CSV = make_hit("https://d.test/data#csv", "Call ray.data.read_csv to load comma separated files.", ("Data", "CSV"))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(CSV)


@pytest.fixture
def client(store: MemoryStore, tmp_path: Path) -> Iterator[TestClient]:
    retriever = Retriever(store, lambda model: WordEmbedder(), lambda index: LexicalIndex(tmp_path / str(index.id)))
    engine = QueryEngine(retriever, ExtractiveSynthesizer())
    yield TestClient(create_app(engine, store), raise_server_exceptions=False)  # type: ignore[arg-type]
    retriever.close()


def ask(client: TestClient, **body: Any) -> Any:
    return client.post("/query", json={"question": "How do I load csv files?", **body})


def test_a_reply_holds_what_the_api_promises(client: TestClient) -> None:
    reply = ask(client).json()
    assert reply.keys() == {
        "id", "question", "answer", "agent", "citations", "hits", "degraded", "timings", "index", "revision",
    }  # fmt: skip
    assert reply["citations"][0].keys() == {"n", "source", "title", "snippet"}
    assert reply["hits"][0].keys() == {
        "source", "sources", "title", "headings", "text", "score", "score_kind", "ranks", "scores",
    }  # fmt: skip
    assert reply["citations"][0]["source"] == CSV.source and reply["citations"][0]["title"] == "Data › CSV"


def test_every_answer_has_its_own_id(client: TestClient) -> None:
    assert ask(client).json()["id"] != ask(client).json()["id"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": ""}, "question"),
        ({"question": "  \n"}, "question"),
        ({"question": None}, "question"),
        ({"question": "x" * 100_001}, "question"),
        ({"k": 0}, "k"),
        ({"k": 101}, "k"),
        ({"k": "many"}, "k"),
        ({"collection": ""}, "collection"),
        ({"colection": "docs"}, "colection"),
    ],
)
def test_bad_input_is_422_and_names_the_field(client: TestClient, body: dict[str, Any], field: str) -> None:
    reply = ask(client, **body)
    assert reply.status_code == 422 and reply.json()["field"] == field and field in reply.json()["error"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'"text"'])
def test_what_is_no_json_object_is_422(client: TestClient, content: bytes) -> None:
    reply = client.post("/query", content=content, headers={"content-type": "application/json"})
    assert reply.status_code == 422


def test_a_missing_question_is_named(client: TestClient) -> None:
    assert client.post("/search", json={}).json()["field"] == "question"


def test_lone_surrogates_are_answered(client: TestClient) -> None:
    reply = client.post(
        "/query", content=b'{"question": "csv \\ud800 \\u0000"}', headers={"content-type": "application/json"}
    )
    assert reply.status_code in (200, 422)


def test_an_unknown_collection_is_404_and_says_what_to_do(client: TestClient) -> None:
    reply = ask(client, collection="nope")
    assert reply.status_code == 404 and "nope" in reply.json()["error"] and "reindex" in reply.json()["error"]


def test_two_collections_must_be_told_apart(client: TestClient, store: MemoryStore) -> None:
    store.publish_index(2, CSV, collection="other")
    reply = ask(client)
    assert reply.status_code == 422 and reply.json()["choices"] == ["docs", "other"]
    assert ask(client, collection="other").json()["index"] == 2


@pytest.mark.parametrize("path", ["/query", "/search"])
def test_a_database_that_is_away_is_503_with_retry_after(client: TestClient, store: MemoryStore, path: str) -> None:
    store.away = True
    reply = client.post(path, json={"question": "x"})
    assert reply.status_code == 503 and int(reply.headers["retry-after"]) > 0 and "away" in reply.json()["error"]
    assert client.get("/collections").status_code == client.get("/health/ready").status_code == 503
    assert client.get("/health").status_code == 200


def test_ready_once_the_model_is_loaded(client: TestClient) -> None:
    first = client.get("/health/ready")
    assert first.status_code == 503 and "words" in first.json()["error"]
    ask(client)
    assert client.get("/health/ready").json() == {"status": "ready", "collection": "docs", "index": 1, "revision": 1}


def test_the_page_at_the_root_is_one_file(client: TestClient) -> None:
    page = client.get("/").text
    assert "<form>" in page and "http://" not in page and "https://" not in page


def test_collections_and_schema(client: TestClient) -> None:
    (row,) = client.get("/collections").json()
    assert (row["name"], row["index"]) == ("docs", 1)
    assert {"/query", "/search", "/collections", "/health", "/health/ready"} == set(
        client.get("/openapi.json").json()["paths"]
    )
