"""`raydex ask` queries the service of its home folder, names it and sends a key. Errors say what to do."""

import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from kit.scripted_server import Raw, ScriptedServer

from jobs import ask
from jobs.cli import run_job
from pipelines.files.services import announce

REPLY = {"question": "Why?", "answer": "So [1].", "citations": [{"n": 1, "title": "Page", "source": "https://d.test/#a"}],
         "agent": "extractive", "timings": {"total": 0.01}, "degraded": []}  # fmt: skip


class FakeService(ScriptedServer):
    """Answers every question with its `events` and REPLY, or with 401 without its `key`. `requests` are (body, key)."""

    def __init__(self) -> None:
        collections = [{"name": "docs"}, {"name": "wiki"}]
        super().__init__({"/health": {}, "/collections": collections, "/query/stream": self.stream})
        self.key, self.answers = "", True
        self.events: list[tuple[str, dict[str, object]]] = [("heartbeat", {})]
        self.requests: list[tuple[dict[str, object], str]] = []

    def stream(self, body: dict[str, object]) -> Raw:
        key = self.asked[-1][1]
        self.requests.append((body, key))
        if self.key and key != f"Bearer {self.key}":
            return Raw(401, '{"error": "this request needs a key"}')
        if body.get("collection") not in (None, "docs"):
            return Raw(404, json.dumps({"error": f"collection {body['collection']!r} has no published index"}))
        events = [*self.events, *([("answer", REPLY)] if self.answers else [])]
        return Raw(200, "".join(f"event: {name}\ndata: {json.dumps(body)}\n\n" for name, body in events))


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as service:
        yield service


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path))
    for name in ("RAYDEX_KEY", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # no question to this machine may use the proxy
    return tmp_path


def run(*words: str) -> int:
    return run_job(ask.app, ["Why?", *words])


def test_person_waits_for_the_index_without_a_service(home):
    assert ask.patient_configuration().retrieval.patience_s == ask.PATIENCE_S


def test_service_of_the_home_folder_is_asked_and_named(service, home, capsys):
    with announce(home, service.url):
        assert run("--collection", "docs", "-k", "3") == 0
    printed = capsys.readouterr()
    assert printed.err == f"asking the service at {service.url}\n"
    assert "So [1]." in printed.out and "https://d.test/#a" in printed.out
    assert service.requests == [({"question": "Why?", "collection": "docs", "k": 3}, "")]


def test_public_service_receives_only_the_given_fields(service):
    run("--url", service.url)
    assert service.requests == [({"question": "Why?"}, "")]


def test_unresponsive_service_is_skipped_for_a_working_one(service, home):
    with announce(home, service.url), announce(home, "http://127.0.0.1:9"):
        assert run() == 0


def test_key_flag_wins_over_the_environment(service, home, monkeypatch):
    monkeypatch.setenv("RAYDEX_KEY", "rdx_environment")
    with announce(home, service.url):
        run()
        run("--key", "rdx_flag")
    assert [key for _, key in service.requests] == ["Bearer rdx_environment", "Bearer rdx_flag"]


def test_missing_key_is_an_error_that_says_where_to_give_it(service, capsys):
    service.key = "rdx_right"
    assert run("--url", service.url) == 2
    error = capsys.readouterr().err
    assert f"{service.url} answered 401: this request needs a key" in error and "`--key` or RAYDEX_KEY" in error
    assert run("--url", service.url, "--key", "rdx_right") == 0


def test_unreachable_named_service_is_an_error(capsys):
    assert run("--url", "http://127.0.0.1:9") == 1
    assert "no answer from http://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", ["http://[127.0.0.1", "http://127.0.0.1:port", "127.0.0.1", "ftp://127.0.0.1", "http://"]
)
def test_malformed_url_of_a_service_is_bad_input(url, capsys):
    assert run("--url", url) == 2
    assert f"the service's URL is {url!r}" in capsys.readouterr().err


def test_process_says_that_it_answers_itself_without_a_service(home, capsys, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/none?connect_timeout=1")
    monkeypatch.setattr(ask, "open_store", Mock(side_effect=ask.ServiceFailed("this test has no database")))
    assert run() == 1
    assert f"no service is running for {home}: this process answers instead" in capsys.readouterr().err


def test_degradations_of_an_answer_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    ask.show(REPLY | {"degraded": ["bm25", "truncated"]})
    assert "Keyword search was not available." in capsys.readouterr().out


def test_answer_is_printed_verbatim(capsys: pytest.CaptureFixture[str]) -> None:
    text = "root:x:0 [0] :100:"
    citation = {"n": 1, "title": text, "source": f"https://d.test/{text}"}
    ask.show(REPLY | {"question": text, "answer": text, "citations": [citation]})
    assert capsys.readouterr().out.count(text) == 4


def test_confidence_of_an_answer_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    citation = {"n": 1, "title": "Page", "source": "https://d.test/#a", "supported": False, "by": "attributed"}
    claims = {"total": 3, "cited": 2, "supported": 1}
    answer = {"agent": "llm", "known": True, "confidence": "low", "claims": claims, "citations": [citation]}
    ask.show(REPLY | answer | {"also_found": [HITS["hits"][0] | {"snippet": "It says so."}]})
    out = capsys.readouterr().out
    assert (
        "Low confidence · 1 of 3 claims supported by a source\n" in out
        and "[1] Page · weak support · Source found" in out
    )
    assert "Also found\n    Page › Part  https://d.test/#a\n      It says so.\n\n" in out
    ask.show(REPLY)  # from a service without ratings
    assert "onfidence" not in capsys.readouterr().out


def test_texts_are_in_the_language_of_the_question_or_terminal(service, monkeypatch, capsys):
    monkeypatch.setenv("LANG", "de_AT.UTF-8")
    sources = {"citations": [{"n": 1, "title": "P", "source": "https://d.test/", "supported": False}], "known": True}
    service.events = [("answer", REPLY | sources | {"also_found": HITS["hits"], "degraded": ["bm25"]})]
    for asked, *said in (
        ("list_files", "P · schwach belegt", "Außerdem gefunden", "Die Suche nach Wörtern war nicht verfügbar."),
        ("Comment lire un fichier CSV ?", "P · appui faible", "Également trouvé"),
    ):
        assert run_job(ask.app, [asked, "--url", service.url]) == 0
        out = capsys.readouterr().out
        assert all(text in out for text in said), out
    assert [body["language"] for body, _ in service.requests] == ["de", "de"]


HITS = {"hits": [{"headings": ["Page", "Part"], "title": "Page", "source": "https://d.test/#a"}]}
READS = {"stage": "reading", "agent": "llm", "passages": 1, "tokens": 90, "seconds": 6.2}


def test_progress_of_a_slow_model_is_printed(service: FakeService, capsys: pytest.CaptureFixture[str]) -> None:
    service.events = [("hits", HITS), ("status", READS), ("status", {**READS, "seconds": 0.1})]
    run("--url", service.url)
    err = capsys.readouterr().err
    assert err.count("llm is reading 1 passage (90 tokens)") == 1 and "about 6 s" in err


def test_stream_can_be_followed(service: FakeService, capsys: pytest.CaptureFixture[str]) -> None:
    deltas = ["Half", "Call it [1]. Then sto", "p. ", "[1]\n\n```\nx.y()\n```"]
    service.events = [("hits", HITS), ("status", READS), *(("delta", {"text": text}) for text in deltas)]
    service.events[3][1]["reset"] = True
    run("--url", service.url, "--follow")
    lines = [line.split("s  ", 1)[1] for line in capsys.readouterr().err.splitlines() if " s  " in line]
    assert lines == [
        "source  [1] Page › Part  https://d.test/#a",
        "status  llm is reading 1 passage (90 tokens), about 6 s",
        "status  the answer begins",
        "reset   the text so far is discarded",
        "text    Call it [1].",
        "text    Then stop. [1]",
        "text    ```",
        "text    x.y()",
        "text    ```",
    ]


@pytest.mark.parametrize(("event", "said"), [(("error", {"error": "it is full"}), "it is full"), (None, "ask again")])
def test_failing_stream_is_an_error(service, capsys, event, said):
    service.events, service.answers = ([event] if event else []), False
    assert run("--url", service.url) == 1
    assert said in capsys.readouterr().err


def test_unknown_collection_is_reported_with_the_known_ones(service, capsys):
    assert run("--url", service.url, "--collection", "nope") == 2
    assert "there is no collection 'nope'; there are: docs, wiki" in capsys.readouterr().err
    assert run("--url", service.url, "--collection", "wiki") == 2  # it exists but is not published yet
    assert "has no published index" in capsys.readouterr().err
