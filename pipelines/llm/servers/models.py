"""Reads which models a server of language models lists, and their context sizes in tokens.

Knows the lists of OpenAI, Ollama, llama.cpp, vLLM and LM Studio. Chooses nothing.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from pipelines.llm.servers.http import NoAnswer, ask, without_password
from pipelines.text.phrases import read_phrases

OLLAMA_PORT = 11434
# Ollama's context for a model that sets none, with less than 24 GiB of GPU memory (docs/context-length.mdx); with more
# it is larger, so a prompt that fits this always fits.
OLLAMA_CONTEXT = 4096
_PHRASES = read_phrases(__name__)
# vLLM; Ollama's list of loaded models and OpenRouter; LM Studio; Mistral and LM Studio; others.
CONTEXT_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model of a server. `context` is in tokens, 0 if the server does not say.

    `chat` is whether it answers questions, judging by its name and the server's data. `loaded` is whether it is in
    memory. `away` is whether the server forwards questions to another host.
    """

    name: str
    context: int = 0
    chat: bool = True
    loaded: bool = False
    away: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """A server of language models at `base_url` (the URL up to `/chat/completions`), with the models that it lists."""

    base_url: str
    models: tuple[ServedModel, ...]
    ollama: bool = False

    @property
    def shown(self) -> str:
        """The server's name in messages."""
        return f"the Ollama at {self.root}" if self.ollama else without_password(self.base_url)

    @property
    def root(self) -> str:
        """The URL without `/v1`, the base of endpoints outside OpenAI's API."""
        return root_of(self.base_url)

    def find(self, name: str) -> ServedModel | None:
        """Return the model with that name; for Ollama a name without a tag means `latest`."""
        wanted = {name, f"{name}:latest"} if self.ollama and ":" not in name else {name}
        return next((model for model in self.models if model.name in wanted), None)


def root_of(base_url: str) -> str:
    """Return a base URL without `/v1`."""
    return re.sub(r"/v1/?$", "", base_url.rstrip("/"))


def look_at(base_url: str, key: str = "") -> Server:
    """Return the server at `base_url`, which may lack the final `/v1`. Raises NoAnswer."""
    base_url = base_url.strip().rstrip("/")
    try:
        rows = _listed(base_url, key)
    except NoAnswer as error:
        if base_url.endswith("/v1") or error.status in (0, 401, 403):
            raise
        try:
            rows = _listed(f"{base_url}/v1", key)
        except NoAnswer:
            raise error from None
        base_url = f"{base_url}/v1"
    if urlsplit(base_url).port == OLLAMA_PORT or any(row.get("owned_by") == "library" for row in rows):
        with suppress(NoAnswer):
            return look_at_ollama(root_of(base_url), base_url)
    models = tuple(_read_model(row) for row in rows)
    if any(row.get("owned_by") == "llamacpp" for row in rows) and not all(model.context for model in models):
        slot = _slot_context(base_url, key)
        models = tuple(replace(model, context=model.context or slot) for model in models)
    return Server(base_url, models)


def look_at_ollama(root: str, base_url: str = "") -> Server:
    """Return the Ollama at `root`, with its models in the order of `ollama list`. Raises NoAnswer."""
    rows = _rows(ask(root, "/api/tags"), "models", root)
    loaded: dict[str, int] = {}
    with suppress(NoAnswer):
        running = _rows(ask(root, "/api/ps"), "models", root)
        loaded = {_name(row): _tokens(row.get("context_length")) for row in running}
    models = [
        ServedModel(
            name=_name(row),
            context=loaded.get(_name(row), 0),
            chat=_chats(row),
            loaded=_name(row) in loaded,
            away=bool(row.get("remote_host")) or bool(re.search(r"[:-]cloud$", _name(row))),
        )
        for row in rows
        if _name(row)
    ]
    return Server(base_url or f"{root}/v1", tuple(models), ollama=True)


def context_of(server: Server, model: ServedModel) -> int:
    """Return the context size of `model` in tokens, or 0 if its server does not say.

    Ollama reports it for loaded models and for models that set `num_ctx`. For others, its smallest default is assumed.
    """
    if model.context or not server.ollama:
        return model.context
    shown = _show(server, model)
    own = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    info = _mapping(shown.get("model_info"))
    trained = [_tokens(value) for name, value in info.items() if name.endswith(".context_length")]
    return min([int(own[1]) if own else OLLAMA_CONTEXT, *filter(None, trained)])


def can_chat(server: Server, model: ServedModel) -> bool:
    """Return whether a model answers questions, by its name and by the capabilities that Ollama lists."""
    if not model.chat or not server.ollama:
        return model.chat
    capabilities = _show(server, model).get("capabilities")
    return not isinstance(capabilities, list) or "completion" in capabilities


def _show(server: Server, model: ServedModel) -> Mapping[str, Any]:
    """Return Ollama's description of a model; empty if it does not answer."""
    with suppress(NoAnswer):
        return ask(server.root, "/api/show", body={"model": model.name})
    return {}


def _listed(base_url: str, key: str) -> list[Mapping[str, Any]]:
    return _rows(ask(base_url, "/models", key=key), "data", base_url)


def _rows(reply: Mapping[str, Any], field: str, url: str) -> list[Mapping[str, Any]]:
    """Return the rows of a list that are objects. Raises NoAnswer."""
    if field not in reply and "error" in reply:
        raise NoAnswer(f"{without_password(url)} answers with an error: {str(reply['error'])[:200]}", 200)
    rows = reply.get(field, "missing") or []  # an Ollama without models sends null
    if not isinstance(rows, list):
        raise NoAnswer(f"{without_password(url)} answers with JSON that lists no models", 200)
    return [row for row in rows if isinstance(row, dict)]


def _read_model(row: Mapping[str, Any]) -> ServedModel:
    """Return the model in a row of `/v1/models`."""
    of_slot = _mapping(row.get("meta")).get("n_ctx")  # llama.cpp
    contexts = map(_tokens, (of_slot, *map(row.get, CONTEXT_FIELDS)))
    return ServedModel(_name(row), next(filter(None, contexts), 0), _chats(row))


def _slot_context(base_url: str, key: str) -> int:
    """Return the context size of one llama.cpp slot, which older versions report in `/props`; else 0."""
    with suppress(NoAnswer):
        reply = ask(root_of(base_url), "/props", key=key)
        return _tokens(_mapping(reply.get("default_generation_settings")).get("n_ctx"))
    return 0


def _chats(row: Mapping[str, Any]) -> bool:
    family = str(_mapping(row.get("details")).get("family"))
    kind = str(row.get("type") or "")  # LM Studio and Together: llm, chat, embeddings, …
    return not (_PHRASES["not_chat"].search(_name(row)) or "bert" in family or "embed" in kind)


def _name(row: Mapping[str, Any]) -> str:
    return str(row.get("id") or row.get("name") or row.get("model") or "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
