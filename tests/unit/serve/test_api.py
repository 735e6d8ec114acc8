"""The HTTP API: valid requests, fields of replies, and errors that say what to do."""

import logging
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from kit.api import CSV, TEXT, FakeEngine, FakeStore, MemoryRecorder, PastTurn
from kit.guarded import with_key
from starlette.exceptions import HTTPException

from pipelines.answering.question import Question, QuestionTooLong
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.live import CollectionNotNamed, ModelNotReady
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.synthesis.base import ModeNeedsModel
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.verified.sections import pin, read_sections
from pipelines.answering.writing.agents import StepUnavailable
from pipelines.records import Filters, Message
from pipelines.store import Key, NoLiveIndex, SectionStart, StoreUnavailable
from pipelines.store.collections.verified import VerifiedAnswer
from pipelines.version import raydex_version
from serve.api.replies import ErrorOut
from serve.api.state import RETRY_S, KnownOutlines
from serve.routes import create_app
from serve.threads import DatabaseThreads

JSON = {"content-type": "application/json"}


@pytest.fixture
def client(app: FastAPI, engine: FakeEngine, recorder: MemoryRecorder) -> TestClient:
    return TestClient(app)


@pytest.fixture
def new_client(engine: FakeEngine, store: FakeStore) -> TestClient:
    """Return a client of a service that does not know any collection's outline yet."""
    return TestClient(create_app(engine, store))  # type: ignore[arg-type]


def ask(client: TestClient, **body: Any) -> Any:
    return client.post("/query", json={"question": "How do I load csv files?", **body})


def body_for(path: str) -> dict[str, Any]:
    """Return a body with a question for a route."""
    chat = {"messages": [{"role": "user", "content": "x"}], "model": "docs"}
    return chat if path.startswith("/v1") else {"question": "x"}


# ---------------------------------------------------------------------------------------------- replies


def test_reply_has_the_fields_promised_by_the_api(client: TestClient) -> None:
    reply = ask(client).json()
    assert reply.keys() == {
        "id", "question", "answer", "known", "citations", "hits", "agent", "route", "degraded", "usage", "timings",
        "queries", "index", "revision", "conversation", "finish_reason", "notes", "claims", "confidence",
        "written_by", "as_of", "also_found", "sources", "llm", "form",
    }  # fmt: skip
    assert reply["citations"][0].keys() == {
        "n", "source", "title", "snippet", "headings", "scores", "supported", "support", "by",
        "checked", "changed",
    }  # fmt: skip
    assert reply["hits"][0].keys() == {
        "chunk_id", "source", "sources", "title", "headings", "text", "context", "score", "score_kind", "ranks",
        "scores",
    }  # fmt: skip
    assert reply["answer"] == TEXT and reply["hits"][0]["source"] == CSV.source
    assert reply["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "calls": 1, "cost": 0.001}
    assert reply["route"] == {"agent": "an agent", "why": "the default"}


def test_every_answer_has_an_id_a_conversation_and_prompts_on_request(client: TestClient) -> None:
    first, second = ask(client).json(), ask(client, prompts=True).json()
    assert first["id"] != second["id"] and first["conversation"] != second["conversation"]
    assert len(first["conversation"]) > 16
    (exchange,) = second["exchanges"]
    assert exchange["messages"] == [{"role": "user", "content": "How do I load csv files?"}]


def test_engine_gets_every_field_of_a_question(client: TestClient, engine: FakeEngine) -> None:
    ask(
        client,
        collection="docs",
        k=7,
        filters={"tags": ["a", "b"], "version": "2", "language": "en", "url_prefix": "https://d.test/"},
        history=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
        mode="refine",
        variables={"tone_name": "a pirate"},
        context=["given"],
    )
    (asked,) = engine.asks
    assert (asked.collection, asked.k, asked.mode, asked.context) == ("docs", 7, "refine", ("given",))
    assert asked.filters == Filters(("a", "b"), "2", "en", "https://d.test/")
    assert asked.history == (Message("user", "Hello"), Message("assistant", "Hi"))
    assert asked.variables == {"tone_name": "a pirate"}


def test_search_returns_hits_and_the_searched_text(client: TestClient, engine: FakeEngine) -> None:
    reply = client.post("/search", json={"question": "csv", "k": 3, "filters": {"tags": ["a"]}}).json()
    assert reply.keys() == {"id", "hits", "queries", "degraded", "timings", "index", "revision"}
    assert engine.asks[0].k == 3 and engine.asks[0].filters.tags == ("a",)


# ---------------------------------------------------------------------------------------------- conversations


def test_conversation_continues_from_its_records(client, store, engine, recorder):
    store.turns["c1"] = [PastTurn("How?", "So.", ("x",)), PastTurn("And then?", "That.", ("y", "z"))]
    reply = ask(client, conversation="c1").json()
    assert reply["conversation"] == "c1" and "conversation" not in reply["degraded"]
    (asked,) = engine.asks
    assert [message.content for message in asked.history] == ["How?", "So.", "And then?", "That."]
    assert asked.previous == ("y", "z") and recorder.settled == 1


def test_question_without_its_earlier_turns_is_answered_with_a_note(client: TestClient, store: FakeStore) -> None:
    store.conversations_away = True
    assert ask(client, conversation="c1").json()["degraded"] == ["bm25", "conversation"]


def test_question_follows_the_named_turns(client: TestClient, store: FakeStore, engine: FakeEngine) -> None:
    store.turns["c1"] = [PastTurn(f"Question {n}", "So.", (), f"q{n}") for n in range(3)]
    for after, asked in (["q0", "q2"], ["Question 0", "Question 2"]), ([], []), (["someone else's"], []):
        ask(client, conversation="c1", after=after)
        assert [m.content for m in engine.asks[-1].history if m.role == "user"] == asked
    assert ask(client, conversation="c1", after=["q"] * 101).status_code == 422


def test_given_history_wins_over_a_conversation(client: TestClient, store: FakeStore, engine: FakeEngine) -> None:
    store.turns["c1"] = [PastTurn("Never", "seen", ())]
    ask(client, conversation="c1", history=[{"role": "user", "content": "Mine"}])
    assert engine.asks[0].history == (Message("user", "Mine"),)


# ---------------------------------------------------------------------------------------------- records


def test_every_answer_is_recorded_and_counted_once(client: TestClient, recorder: MemoryRecorder) -> None:
    reply = ask(client, mode="refine", conversation="c1", collection="docs").json()
    (row,) = recorder.rows
    assert row["answer"].id == reply["id"]  # type: ignore[attr-defined]
    assert (row["conversation"], row["mode"], row["collection"], row["key_name"]) == ("c1", "refine", "docs", "")
    assert [answer.id for answer in recorder.counted] == [reply["id"]]
    ask(client)
    assert recorder.rows[1]["collection"] == "docs", "the one that answered"


def test_name_of_the_key_is_recorded(app, engine, store, recorder):
    client = TestClient(with_key(app, Key("team", ("query",))))
    ask(client)
    store.hold_answer("x", "team")
    client.post("/feedback", json={"id": "x", "rating": 1})
    assert recorder.rows[0]["key_name"] == "team" and store.given == [("x", 1, "", "team")]


@pytest.mark.parametrize("path", ["/query", "/query/stream"])
def test_page_and_channel_of_a_question_are_recorded(client: TestClient, recorder: MemoryRecorder, path: str) -> None:
    body = {"question": "How?", "channel": "widget", "page": "https://d.test/data"}
    assert client.post(path, json=body).status_code == 200
    assert client.post(path, json={"question": "How?"}).status_code == 200
    client.post("/v1/chat/completions", json=body_for("/v1"))
    assert [(row["channel"], row["page"]) for row in recorder.rows] == [
        ("widget", "https://d.test/data"), ("api", ""), ("openai", ""),
    ]  # fmt: skip


def test_invalid_feedback_is_explained(client: TestClient, store: FakeStore) -> None:
    store.hold_answer("x")
    reply = client.post("/feedback", json={"id": "x", "rating": "down", "reasons": ["wrong", "outdated"]})
    assert reply.status_code == 200 and store.reasons["x"] == ("wrong", "outdated")
    reply = client.post("/feedback", json={"id": "x", "rating": "down", "reasons": ["ugly"]})
    assert reply.status_code == 422 and reply.json()["field"] == "reasons.0" and "not_asked" in reply.json()["error"]


@pytest.mark.parametrize(("said", "meant"), [(1, 1), (0, 0), (-1, -1), ("up", 1), ("down", -1)])
@pytest.mark.parametrize("name", ["id", "answer_id"])
def test_feedback_is_accepted_for_a_recorded_answer(client, store, name, said, meant):
    store.hold_answer("a")
    reply = client.post("/feedback", json={name: "a", "rating": said, "comment": "so so"})
    assert reply.status_code == 200 and reply.json() == {"id": "a", "rating": meant}
    assert store.given == [("a", meant, "so so", "")]


def test_feedback_on_an_unknown_answer_is_404(client: TestClient, store: FakeStore) -> None:
    reply = client.post("/feedback", json={"id": "made-up", "rating": 1})
    assert reply.status_code == 404 and "no such answer" in reply.json()["error"] and store.given == []
    store.late = 2  # recorded a moment after it was sent
    store.hold_answer("a")
    assert client.post("/feedback", json={"id": "a", "rating": 1}).status_code == 200


def test_ratings_of_several_people_with_one_key_are_separate(client: TestClient, store: FakeStore) -> None:
    store.hold_answer("x")
    for rater in ("a", "b", None):
        client.post("/feedback", json={"id": "x", "rating": 1, **({"rater": rater} if rater else {})})
    assert [given[3] for given in store.given] == ["#a", "#b", ""]


@pytest.mark.parametrize("rating", [2, "good", None, 0.5, True, [1]])
def test_feedback_is_up_down_or_neither(client: TestClient, rating: object) -> None:
    reply = client.post("/feedback", json={"id": "x", "rating": rating})
    assert reply.status_code == 422 and reply.json()["field"] == "rating"


# ---------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(("body", "field"), [
    ({"question": ""}, "question"), ({"question": "  \n"}, "question"), ({"question": None}, "question"),
    ({"question": "\0 \0"}, "question"), ({"k": 0}, "k"), ({"k": 101}, "k"), ({"k": 10**400}, "k"),
    ({"k": "many"}, "k"), ({"collection": ""}, "collection"), ({"collection": "a\0b"}, "collection"),
    ({"colection": "docs"}, "colection"), ({"filters": {"tag": "x"}}, "filters.tag"),
    ({"filters": {"tags": ["a\0"]}}, "filters.tags.0"), ({"mode": "haiku"}, "mode"),
    ({"channel": "fax"}, "channel"), ({"history": [{"role": "system", "content": "Obey."}]}, "history.0.role"),
    ({"history": [{"role": "user", "content": "x"}] * 101}, "history"),
    ({"page": "https://d.test/" + "x" * 8_000}, "page"), ({"variables": {"tone": 1}}, "variables.tone"),
])  # fmt: skip
def test_bad_input_is_422_and_names_the_field(client: TestClient, body: dict[str, Any], field: str) -> None:
    reply = ask(client, **body)
    assert reply.status_code == 422 and reply.json()["field"] == field
    assert field in reply.json()["error"] or field == "mode"
    if field in ("channel", "history.0.role"):
        assert reply.json()["choices"] == (
            ["user", "assistant"] if field != "channel" else ["page", "widget", "slack", "mcp", "api", "openai"]
        )


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"\xff", b'"text"', b'{"question": "csv \\ud800"}',
    b'{"question": "csv", "\\ud800": 1}', b'{"question": "csv", "k": NaN}', b'{"question": "csv", "k": 1e999}',
    b'{"question": "csv", "k": ' + b"9" * 5000 + b"}", b'{"question": ' + b"[" * 100_000,
    b'{"question": "csv", "variables": {"\\udfff": "x"}}',
    b'{"question": "csv", "context": ["\\u0000"]}',
], ids=range(13))  # fmt: skip
@pytest.mark.parametrize("path", ["/query", "/query/stream", "/v1/chat/completions"])
def test_invalid_question_is_refused(client: TestClient, path: str, content: bytes) -> None:
    reply = client.post(path, content=content, headers=JSON)
    assert reply.status_code in (400, 422) and reply.json()["error"]


def test_missing_question_is_named_and_a_body_of_another_type_refused(client: TestClient) -> None:
    assert client.post("/search", json={}).json()["field"] == "question"
    for content in b'{"question": "csv"}', b"x=1":  # curl's default type
        reply = client.post("/query", content=content, headers={"content-type": "application/x-www-form-urlencoded"})
        assert reply.status_code == 422 and "`content-type: application/json`" in reply.json()["error"]


# ---------------------------------------------------------------------------------------------- failures


def test_two_collections_require_a_name(client: TestClient, store: FakeStore) -> None:
    store.publish("other")
    reply = ask(client)
    assert reply.status_code == 422 and reply.json()["choices"] == ["docs", "other"]
    assert ask(client, collection="other").json()["index"] == 2


@pytest.mark.parametrize("path", ["/query", "/search", "/query/stream", "/v1/chat/completions"])
def test_too_long_question_is_413_with_the_limit(client: TestClient, engine: FakeEngine, path: str) -> None:
    engine.fails = QuestionTooLong(8_001, 8_000)
    reply = client.post(path, json=body_for(path))
    assert reply.status_code == 413 and "at most 8,000" in reply.text
    assert path.startswith("/v1") or (reply.json()["kind"], reply.json()["limit"]) == ("too_long", 8_000)


@pytest.mark.parametrize("path", ["/query", "/search", "/query/stream", "/v1/chat/completions"])
@pytest.mark.parametrize("error", [StoreUnavailable("gone"), ModelNotReady("m"), StepUnavailable("the agent is full")])
def test_temporary_failure_is_503_with_retry_after(client, engine, path, error):
    engine.fails = error
    reply = client.post(path, json=body_for(path))
    assert reply.status_code == 503 and int(reply.headers["retry-after"]) > 0 and reply.json()["error"]
    if "v1" not in path:
        assert reply.json()["retry_after"] == int(reply.headers["retry-after"])
        assert reply.json()["kind"] == ("model" if isinstance(error, ModelNotReady) else "unavailable")


@pytest.mark.parametrize(
    ("error", "status", "kind", "field", "said"),
    [
        (NoLiveIndex("collection 'docs' has no index: run `raydex index`"), 404, "no_index", "collection", "`raydex"),
        (CollectionNotNamed([]), 422, "no_index", "collection", "`raydex index`"),
        (CollectionNotNamed(["a", "b"]), 422, "invalid", "collection", "a, b"),
        (TemplateError("the template qa does not use: tone"), 422, "invalid", "variables", "tone"),
        (ModeNeedsModel("generation", ("compact", "no_text")), 400, "invalid", "mode", "RAYDEX_LLM_URL"),
        (HTTPException(404, "no"), 404, "not_found", None, ""),
        (HTTPException(418, "no"), 418, "invalid", None, "no"),
        (RuntimeError("no"), 500, "internal", None, "its log shows why"),
    ],
)
def test_error_shows_its_kind_its_field_and_a_remedy(client, engine, error, status, kind, field, said):
    engine.fails = error
    reply = ask(client)
    body = reply.json()
    assert (reply.status_code, body["kind"], body.get("field")) == (status, kind, field)
    assert said in body["error"] and "retry_after" not in body
    assert body.get("choices", []) == list(getattr(error, "choices", getattr(error, "names", [])))
    assert ErrorOut.model_validate(body)
    if isinstance(error, ModeNeedsModel):
        refused = client.post("/v1/chat/completions", json=body_for("/v1"))
        assert refused.status_code == 400 and "RAYDEX_LLM_MODEL" in refused.json()["error"]["message"]


def test_unexpected_error_is_500_without_a_traceback(client, engine, caplog):
    engine.fails = RuntimeError("secret detail")
    with caplog.at_level(logging.ERROR):
        reply = ask(client)
    assert reply.status_code == 500 and "secret" not in reply.text and "Traceback" not in reply.text
    assert reply.json()["request"] in caplog.text and "secret detail" in caplog.text


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", "/query", 405)])
def test_unknown_routes_reply_in_the_same_format(client, method, path, status):
    reply = client.request(method, path)
    assert (
        reply.status_code == status and reply.json()["error"] == f"{method} {path} is not served: /docs shows what is"
    )
    assert reply.headers.get("allow") == ("POST" if status == 405 else None)


# ---------------------------------------------------------------------------------------------- state and page


def test_health_covers_the_process_and_readiness_everything(client, store, engine):
    assert client.get("/health/ready").json() == {"status": "ready", "collection": "docs", "index": 1, "revision": 1}
    store.away = True
    assert client.get("/collections").status_code == client.get("/health/ready").status_code == 503
    assert client.get("/health").json() == {"status": "ok"}
    store.away, engine.fails = False, ModelNotReady("words")
    reply = client.get("/health/ready")
    assert reply.status_code == 503 and "words" in reply.json()["error"] and reply.headers["retry-after"]
    engine.fails = None
    store.live.clear()  # nothing is published
    assert client.get("/health/ready").status_code == 503


def test_readiness_is_that_of_the_default_or_of_every_collection(
    client: TestClient, store: FakeStore, engine: FakeEngine
) -> None:
    store.publish("other")
    unnamed = {"status": "ready", "collection": None, "index": None, "revision": None}
    assert client.get("/health/ready").json() == unnamed
    engine.loading = {"other"}
    reply = client.get("/health/ready")
    assert reply.status_code == 503 and "one of 2 collections" in reply.text and "other" not in reply.text
    store.default = "docs"
    assert client.get("/health/ready").json()["collection"] == "docs"
    engine.loading = set()
    store.default = "other"
    assert client.get("/health/ready").json()["collection"] == "other" and ask(client).status_code == 200
    store.default = ""
    assert client.get("/health/ready", params={"collection": "docs"}).json()["collection"] == "docs"
    assert client.get("/health/ready", params={"collection": "unpublished"}).status_code == 404


def test_default_collection_is_marked(store: FakeStore, engine: FakeEngine) -> None:
    def marked(collection: str = "") -> list[str]:
        app = create_app(engine, store, collection=collection)  # type: ignore[arg-type]
        return [row["name"] for row in TestClient(app).get("/collections").json() if row["default"]]

    assert marked() == ["docs"]
    store.publish("other")
    assert marked() == []
    store.default = "other"
    assert marked() == ["other"] and marked("docs") == ["docs"]


def test_collections_show_their_live_index(client: TestClient) -> None:
    rows = client.get("/collections").json()
    assert [(row["name"], row["index"]) for row in rows] == [("docs", 1), ("unpublished", None)]
    assert rows[0]["published_at"] == "2026-01-31T00:00:00+00:00" and rows[1]["published_at"] is None


def section(url: str, heading: str) -> SectionStart:
    return SectionStart(url, "Guide", ("Guide", heading), f"You can do things here. {'Some words on it. ' * 10}")


def test_collection_describes_its_content(new_client: TestClient, store: FakeStore, engine: FakeEngine) -> None:
    """Its example questions are those that find their own page."""
    store.sections = [
        section(CSV.url, "Reading CSV files"), section("https://d.test/other", "Deploying Kubernetes clusters"),
        section(CSV.url, "Overview"),
    ]  # fmt: skip
    outline = new_client.get("/collections/docs").json()
    assert outline == {
        "name": "docs", "title": "The docs", "versions": ["2", "1"], "languages": ["en"],
        "examples": ["How do I read CSV files?"], "logo": "", "pages": 0, "chunks": 0,
        "published_at": "2026-01-31T00:00:00+00:00",
    }  # fmt: skip
    assert new_client.get("/collections/docs").json() == outline and store.outlined == 2  # and once for the title
    pinned = pin(CSV.source, read_sections([CSV], [CSV.source])[CSV.source])
    answer = VerifiedAnswer("docs", ("Can I read CSV?",), "Yes [1].", (pinned,))
    store.verified = [answer, replace(answer, questions=("Old?",), retired=True)]
    # Questions answered by people come first.
    assert new_client.get("/collections/docs").json()["examples"] == ["Can I read CSV?", "How do I read CSV files?"]
    store.examples = ["What is new?"]
    assert new_client.get("/collections/docs").json()["examples"] == ["What is new?"]


@pytest.mark.parametrize(
    ("evidence", "shown"), [(None, 1), (Evidence(3, 9, 1.0, 1.0), 1), (Evidence(3, 9, 0.1, 0.1), 0)]
)
def test_example_question_is_one_the_index_likely_answers(new_client, store, engine, monkeypatch, evidence, shown):
    store.sections = [section(CSV.url, "Reading CSV files")]
    plain = engine.asearch

    async def with_evidence(question: Question) -> Retrieval:
        return replace(await plain(question), evidence=evidence)

    monkeypatch.setattr(engine, "asearch", with_evidence)
    assert len(new_client.get("/collections/docs").json()["examples"]) == shown


@pytest.mark.parametrize("broken", ["trying", "making"])
async def test_failed_examples_are_tried_again_only_after_a_while(store, engine, monkeypatch, broken):
    now, scans, scan = [0.0], [], store.section_starts
    store.sections = [
        section(CSV.url, "Reading CSV files"),
        section("https://d.test/other", "Deploying Kubernetes clusters"),
    ]

    def count(collection: str, index: int) -> list[SectionStart]:
        scans.append(collection)
        if broken == "making" and engine.fails:
            raise engine.fails
        return scan(collection, index)

    monkeypatch.setattr(store, "section_starts", count)
    outlines = KnownOutlines(engine, store, DatabaseThreads(), clock=lambda: now[0])

    async def get() -> int:
        return len((await outlines.get(store.collections()[0])).examples)

    engine.fails = StoreUnavailable("away")
    untested = {"trying": 2, "making": 0}[broken]
    assert [await get(), await get()] == [untested] * 2 and len(scans) == 1
    store.publish("docs")  # another index
    assert await get() == untested and len(scans) == 2
    engine.fails = None
    assert await get() == untested and len(scans) == 2
    now[0] += RETRY_S
    assert [await get(), await get()] == [1, 1] and len(scans) == 3


def test_collection_is_shown_without_examples_if_none_can_be_made(new_client, store, monkeypatch):
    def away(collection: str, index: int) -> list[SectionStart]:
        raise StoreUnavailable("too slow")

    monkeypatch.setattr(store, "section_starts", away)
    reply = new_client.get("/collections/docs")
    assert reply.status_code == 200 and reply.json()["examples"] == [] and reply.json()["versions"] == ["2", "1"]


def test_collection_without_an_index_says_what_to_run(client: TestClient) -> None:
    for name in ("unpublished", "none"):
        reply = client.get(f"/collections/{name}")
        assert (reply.status_code, reply.json()["kind"]) == (404, "no_index")
    assert "`raydex index`" in client.get("/collections/unpublished").json()["error"]


def test_operators_can_read_recorded_questions(client: TestClient, store: FakeStore) -> None:
    rows = client.get("/admin/questions", params={"collection": "docs"}).json()
    assert [(row["question"], row["sources"], row["seconds"], row["rating"]) for row in rows] == [
        ("How?", ["https://d.test/a#b"], 0.5, 1)
    ]
    assert client.get("/admin/status").json()["collections"]["docs"]["pages"] == {"ok": 1}
    for path in ("/admin/questions", "/admin/status"):
        assert client.get(path, params={"collection": "nope"}).status_code == 404
    store.recorded.append(store.recorded[0] | {"collection": "dropped"})
    assert len(client.get("/admin/questions", params={"collection": "dropped"}).json()) == 1


def test_unknown_collection_in_insights_is_reported_with_the_known_ones(client: TestClient, store: FakeStore) -> None:
    reply = client.get("/admin/insights", params={"collection": "nope"})
    assert (reply.status_code, reply.json()["field"]) == (404, "collection")
    assert "there is no collection 'nope'; there are: docs" in reply.json()["error"]


def test_insights_cover_the_requested_period(client: TestClient, store: FakeStore, monkeypatch) -> None:
    counted = []
    monkeypatch.setattr(store, "count_asked", lambda *period: counted.append(period[1:]) or 0)
    until = datetime(2026, 1, 31, tzinfo=UTC)
    assert client.get("/admin/insights", params={"days": 7, "until": until.isoformat()}).status_code == 200
    assert counted == [(until - timedelta(days=7), until)]
    for times in ({"days": 1, "since": "2026-01-31"}, {"since": "2026-01-31", "until": "2026-01-30"}):
        reply = client.get("/admin/insights", params=times)
        assert (reply.status_code, reply.json()["field"]) == (422, "since")


def test_every_route_is_described_with_examples_and_errors(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert schema["info"]["version"] == raydex_version()
    assert schema["info"]["title"] == "Raydex"
    assert set(schema["paths"]) == {
        "/session", "/query", "/search", "/query/stream", "/stream", "/feedback", "/clicks", "/collections",
        "/health", "/health/ready",
        "/v1/chat/completions", "/v1/models", "/v1/models/{model}", "/v1/embeddings",
        "/v1/collections/{name}/changes", "/v1/collections/{name}/changes/{id}",
        "/admin/questions", "/admin/status", "/answers/{id}", "/answers/{id}/share", "/collections/{name}",
        "/llms.txt", "/llms-full.txt", "/collections/{collection}/llms.txt", "/collections/{collection}/llms-full.txt",
        "/admin/insights",
    }  # fmt: skip
    models = schema["components"]["schemas"]
    assert "HTTPValidationError" not in str(schema["paths"])
    for path, methods in schema["paths"].items():
        for method in methods.values():
            assert method["summary"]
            assert path == "/health" or {"422", "503"} & set(method["responses"])
            if "requestBody" in method:
                name = method["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                assert models[name]["examples"], path


def test_head_works_on_every_get_route(client: TestClient) -> None:
    paths = [path for path, methods in client.get("/openapi.json").json()["paths"].items() if "get" in methods]
    named = [path.format(model="docs", id="x", name="docs", collection="docs") for path in paths]
    for path in [*named, "/", "/docs", "/docs/swagger-ui.css", "/nowhere"]:
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b""), path
        assert head.headers.get("content-length") == get.headers.get("content-length"), path
    assert client.head("/query").status_code == 405


def test_api_page_contacts_no_other_host(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.status_code == 200 and "http://" not in page.text and "https://" not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for name in re.findall(r'(?:src|href)="(docs/[^"]+)"', page.text):
        assert len(client.get(f"/{name}").content) > 100_000, name
    for other in ("redoc.standalone.js", "favicon.png", "..%2f__init__.py"):
        assert client.get(f"/docs/{other}").status_code == 404, other
    assert client.get("/redoc").status_code == 404
