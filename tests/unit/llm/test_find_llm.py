"""Without a configured language model, a local one is found and reported, and no other server is contacted."""

import socket
from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from kit.scripted_server import HANG, Raw, ScriptedServer

from pipelines.answering.settings import AnswerSettings, all_agents
from pipelines.llm.servers import find_llm, http, look_at
from pipelines.llm.servers.discovery import ollama_url
from serve.settings import Settings

DEAD = "127.0.0.1:9"
CHAT = {"name": "qwen3:4b", "size": 2_000, "details": {"family": "qwen3"}}
OTHER = {"name": "llama3.2:3b", "size": 9_000, "details": {"family": "llama"}}
FAMILIES = {"nomic-embed-text:latest": "nomic-bert", "all-minilm:l6-v2": "bert", "bge-m3:latest": "bert"}
EMBEDS = [{"name": name, "details": {"family": family}} for name, family in FAMILIES.items()]
CLOUD = {"name": "gpt-oss:120b-cloud", "remote_host": "https://ollama.com:443"}


def ollama(
    *models: Mapping[str, Any], loaded: Mapping[str, int] = {}, shown: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the paths of an Ollama with these models. `loaded` maps models in memory to their context's tokens."""
    rows = [{"id": model["name"], "object": "model", "owned_by": "library"} for model in models]
    return {
        "/api/tags": {"models": list(models)},
        "/api/ps": {"models": [{"name": name, "context_length": tokens} for name, tokens in loaded.items()]},
        "/api/show": shown or {"capabilities": ["completion"], "model_info": {"qwen3.context_length": 40_960}},
        "/v1/models": {"object": "list", "data": rows or None},
    }


def listed(*names: str, **fields: Any) -> dict[str, Any]:
    return {"/v1/models": {"object": "list", "data": [{"id": name, "owned_by": "vllm", **fields} for name in names]}}


def find(paths: Mapping[str, Any], variable: str = "OLLAMA_HOST", **others: str) -> tuple[dict[str, Any], str, Any]:
    """Return `find_llm`'s settings with a server named by `variable`, its lines, and the server."""
    with ScriptedServer(paths) as server:
        url = server.url if variable == "OLLAMA_HOST" else f"{server.url}/v1"
        found = find_llm({"OLLAMA_HOST": DEAD, variable: url, **others})
        text = "\n".join(found.lines).replace(server.host, "HOST")
        return {name: str(value).replace(server.host, "HOST") for name, value in found.settings.items()}, text, server


# ---------------------------------------------------------------------------------------------- Ollama


def test_ollama_answers_with_the_most_recently_pulled_chat_model() -> None:
    settings, text, _ = find(ollama(*EMBEDS, CLOUD, CHAT, OTHER))
    assert settings == {
        "llm_url": "http://HOST/v1", "llm_model": "qwen3:4b", "llm_key": "", "llm_context_window": "4096",
    }  # fmt: skip
    assert text == (
        "answers are written by qwen3:4b of the Ollama at http://HOST (pulled last, 4,096 tokens of context, as Ollama "
        "gives at least); RAYDEX_LLM_MODEL names another (gpt-oss:120b-cloud, llama3.2:3b), --no-llm does without"
    )


def test_loaded_model_comes_first_with_its_actual_context() -> None:
    settings, text, _ = find(ollama(CHAT, OTHER, loaded={"llama3.2:3b": 16_384}))
    assert (settings["llm_model"], settings["llm_context_window"]) == ("llama3.2:3b", "16384")
    assert "(loaded already, 16,384 tokens of context)" in text
    embeds, _, _ = find(ollama(*EMBEDS, CHAT, loaded={"bge-m3:latest": 8_192}))  # the loaded one is not a chat model
    assert embeds["llm_model"] == "qwen3:4b"


def test_model_can_be_named() -> None:
    settings, text, _ = find(ollama(CHAT, OTHER, loaded={"qwen3:4b": 4_096}), RAYDEX_LLM_MODEL="llama3.2:3b")
    assert settings["llm_model"] == "llama3.2:3b" and "as RAYDEX_LLM_MODEL says" in text
    latest, _, _ = find(ollama(CHAT, {"name": "mistral:latest"}), RAYDEX_LLM_MODEL="mistral")
    assert latest["llm_model"] == "mistral:latest"


@pytest.mark.parametrize(
    ("shown", "tokens"),
    [
        ({"parameters": "stop  x\nnum_ctx                        16384", "model_info": {}}, "16384"),
        ({"model_info": {"llama.context_length": 2_048}}, "2048"),
        ({}, "4096"),
        (Raw(500, "{}"), "4096"),
    ],
)
def test_unloaded_model_has_the_context_that_ollama_would_give_it(shown: Any, tokens: str) -> None:
    settings, _, _ = find(ollama(CHAT, shown=shown))
    assert settings["llm_context_window"] == tokens


def test_capabilities_decide_if_ollama_lists_them() -> None:
    def show(body: dict[str, Any]) -> Any:
        return {"capabilities": ["embedding" if body["model"] == "odd-name:1b" else "completion"]}

    paths = ollama({"name": "odd-name:1b"}, CHAT) | {"/api/show": show}
    assert find(paths)[0]["llm_model"] == "qwen3:4b"


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (
            ollama(*EMBEDS),
            "has no model for chats on its own machine: it has nomic-embed-text:latest, all-minilm:l6-v2",
        ),
        (ollama(CLOUD), "no model for chats on its own machine: it has gpt-oss:120b-cloud"),
        (ollama(), "the Ollama at http://HOST has no model; `ollama pull qwen3:4b` gets one"),
        ({"/api/tags": {"models": None}}, "has no model;"),
        ({}, "http://HOST/api/tags answers HTTP 404"),
        ({"/api/tags": Raw(200, "<html>", "text/html")}, "answers with text/html, not with JSON"),
        ({"/api/tags": Raw(200, "[1]")}, "not with JSON"),
        ({"/api/tags": {"models": "x"}}, "lists no models"),
        ({"/api/tags": Raw(401, "{}")}, "wants an API key (HTTP 401)"),
        ({"/api/tags": Raw(302, "", headers={"Location": "http://10.1.2.3/"})}, "a redirect, which is not followed"),
    ],
)
def test_non_chat_model_is_reported_and_answers_are_quotations(paths: Mapping[str, Any], said: str) -> None:
    settings, text, _ = find(paths)
    assert settings == {"llm_off": "True"}
    assert text.startswith("no language model found, answers are quotations: ") and said in text, text


def test_every_time_limit_has_the_same_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "within", Mock(side_effect=httpx.ReadTimeout("timed out")))
    with pytest.raises(http.NoAnswer, match=f"did not answer within {http.ANSWER_S:g} s"):
        http.ask("http://127.0.0.1:9", "/")


def test_hanging_server_costs_only_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_S", 0.2)
    settings, text, _ = find({"/api/tags": HANG})
    assert settings == {"llm_off": "True"} and "did not answer within 0.2 s" in text
    settings, _, _ = find(ollama(CHAT) | {"/api/ps": HANG, "/api/show": HANG})
    assert settings["llm_model"] == "qwen3:4b"


def test_non_http_server_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        host = f"127.0.0.1:{listening.getsockname()[1]}"

        def greet() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(100)
                client.sendall(b"220 smtp ready\r\n")

        http.threading.Thread(target=greet, daemon=True).start()
        [line] = find_llm({"OLLAMA_HOST": host}).lines
    assert f"something answers at http://{host}, but not in HTTP" in line


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("[::]:8080", "http://[::1]:8080"),
        ("gpu", "http://gpu:11434"),
        ("gpu:80", "http://gpu:80"),
        ("http://gpu", "http://gpu:80"),
        ("https://gpu/ollama/", "https://gpu:443/ollama"),
    ],
)
def test_ollama_address_is_parsed_like_in_ollama(host: str, url: str) -> None:
    assert ollama_url(host) == url


# ---------------------------------------------------------------------------------------------- OPENAI_BASE_URL


def test_openai_base_url_wins_over_ollama() -> None:
    with ScriptedServer(ollama(CHAT)) as other:
        models = listed("text-embedding-3-small", "big-chat", max_model_len=16_384)
        settings, text, server = find(models, "OPENAI_BASE_URL", OPENAI_API_KEY="sk-1", OLLAMA_HOST=other.url)
        assert other.asked == []
    assert settings == {
        "llm_url": "http://HOST/v1", "llm_model": "big-chat", "llm_key": "sk-1", "llm_context_window": "16384",
    }  # fmt: skip
    assert "its only model for chats, 16,384 tokens" in text and "sk-1" not in text
    assert server.asked == [("/v1/models", "Bearer sk-1")]


def test_embedding_only_server_leaves_answers_to_ollama_without_its_key() -> None:
    with ScriptedServer(ollama(CHAT)) as other:
        embeds = listed("text-embedding-3-small")
        settings, text, _ = find(embeds, "OPENAI_BASE_URL", OPENAI_API_KEY="sk-1", OLLAMA_HOST=other.url)
        assert {key for _, key in other.asked} == {""}
    assert settings["llm_model"] == "qwen3:4b" and settings["llm_key"] == ""
    assert "it has text-embedding-3-small (OPENAI_BASE_URL)" in text


def test_openai_base_url_can_be_an_ollama() -> None:
    settings, text, _ = find(ollama(*EMBEDS, CHAT, loaded={"qwen3:4b": 8_192}), "OPENAI_BASE_URL")
    assert (settings["llm_model"], settings["llm_context_window"]) == ("qwen3:4b", "8192")
    assert "the Ollama at http://HOST" in text


@pytest.mark.parametrize(
    "rows",
    [
        listed("qwen", owned_by="llamacpp", meta={"n_ctx": 4_096, "n_ctx_train": 32_768}),
        listed("qwen", owned_by="llamacpp", meta={"n_ctx_train": 32_768})
        | {"/props": {"default_generation_settings": {"n_ctx": 4_096}}},
    ],
)
def test_llama_cpp_context_is_the_context_of_one_slot(rows: Mapping[str, Any]) -> None:
    assert find(rows, "OPENAI_BASE_URL")[0]["llm_context_window"] == "4096"


def test_llama_cpp_with_many_models_is_asked_once_and_its_list_is_used() -> None:
    rows = listed("a", "b", "c", owned_by="llamacpp")
    rows["/v1/models"]["data"][2]["meta"] = {"n_ctx": 16_384}
    rows["/props"] = {"default_generation_settings": {"n_ctx": 4_096}}
    with ScriptedServer(rows) as server:
        assert [model.context for model in look_at(f"{server.url}/v1").models] == [4_096, 4_096, 16_384]
    assert len(server.asked) == 2


def test_missing_v1_is_added() -> None:
    with ScriptedServer(listed("m")) as server:
        found = find_llm({"OPENAI_BASE_URL": server.url, "OLLAMA_HOST": DEAD})
        assert found.settings["llm_url"] == f"{server.url}/v1"


def test_remote_server_with_several_models_requires_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.llm.servers.discovery.is_loopback", lambda url: False)
    settings, text, _ = find(listed("small", "large"), "OPENAI_BASE_URL")
    assert settings == {"llm_off": "True"} and "2 models for chats: RAYDEX_LLM_MODEL must name one" in text
    settings, _, _ = find(listed("small", "large"), "OPENAI_BASE_URL", RAYDEX_LLM_MODEL="large")
    assert settings["llm_model"] == "large"
    assert find(listed("only"), "OPENAI_BASE_URL")[0]["llm_model"] == "only"


def test_refused_key_is_never_shown() -> None:
    refuses = {"/v1/models": Raw(401, '{"error": "bad key sk-1"}')}
    settings, text, _ = find(refuses, "OPENAI_BASE_URL", OPENAI_API_KEY="sk-1")
    assert "refuses the API key (HTTP 401) (OPENAI_BASE_URL)" in text and "sk-1" not in text
    assert settings == {"llm_off": "True"}


# ---------------------------------------------------------------------------------------------- configuration


def test_configuration_wins_and_only_its_context_is_looked_up() -> None:
    named = (listed("m", max_model_len=2_048), "RAYDEX_LLM_URL")
    with ScriptedServer(ollama(CHAT)) as other:
        settings, text, _ = find(*named, RAYDEX_LLM_MODEL="m", OPENAI_BASE_URL=other.url)
        assert other.asked == []
    assert settings == {"llm_context_window": "2048"}
    assert text == "answers are written by m at http://HOST/v1, as RAYDEX_LLM_MODEL says (2,048 tokens of context)"
    assert find(*named, RAYDEX_LLM_MODEL="m", RAYDEX_LLM_CONTEXT_WINDOW="1024")[0] == {}


def test_url_without_a_model_uses_one_of_its_models() -> None:
    settings, _, server = find(listed("m"), "RAYDEX_LLM_URL", RAYDEX_LLM_KEY="k-1")
    assert settings == {"llm_url": "http://HOST/v1", "llm_model": "m", "llm_key": "k-1"}
    assert server.asked == [("/v1/models", "Bearer k-1")]


def test_unreachable_server_is_reported_and_a_configured_model_kept() -> None:
    found = find_llm({"OLLAMA_HOST": DEAD})
    assert found.settings == {"llm_off": True}
    assert "nothing listens at http://127.0.0.1:9 (OLLAMA_HOST)" in found.lines[0]
    away = find_llm({"RAYDEX_LLM_URL": f"http://{DEAD}/v1", "RAYDEX_LLM_MODEL": "m"})
    assert away.settings == {} and "nothing listens at http://127.0.0.1:9/v1" in away.lines[1]
    _, missing, _ = find(ollama(CHAT), "RAYDEX_LLM_URL", RAYDEX_LLM_MODEL="qwen3:8b")
    assert "has no model 'qwen3:8b': it has qwen3:4b; `ollama pull qwen3:8b` gets it" in missing


def test_model_without_a_url_means_openai_only_with_a_key() -> None:
    with_key = find_llm({"OLLAMA_HOST": DEAD, "RAYDEX_LLM_MODEL": "gpt-4.1", "RAYDEX_LLM_KEY": "sk-1"})
    assert with_key.settings == {} and "gpt-4.1 of OpenAI" in with_key.lines[-1]
    assert find_llm({"OLLAMA_HOST": DEAD, "RAYDEX_LLM_MODEL": "qwen3:4b"}).settings == {"llm_off": True}


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("RAYDEX_LLM_URL", "http://[::1:8080/v1"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:99999/v1"),
        ("OLLAMA_HOST", "[::1"),
        ("OLLAMA_HOST", "127.0.0.1:99999"),
    ],
)
def test_invalid_url_is_reported_with_its_variable(variable: str, url: str) -> None:
    [line] = find_llm({"OLLAMA_HOST": DEAD, variable: url}).lines
    assert f"{url}" in line and f"is not a URL: write http://HOST:PORT/v1 ({variable})" in line
    [_, line] = find_llm({"RAYDEX_LLM_URL": "http://[::1:8080/v1", "RAYDEX_LLM_MODEL": "m"}).lines
    assert "is not a URL" in line


def test_configured_agents_are_kept_and_llm_off_disables_all() -> None:
    agents = '[{"name": "small", "model": "m"}, {"name": "large", "model": "l"}]'
    assert find_llm({"RAYDEX_AGENTS": agents}).lines == (
        "answers are written by the agents of RAYDEX_AGENTS: small, large",
    )
    assert find_llm({"RAYDEX_AGENTS": "not json"}).settings == {}
    without = find_llm({"RAYDEX_AGENTS": agents, "RAYDEX_LLM__OFF": "True"})
    assert without.settings == {} and "--no-llm" in without.lines[0]
    off = AnswerSettings.model_validate({"agents": [{"name": "a", "model": "m"}], "llm": {"off": True}})
    assert all_agents(off) == []


def test_found_model_becomes_an_agent() -> None:
    settings, _, _ = find(ollama(CHAT))
    [agent] = all_agents(Settings(**settings))  # type: ignore[arg-type]
    assert (agent.model, agent.base_url, agent.context_window) == ("qwen3:4b", "http://HOST/v1", 4_096)


def test_embedding_url_wins_over_openai_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://answers/v1")
    assert Settings().embedding.url == "http://answers/v1"
    monkeypatch.setenv("RAYDEX_EMBEDDING_URL", "http://vectors/v1")
    assert Settings().embedding.url == "http://vectors/v1"
