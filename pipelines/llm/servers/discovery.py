"""Finds a language model to answer with if none is configured, and explains the choice.

Contacts only servers that the environment names, and the Ollama on this machine. Takes the environment as an argument.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pipelines.llm.servers.http import NoAnswer, is_loopback, without_password
from pipelines.llm.servers.models import (
    OLLAMA_CONTEXT,
    OLLAMA_PORT,
    ServedModel,
    Server,
    can_chat,
    context_of,
    look_at,
    look_at_ollama,
)
from pipelines.text.counts import counted
from pipelines.text.parsing import NotParsed, parse_json

TRUE = {"1", "true", "yes", "on", "y", "t"}  # values that the settings read as true
QUOTING = "answers are quotations"
SETUP = "docs/llms.md says how to set one up; --no-llm skips the search"
OLLAMA_PULL = "`ollama pull qwen3:4b`"
MOST_NAMED = 6  # maximum models of a server listed in a message


@dataclass(frozen=True, slots=True)
class FoundLLM:
    """The result of `find_llm`.

    `settings` are the answer settings to set, empty if the configuration is complete. `lines` tell a person which model
    answers and why. `server` and `model` are the choice.
    """

    lines: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    server: Server | None = None
    model: ServedModel | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The settings as environment variables for another process."""
        return {f"RAYDEX_{name.upper()}": str(value) for name, value in self.settings.items()}


@dataclass(frozen=True, slots=True)
class _Place:
    """A server to contact, with the variable that names it."""

    url: str
    named_by: str
    key: str = ""
    ollama: bool = False

    def look(self) -> Server:
        return look_at_ollama(self.url) if self.ollama else look_at(self.url, self.key)


def find_llm(environment: Mapping[str, str]) -> FoundLLM:
    """Return the language model to answer with, from the variables of `environment`.

    RAYDEX_AGENTS, or RAYDEX_LLM_URL with RAYDEX_LLM_MODEL, are used as they are. Otherwise the first of these with a
    chat model answers: the server at RAYDEX_LLM_URL, the server at OPENAI_BASE_URL, the Ollama at OLLAMA_HOST or on
    this machine. RAYDEX_LLM_MODEL chooses among their models. Never raises: if nothing is found, `lines` say why.
    """
    given = {name.upper().replace("__", "_"): value.strip() for name, value in environment.items()}
    url, model = given.get("RAYDEX_LLM_URL", ""), given.get("RAYDEX_LLM_MODEL", "")
    if given.get("RAYDEX_LLM_OFF", "").lower() in TRUE:
        return FoundLLM((f"{QUOTING}: --no-llm (RAYDEX_LLM_OFF) does without a language model",))
    if agents := _agent_names(given.get("RAYDEX_AGENTS", "")):
        return FoundLLM((f"answers are written by the agents of RAYDEX_AGENTS: {', '.join(agents)}",))
    if url and model:
        return _configured(_Place(url, "RAYDEX_LLM_URL", given.get("RAYDEX_LLM_KEY", "")), model, given)
    return _search(list(_places(given)), model, given)


def _places(given: Mapping[str, str]) -> list[_Place]:
    """Return the servers to contact, in order."""
    if url := given.get("RAYDEX_LLM_URL"):
        return [_Place(url, "RAYDEX_LLM_URL", given.get("RAYDEX_LLM_KEY", ""))]
    host = given.get("OLLAMA_HOST", "")
    ollama = _Place(ollama_url(host), "OLLAMA_HOST" if host else "where Ollama is by default", ollama=True)
    if url := given.get("OPENAI_BASE_URL"):
        return [_Place(url, "OPENAI_BASE_URL", given.get("OPENAI_API_KEY", "")), ollama]
    return [ollama]


def ollama_url(host: str) -> str:
    """Return the URL of the Ollama in OLLAMA_HOST, with a listen address such as 0.0.0.0 replaced by loopback.

    As in Ollama, the port is 11434 without a scheme, else the scheme's default.
    """
    scheme, _, rest = host.rpartition("://")
    name, slash, path = rest.partition("/")
    found = re.match(r"(\[[^\]]*\]|[^:]*)(?::(\d*))?$", name)
    address, port = (found[1], found[2]) if found else (name, "")
    address = address or "127.0.0.1"
    address = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(address, address)
    port = port or {"http": "80", "https": "443"}.get(scheme, str(OLLAMA_PORT))
    return f"{scheme or 'http'}://{address}:{port}{(slash + path).rstrip('/')}"


def _search(places: Sequence[_Place], wanted: str, given: Mapping[str, str]) -> FoundLLM:
    """Return the model of the first server that has one, or the problem with each server."""
    problems: list[str] = []
    for place in places:
        try:
            server = place.look()
        except NoAnswer as error:
            problems.append(f"{error} ({place.named_by})")
            continue
        model, why = _choose(server, wanted)
        if model is not None:
            return _found(server, place, model, why, problems)
        problems.append(f"{why} ({place.named_by})")
    if wanted and given.get("RAYDEX_LLM_KEY") and not given.get("RAYDEX_LLM_URL"):
        return FoundLLM((*problems, f"answers are written by {wanted} of OpenAI: RAYDEX_LLM_URL names no other server"))
    return FoundLLM((f"no language model found, {QUOTING}: {'; '.join(problems)}. {SETUP}",), {"llm_off": True})


def _found(server: Server, place: _Place, model: ServedModel, why: str, problems: Sequence[str]) -> FoundLLM:
    """Return a choice with its settings, and the lines that explain it."""
    tokens = context_of(server, model)
    settings: dict[str, Any] = {"llm_url": server.base_url, "llm_model": model.name, "llm_key": place.key}
    if tokens:
        settings["llm_context_window"] = tokens
    others = [other.name for other in server.models if other.chat and other is not model]
    choose = f"RAYDEX_LLM_MODEL names another ({_names(others)}), " if others else ""
    about = ", ".join([why, *_context(server, model, tokens)])
    said = f"answers are written by {model.name} of {server.shown} ({about}); {choose}--no-llm does without"
    return FoundLLM((*problems, said), settings, server, model)


def _configured(place: _Place, name: str, given: Mapping[str, str]) -> FoundLLM:
    """Return the configured model, with the context size from its server unless that is configured too."""
    said = f"answers are written by {name} at {without_password(place.url)}, as RAYDEX_LLM_MODEL says"
    try:
        server = place.look()
    except NoAnswer as error:
        return FoundLLM((said, f"{error}; until that is mended, {QUOTING}: `raydex doctor` says more"))
    settings: dict[str, Any] = {}
    if server.base_url != place.url.rstrip("/"):
        settings["llm_url"] = server.base_url
        said = said.replace(without_password(place.url), server.shown)
    model = server.find(name)
    if model is None:
        return FoundLLM((said, *_unlisted(server, name)), settings, server)
    tokens = context_of(server, model)
    if tokens and not given.get("RAYDEX_LLM_CONTEXT_WINDOW"):
        settings["llm_context_window"] = tokens
        said += f" ({', '.join(_context(server, model, tokens))})"
    return FoundLLM((said,), settings, server, model)


def _choose(server: Server, wanted: str) -> tuple[ServedModel | None, str]:
    """Return a server's model to answer with and why it was chosen, or None and why none was."""
    if wanted:
        model = server.find(wanted)
        return model, "as RAYDEX_LLM_MODEL says" if model else f"{server.shown} has no model {wanted!r}: {_has(server)}"
    if not server.models:
        pull = f"; {OLLAMA_PULL} gets one" if server.ollama else ""
        return None, f"{server.shown} has no model{pull}"
    chats = [model for model in server.models if not model.away and can_chat(server, model)]
    if not chats:
        return None, f"{server.shown} has no model for chats on its own machine: {_has(server)}"
    if server.ollama:
        first = next((model for model in chats if model.loaded), None)
        return first or chats[0], _reason(chats, "loaded already" if first else "pulled last")
    if len(chats) > 1 and not is_loopback(server.base_url):
        return None, f"{server.shown} has {counted(len(chats), 'model')} for chats: RAYDEX_LLM_MODEL must name one"
    return chats[0], _reason(chats, "the first that it lists")


def _reason(chats: Sequence[ServedModel], why: str) -> str:
    return "its only model for chats" if len(chats) == 1 else why


def _context(server: Server, model: ServedModel, tokens: int) -> list[str]:
    """Return a note on the context size, if it is known."""
    if not tokens:
        return []
    assumed = server.ollama and not model.loaded and tokens == OLLAMA_CONTEXT
    return [f"{counted(tokens, 'token')} of context{', as Ollama gives at least' if assumed else ''}"]


def _unlisted(server: Server, name: str) -> list[str]:
    """Return a warning for a configured model that an Ollama does not list."""
    if not server.ollama:  # llama.cpp accepts any name, and hosted services do not list all models
        return []
    return [f"{server.shown} has no model {name!r}: {_has(server)}; `ollama pull {name}` gets it"]


def _has(server: Server) -> str:
    return f"it has {_names([model.name for model in server.models])}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (", ".join(names[:MOST_NAMED]) or "none") + more


def _agent_names(text: str) -> list[str]:
    """Return the names in RAYDEX_AGENTS. An invalid list is reported by the code that uses it."""
    with suppress(NotParsed):
        if isinstance(agents := parse_json(text or "[]"), list):
            return [str(agent.get("name")) for agent in agents if isinstance(agent, dict)]
    return ["?"]
