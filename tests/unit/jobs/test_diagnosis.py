"""Each check says what it found and what to do. It changes nothing, shows no key, and always ends."""

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.scripted_llm import Reply, ScriptedLLM, in_turn
from kit.scripted_server import Raw, ScriptedServer

from pipelines.answering.settings import AgentSettings
from pipelines.cluster import UnreachableCluster, connect_ray, start_local_ray, why_unreachable
from pipelines.diagnosis import Check, Finding, cluster, endpoints, fine, machine, models, run_check
from pipelines.diagnosis.database import DatabaseCheck
from pipelines.diagnosis.models import ModelCheck, damaged_files
from pipelines.embedding import load_embedder
from pipelines.embedding.tokens import model_folder
from pipelines.records import EmbeddingModel

MODEL = "all-MiniLM-L6-docs-v1"
TOO_LONG = {"message": "maximum context length is 4 tokens"}


def run(work: Callable[[], Any], limit_s: float = 30.0) -> list[Finding]:
    found: list[Finding] = []
    run_check(Check("it", work, limit_s), found.append)
    return found


def states(findings: list[Finding]) -> list[str]:
    return [finding.state for finding in findings]


# ---------------------------------------------------------------------------------------------- any check


def test_findings_and_errors_are_reported_as_they_come() -> None:
    def work() -> Iterator[Finding]:
        yield fine("first")
        raise ValueError("it broke")

    first, second = run(work)
    assert first == fine("first")
    assert (second.state, second.found) == ("failed", "ValueError: it broke") and second.remedy


def test_hanging_check_is_given_up_and_its_late_findings_dropped() -> None:
    given_up, ended = threading.Event(), threading.Event()

    def work() -> Iterator[Finding]:
        given_up.wait(60)
        ended.set()
        yield fine("late")

    found = run(work, limit_s=0.1)
    given_up.set()
    assert ended.wait(60) and states(found) == ["failed"] and "no result within 0.1 s" in found[0].found


# ---------------------------------------------------------------------------------------------- the machine


def test_unusable_home_folder_fails_and_is_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "not" / "there"
    assert run(lambda: machine.check_disk(home))[0].state == "ok"
    assert not home.exists()
    monkeypatch.setattr("os.access", lambda *_: False)
    [finding, *_] = run(lambda: machine.check_disk(home))
    assert finding.state == "failed" and "RAYDEX_HOME" in finding.remedy


@pytest.mark.parametrize(("kib", "state"), [(8 << 20, "ok"), (1 << 20, "warn")])
def test_little_memory_is_a_warning(tmp_path: Path, kib: int, state: str) -> None:
    assert states(run(lambda: machine.check_memory(kib << 10, tmp_path))) == [state]
    assert len(run(lambda: machine.check_memory(cgroup=tmp_path))) == 1


@pytest.mark.parametrize(
    ("limit", "used", "unlimited"),
    [
        ("memory.max", "memory.current", "max"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "9223372036854771712"),  # version 1
    ],
)
def test_limit_of_a_container_counts_as_its_memory(tmp_path: Path, limit: str, used: str, unlimited: str) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / limit).write_text(f"{2 << 30}\n")
    (tmp_path / used).write_text(f"{1 << 30}\n")
    [finding] = run(lambda: machine.check_memory(8 << 30, tmp_path))
    assert finding.state == "warn" and finding.found.startswith("1.0 GiB")
    (tmp_path / limit).write_text(f"{unlimited}\n")
    assert states(run(lambda: machine.check_memory(8 << 30, tmp_path))) == ["ok"]


def test_taken_port_is_a_warning_unless_the_service_holds_it() -> None:
    with ScriptedServer({}) as other:
        port = int(other.host.partition(":")[2])
        [taken] = run(lambda: machine.check_port(port, []))
        assert taken.state == "warn" and f"--port {port + 1}" in taken.remedy
        assert states(run(lambda: machine.check_port(port, ["http://127.0.0.1:8000"]))) == ["ok"]
    assert states(run(lambda: machine.check_port(port, []))) == ["ok"]


# ---------------------------------------------------------------------------------------------- the database


def check_url(url: str, home: Path = Path("/nowhere")) -> Finding:
    [finding] = run(DatabaseCheck(url, home, lambda opening: opening.__enter__()).check_database)
    return finding


@pytest.mark.parametrize(
    ("url", "said", "remedy"),
    [
        ("postgress://me:s3cret@h/x", "does not begin with postgresql://", "postgresql://USER"),
        ("nonsense", "does not begin with postgresql://", "postgresql://USER"),
        ("postgresql://me:s3cret@127.0.0.1:9/x", "Connection refused", "start the server"),
        ("postgresql://me:s3cr%zzt@127.0.0.1:9/x", "invalid percent-encoded token", "postgresql://USER"),
        ("postgresql://me:s3cret@127.0.0.1:s3cret/x", "its port is not a number", "postgresql://USER"),
        ("host=127.0.0.1 port=9 password=s3cret", "Connection refused", "start the server"),
    ],
)
def test_unresponsive_database_fails_without_showing_its_password(url: str, said: str, remedy: str) -> None:
    finding = check_url(url)
    assert finding.state == "failed" and said in finding.found and remedy in finding.remedy
    assert "s3cr" not in finding.found + finding.remedy


def test_embedded_postgres_is_not_started_without_data(tmp_path: Path) -> None:
    home = tmp_path / "home"
    finding = check_url("", home)
    assert finding.state == "ok" and "the first command creates one" in finding.found
    assert not home.exists()


# ---------------------------------------------------------------------------------------------- models, Ray


def check_model(name: str, cache: Path) -> tuple[list[Finding], ModelCheck]:
    checks = ModelCheck(cache, load_embedder)
    return run(lambda: checks.check(EmbeddingModel(name)), 120), checks


def test_model_is_loaded_and_embeds_without_an_export(tmp_path: Path) -> None:
    found, checks = check_model("hash:64", tmp_path)
    assert states(found) == ["ok"] and checks.dimensions("hash:64") == 64
    assert list(tmp_path.iterdir()) == []


def test_damaged_model_is_detected_by_the_digests_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model_folder(MODEL)
    assert list(damaged_files(MODEL, folder)) == []
    recorded = list(models.recorded_digests(MODEL))
    assert any(path.suffix == ".safetensors" for path, _ in recorded)
    wrong = [(path, "x" if path.name == "tokenizer.json" else digest) for path, digest in recorded]
    monkeypatch.setattr(models, "recorded_digests", lambda _: [*wrong, (folder / "gone.bin", "y")])
    found, _ = check_model(MODEL, tmp_path)
    assert states(found) == ["failed"]
    assert "tokenizer.json" in found[0].found and "gone.bin (missing)" in found[0].found


def test_hub_model_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("downloads"))
    found, _ = check_model("nobody/no-such-model", tmp_path)
    assert states(found) == ["warn"] and "hub" in found[0].remedy


def test_name_that_is_no_model_fails_with_an_example(tmp_path: Path) -> None:
    found, _ = check_model("hash:many", tmp_path)
    assert states(found) == ["failed"] and "hash:64" in found[0].found


def test_missing_cluster_is_reported_immediately() -> None:
    [finding] = run(lambda: cluster.check_ray("127.0.0.1:9", "", 60))
    assert finding.state == "failed" and "nothing answers at 127.0.0.1:9" in finding.found
    assert "unset RAY_ADDRESS" in finding.remedy
    with (
        pytest.raises(UnreachableCluster, match=r"nothing answers at 127.0.0.1:9 .*unset RAY_ADDRESS"),
        connect_ray("127.0.0.1:9"),
    ):
        pass


def test_ray_startup_failure_is_one_message_with_a_remedy(monkeypatch) -> None:
    monkeypatch.setattr("pipelines.ray_place.LEAST_FREE", 1 << 60)
    with (
        pytest.raises(UnreachableCluster, match=r"can't start here: no folder .* MiB free.*: let RAY_TMPDIR"),
        connect_ray(),
    ):
        pass
    [finding] = run(lambda: cluster.check_ray("local", "", 60))
    assert finding.state == "failed" and "no folder can be used" in finding.found and "RAY_TMPDIR" in finding.remedy


def test_last_words_of_ray_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Ray's raylet cannot run, the reason is its own last message, not a busy machine."""

    def init(**options: Any) -> None:
        logs = Path(options["_temp_dir"], f"session_2026-12-31_23-59-59_1_{os.getpid()}", "logs")
        logs.mkdir(parents=True)
        (logs / "raylet.err").write_text("bash: raylet: Permission denied\n")
        raise RuntimeError("The current node timed out during startup")

    folder = Path(tempfile.mkdtemp(prefix="rdx-", dir="/tmp"))
    monkeypatch.setenv("RAY_TMPDIR", str(folder))
    monkeypatch.setattr("ray.init", init)
    try:
        with pytest.raises(
            UnreachableCluster, match=r"\(raylet.err: bash: raylet: Permission denied\): `raydex doctor`"
        ):
            start_local_ray()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("address", ["{}", "ray://{}", "http://{}", "http://{}/"])
def test_listener_is_reached_by_each_form_of_its_address(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert why_unreachable(address.format(f"127.0.0.1:{server.getsockname()[1]}")) == ""
    assert "refused" in why_unreachable(address.format("127.0.0.1:9"))


# ---------------------------------------------------------------------------------------------- language models


def check_llm(url: str, model: str = "scripted", name: str = "llm", **settings: Any) -> list[Finding]:
    agent = AgentSettings(name=name, model=model, base_url=url, **settings)
    return run(lambda: endpoints.check_agent(agent))


def test_model_that_answers_passes_with_its_words_and_speed() -> None:
    with ScriptedLLM(default=Reply("Documentation tells how things work.", delay_s=0.01)) as llm:
        found = check_llm(llm.url)
    speed = next(finding for finding in found if "tokens a second" in finding.found)
    # A busy machine may be so slow that the speed is a warning.
    assert [finding.state for finding in found if finding is not speed] == ["ok"] * 4
    text = "\n".join(finding.found for finding in found)
    assert "has scripted; scripted is set" in text and "'Documentation tells how things work.'" in text
    assert "tokens a second" in text and "answers are streamed" in text and "the server does not say" in text
    assert len(llm.asked) == 2


@pytest.mark.parametrize(
    ("reply", "said", "remedy"),
    [
        (Reply(status=401, error={"message": "bad key sk-1"}), "refuses the API key", "set RAYDEX_LLM_KEY"),
        (Reply(status=400, error={"message": "no such adapter"}), "no such adapter", "log"),
        (Reply(status=503, error={"message": "all slots are busy"}), "all slots are busy", "load, or at the quota"),
        (Reply(hang=True), "did not begin to answer", "busy or still loads"),
        (Reply(""), "without text", "log"),
        (Reply(status=400, error=TOO_LONG), "4 tokens", "RAYDEX_LLM_CONTEXT_WINDOW="),
    ],
)
def test_model_that_does_not_answer_fails_with_a_remedy(reply: Reply, said: str, remedy: str) -> None:
    with ScriptedLLM(default=reply) as llm:
        *_, last = check_llm(llm.url, api_key="sk-1", first_token_s=0.5 if reply.hang else 30)
    assert last.state == "failed" and said in last.found and remedy in last.remedy
    assert "sk-1" not in last.found


def test_thinking_model_is_reported_but_no_failure() -> None:
    with ScriptedLLM(default=Reply("", finish_reason="length")) as llm:
        found = check_llm(llm.url)
        roomy = check_llm(llm.url, max_tokens=8_000)
    assert "thinks first" in found[1].found and found[1].state == "warn" and "max_tokens" in found[1].remedy
    assert "failed" not in states(found) and roomy[1].state == "ok"


def test_answer_in_one_piece_is_a_warning() -> None:
    with ScriptedLLM(default=Reply(deltas=["All at once."])) as llm:
        found = check_llm(llm.url)
    assert any("in one piece" in finding.found and finding.state == "warn" for finding in found)


def test_unlisted_model_can_still_answer() -> None:
    with ScriptedLLM(default=in_turn("Yes, I do.")) as llm:
        found = check_llm(llm.url, "another")
    assert states(found)[:2] == ["warn", "ok"] and "has scripted, not 'another'" in found[0].found


@pytest.mark.parametrize(
    ("paths", "said", "remedy"),
    [
        ({"/v1/models": Raw(401, "{}")}, "refuses the API key (HTTP 401)", "set RAYDEX_LLM_KEY"),
        ({"/v1/models": Raw(200, "<html>", "text/html")}, "text/html, not with JSON", "ends with /v1"),
        ({}, "HTTP 404", "ends with /v1"),
    ],
)
def test_server_without_a_model_list_fails_with_a_remedy(paths: dict[str, Any], said: str, remedy: str) -> None:
    with ScriptedServer(paths) as server:
        found = check_llm(f"{server.url}/v1", api_key="sk-1")
    assert found[-1].state == "failed" and said in found[0].found and remedy in found[0].remedy


def test_url_without_v1_and_a_closed_port_fail_with_a_remedy() -> None:
    with ScriptedServer({"/v1/models": {"data": [{"id": "m"}]}}) as server:
        [finding] = check_llm(server.url, "m", name="small")
        assert finding.remedy == f"set base_url of 'small' in RAYDEX_AGENTS to {server.url}/v1"
    [dead] = check_llm("http://127.0.0.1:9/v1")
    assert dead.found == "nothing listens at http://127.0.0.1:9/v1" and "start the server" in dead.remedy


def test_model_that_ollama_lacks_is_named_with_those_it_has() -> None:
    rows = {
        "/v1/models": {"data": [{"id": "a:1b", "owned_by": "library"}]},
        "/api/tags": {"models": [{"name": "a:1b"}]},
    }
    with ScriptedServer(rows) as server:
        [finding] = check_llm(f"{server.url}/v1", "b:1b")
    assert finding.state == "failed" and "has a:1b, not 'b:1b'" in finding.found
    assert "ollama pull b:1b" in finding.remedy


@pytest.mark.parametrize(
    ("name", "window", "state", "said"),
    [
        ("llm", 8_192, "warn", "`raydex serve` takes that"),
        ("llm", 6_000, "failed", "6,000 tokens are set, but the server holds 4,096 and refuses"),
        ("small", 8_192, "failed", "8,192 tokens are set"),
        ("small", 4_096, "ok", "4,096 tokens are used"),
    ],
)
def test_context_larger_than_the_servers_is_reported(name: str, window: int, state: str, said: str) -> None:
    agent = AgentSettings(name=name, model="m", base_url="http://127.0.0.1/v1", context_window=window)
    with ScriptedServer({"/v1/models": {"data": [{"id": "m", "max_model_len": 4_096}]}}) as server:
        agent = agent.model_copy(update={"base_url": f"{server.url}/v1"})
        finding = endpoints._check_context(agent, endpoints.SettingNames.of(agent))
    assert finding.state == state and said in finding.found
    assert state == "ok" or "4096" in finding.remedy
