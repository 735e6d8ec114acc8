"""The recipes in docs/llms.md, each with a server that has the documented peculiarities of its kind."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.scripted_llm import Reply, Request, ScriptedLLM

from pipelines.answering.factory import make_llm
from pipelines.answering.settings import AgentSettings
from pipelines.llm.client import LLM, Completion
from pipelines.llm.errors import ContextTooLong, LLMEmpty
from pipelines.records import Message
from serve.settings import Settings

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "llms.md").read_text()
CONFIG = yaml.safe_load((ROOT / "deploy" / "ray-llm.yaml").read_text())
HELLO = (Message("user", "Say hello."),)
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}


def recipe(heading: str) -> AgentSettings:
    """Return the first agent under a heading of the page."""
    part = DOCS.split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"RAYDEX_AGENTS='(\[.*?\])'", part, re.DOTALL)
    assert found, f"no recipe under {heading!r}"
    return AgentSettings(**json.loads(found[1])[0])


def use(heading: str, server: ScriptedLLM, work: Callable[[LLM], Coroutine[Any, Any, Any]]) -> Any:
    """Run `work` with the recipe's client, with its URL's host replaced by the server's."""
    agent = recipe(heading)
    path = re.sub(r"https?://[^/]+", "", agent.base_url)
    there = agent.model_copy(update={"base_url": server.url.removesuffix("/v1") + path})

    async def run() -> Any:
        llm = make_llm(there)
        try:
            return await work(llm)
        finally:
            await llm.close()

    return asyncio.run(run())


async def complete(llm: LLM) -> str:
    return (await llm.complete(HELLO)).text


async def stream(llm: LLM) -> list[str | Completion]:
    return [item async for item in llm.stream(HELLO)]


@pytest.mark.parametrize(("heading", "path", "cost"), [
    ("OpenAI", "/v1", (2 * 0.40 + 2 * 1.60) / 1_000_000), ("Ollama", "/v1", 0), ("vLLM", "/v1", 0),
    ("ray.serve.llm", "/llm/v1", 0),
])  # fmt: skip
def test_recipe_calls_its_model_and_streams(heading: str, path: str, cost: float) -> None:
    with ScriptedLLM() as server:
        assert use(heading, server, complete) == "Scripted answer."
        *deltas, completion = use(heading, server, stream)
    assert "".join(map(str, deltas)) == "Scripted answer." and isinstance(completion, Completion)
    assert {request.body["model"] for request in server.asked} == {recipe(heading).model}
    assert {request.path for request in server.asked} == {f"{path}/chat/completions"}
    assert completion.usage.cost == pytest.approx(cost)
    assert server.asked[1].body["stream_options"] == {"include_usage": True}


def test_every_agent_list_on_the_page_is_valid() -> None:
    lists = re.findall(r"RAYDEX_AGENTS='(\[.*?\])'", DOCS, re.DOTALL)
    assert len(lists) == 5
    for text in lists:
        assert Settings(database_url="postgresql://x", agents=json.loads(text)).agents


def test_table_of_the_page_lists_every_agent_field_with_its_default() -> None:
    rows = re.findall(r"^\| (`[a-z].+?) \| (.*?) \|", DOCS, re.MULTILINE)
    named = {name for fields, _ in rows for name in re.findall(r"`(\w+)`", fields)}
    assert named == set(AgentSettings.model_fields)
    for fields, default in rows:
        name = re.findall(r"`(\w+)`", fields)[0]
        if re.fullmatch(r"[\d.]+", default):
            assert float(default) == AgentSettings.model_fields[name].default


# ---------------------------------------------------------------------------------------------- OpenAI


def reasoning_model(request: Request) -> str | Reply:
    """Refuse one field at a time, like OpenAI's reasoning models."""
    if "max_tokens" in request.body:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return Reply(status=400, error={"message": said, "param": "max_tokens", "code": "unsupported_parameter"})
    if "temperature" in request.body:
        said = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
        return Reply(status=400, error={"message": said, "param": "temperature", "code": "unsupported_value"})
    return "Hello."


def test_openai_reasoning_models_take_other_fields() -> None:
    async def twice(llm: LLM) -> list[str]:
        return [await complete(llm), await complete(llm)]

    with ScriptedLLM(default=reasoning_model) as server:
        assert use("OpenAI", server, twice) == ["Hello."] * 2
    assert len(server.asked) == 4  # two refusals, then with the learned fields
    assert server.asked[-1].body["max_completion_tokens"] == recipe("OpenAI").max_tokens


# ---------------------------------------------------------------------------------------------- Ollama


def test_server_that_refuses_token_counting_is_asked_without_it() -> None:
    def strict(request: Request) -> str | Reply:
        known = "stream_options" not in request.body
        return "Hello." if known else Reply(status=400, error={"message": "unknown field: stream_options"})

    with ScriptedLLM(default=strict) as server:
        assert use("Ollama", server, stream)[0] == "Hello."
    assert len(server.asked) == 2


def test_thoughts_are_not_part_of_the_answer() -> None:
    def event(delta: dict[str, str], ended: str | None = None) -> str:
        return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}) + "\n\n"

    thinking = event({"role": "assistant", "content": "", "reasoning": "Well, let me see."})
    answered = thinking + event({"content": "Hello."}) + event({}, "stop") + "data: [DONE]\n\n"
    with ScriptedLLM(default=Reply(raw=answered)) as server:
        assert use("Ollama", server, stream)[:-1] == ["", "Hello."]
    cut = thinking + event({}, "length") + "data: [DONE]\n\n"
    with ScriptedLLM(default=Reply(raw=cut)) as server, pytest.raises(LLMEmpty, match="max_tokens"):
        use("Ollama", server, stream)


# ---------------------------------------------------------------------------------------------- vLLM, ray.serve.llm

TOO_LONG = (
    "This model's maximum context length is 16384 tokens. However, you requested 17012 tokens (15988 in the messages, "
    "1024 in the completion). Please reduce the length of the messages or completion."
)


@pytest.mark.parametrize("envelope", ["object", "error"])
def test_vllm_says_how_much_too_long_a_prompt_is(envelope: str) -> None:
    error = {"message": TOO_LONG, "type": "BadRequestError", "param": None, "code": 400}
    old = {"object": "error", **error}
    reply = Reply(status=400, error=old if envelope == "object" else error)

    async def with_schema(llm: LLM) -> None:
        await llm.complete(HELLO, schema=SCHEMA)

    for work in (complete, stream, with_schema):
        with ScriptedLLM(default=reply) as server, pytest.raises(ContextTooLong, match=r"16384.*17012"):
            use("vLLM", server, work)
        assert len(server.asked) == 1


def application(name: str) -> dict[str, Any]:
    return next(app for app in CONFIG["applications"] if app["name"] == name)


def test_config_file_of_both_applications_fits_the_serve_schema() -> None:
    from ray.serve.schema import ServeDeploySchema

    parsed = ServeDeploySchema.parse_obj(CONFIG)
    assert {app.name: app.route_prefix for app in parsed.applications} == {"llm": "/llm", "raydex": "/"}
    assert CONFIG["http_options"]["host"] == "127.0.0.1"  # ray.serve.llm checks no keys


def test_models_of_the_config_file_fit_ray_serve_llm() -> None:
    # The public class re-exports this one, but cannot be imported without vLLM.
    from ray.llm._internal.serve.core.configs.llm_config import LLMConfig

    for fields in application("llm")["args"]["llm_configs"]:
        assert LLMConfig(**fields).model_id == "qwen3-4b"
        with pytest.raises(ValueError, match="engine_kwarg\n"):
            LLMConfig(**fields, engine_kwarg={})


def test_builder_of_the_config_file_exists() -> None:
    module, name = application("llm")["import_path"].split(":")
    path = Path(__import__("ray").__file__).parent.joinpath(*module.split(".")[1:], "__init__.py")
    assert f"def {name}(" in path.read_text()
    assert application("raydex")["import_path"] == "serve.app:build"


def test_raydex_calls_the_model_served_next_to_it() -> None:
    settings = Settings(database_url="postgresql://x", **application("raydex")["args"])
    [agent] = settings.agents
    [model] = application("llm")["args"]["llm_configs"]
    assert agent.model == model["model_loading_config"]["model_id"]
    assert agent.context_window == model["engine_kwargs"]["max_model_len"]
    assert agent.base_url == f"http://127.0.0.1:{CONFIG['http_options']['port']}{application('llm')['route_prefix']}/v1"
    assert recipe("ray.serve.llm").model_dump() == agent.model_dump()
