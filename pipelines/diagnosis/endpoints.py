"""Checks the endpoint of a language model: its list, an answer, the speed, streaming, the context.

It costs two short answers, at most ANSWER_TOKENS each.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.answering.factory import make_llm
from pipelines.answering.settings import AgentSettings
from pipelines.diagnosis.check import Finding, failed, fine, warning
from pipelines.llm import LLM, Completion, LLMFailed, LLMSettings, errors
from pipelines.llm.servers import NoAnswer, Server, context_of, look_at
from pipelines.llm.tokens import TokenizerNotFound
from pipelines.records import Message
from pipelines.text.counts import counted

ANSWER_TOKENS = 48
FIRST_TOKEN_S = 120.0  # enough to read a model of 40 GB from a disk
# Median tokens of a question with five passages on the Ray documentation, to estimate its seconds.
USUAL_PROMPT, USUAL_ANSWER = 1_500, 150
WORDS = "lake river stone paper window garden market winter copper signal harbor letter candle forest bridge engine"
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class SettingNames:
    """The names of an agent's settings in messages: `RAYDEX_LLM_…`, or an agent's keys in `RAYDEX_AGENTS`."""

    url: str
    key: str
    model: str
    window: str

    @classmethod
    def of(cls, agent: AgentSettings) -> "SettingNames":
        if agent.name == "llm":
            return cls("RAYDEX_LLM_URL", "RAYDEX_LLM_KEY", "RAYDEX_LLM_MODEL", "RAYDEX_LLM_CONTEXT_WINDOW=")
        where = f"of {agent.name!r} in RAYDEX_AGENTS"
        return cls(f"base_url {where}", f"api_key {where}", f"model {where}", f"context_window {where} to ")


def check_agent(agent: AgentSettings) -> Iterator[Finding]:
    """Check the endpoint of an agent step by step, up to the first failure."""
    names = SettingNames.of(agent)
    try:
        server: Server | None = look_at(agent.base_url, agent.api_key)
    except NoAnswer as error:
        if error.status not in (404, 405, 501):  # a server may list no models and still answer
            yield failed(str(error), _remedy_for_list(error, names))
            return
        server = None
        yield warning(f"{agent.model}: {error}, so its models are unknown", f"{names.url} usually ends with /v1")
    if server is not None:
        listed = _check_list(agent, server, names)
        yield listed
        if listed.state == "failed":
            return
    for finding in _check_answer(agent, server, names):
        yield finding
        if finding.state == "failed":
            return
    if server is not None:
        yield _check_context(agent, names)


def _check_list(agent: AgentSettings, server: Server, names: SettingNames) -> Finding:
    has = f"{server.shown} has {_names([model.name for model in server.models])}"
    if server.base_url != agent.base_url.rstrip("/"):
        return failed(
            f"{agent.base_url} is not an API, but {server.base_url} is", f"set {names.url} to {server.base_url}"
        )
    if server.find(agent.model):
        return fine(f"{has}; {agent.model} is set")
    if server.ollama:
        return failed(
            f"{has}, not {agent.model!r}", f"`ollama pull {agent.model}`, or set {names.model} to one of these"
        )
    return warning(
        f"{has}, not {agent.model!r}, the configured model", f"if answers fail, set {names.model} to one of these"
    )


def _check_answer(agent: AgentSettings, server: Server | None, names: SettingNames) -> Iterator[Finding]:
    """Request a short answer, then another one after a prompt long enough to measure the reading speed."""
    patient = {"retries": 0, "first_token_s": min(FIRST_TOKEN_S, agent.first_token_s), "temperature": agent.temperature}
    try:
        llm = make_llm(agent.model_copy(update=patient))
        answer = asyncio.run(_ask(llm, "Reply with one short sentence: what is documentation for?"))
        yield _describe_answer(agent, answer)
        long = asyncio.run(
            _ask(llm, f"{_fresh_text()}\n\nName five of these words, then say in a sentence what a lake is.")
        )
    except (LLMFailed, errors.KeyUnusable, TokenizerNotFound) as error:
        yield failed(str(error), _remedy_for_answer(error, names, agent, server))
        return
    yield _describe_speed(llm)
    if long.thinks:
        return
    if long.deltas < 2:
        yield warning("an answer comes in one piece", "check for a buffering proxy: readers wait for the whole answer")
    else:
        yield fine(f"answers are streamed ({counted(long.deltas, 'delta')})")


@dataclass(slots=True)
class _Answer:
    text: str = ""
    deltas: int = 0
    first_s: float = 0.0
    thinks: bool = False  # thoughts used up its few tokens


async def _ask(llm: LLM, prompt: str) -> _Answer:
    """Stream one answer. Raises LLMFailed."""
    answer, began = _Answer(), time.monotonic()
    try:
        async for item in llm.stream([Message("user", prompt)], max_tokens=ANSWER_TOKENS):
            if not isinstance(item, Completion):
                answer.first_s = answer.first_s or time.monotonic() - began
                answer.text, answer.deltas = answer.text + item, answer.deltas + 1
    except errors.LLMEmpty as error:
        answer.thinks = "used up" in str(error)
        if not answer.thinks:
            raise
    finally:
        await llm.close()
    return answer


def _describe_answer(agent: AgentSettings, answer: _Answer) -> Finding:
    if not answer.thinks:
        return fine(f"{agent.model} answers after {answer.first_s:.1f} s: {_shorten(answer.text)!r}")
    said = (
        f"{agent.model} thinks first: no answer in {counted(ANSWER_TOKENS, 'token')}; its limit is {agent.max_tokens:,}"
    )
    if agent.max_tokens > LLMSettings().max_tokens:
        return fine(said)
    return warning(said, 'leave room for thinking: "max_tokens": 8000 in RAYDEX_AGENTS, or a model that does not think')


def _fresh_text() -> str:
    """Return about 600 random tokens that no server has read before, so that none come from a cache."""
    chosen = random.SystemRandom()
    return " ".join(f"{chosen.choice(WORDS.split())} {chosen.randrange(100, 1_000)}" for _ in range(150))


def _describe_speed(llm: LLM) -> Finding:
    """Return the tokens per second, and the time that a question takes with them."""
    reading, writing = llm.pace.reading.per_second, llm.pace.writing.per_second
    if not reading or not writing:
        return fine("speed: can't be measured from this answer")
    seconds = USUAL_PROMPT / reading + USUAL_ANSWER / writing
    said = (
        f"reads {reading:,.0f} and writes {counted(round(writing), 'token')} a second: a typical question takes "
        f"{seconds:,.0f} s"
    )
    if seconds > 60:
        return warning(said, "a smaller model, or one on a GPU, is faster; docs/llms.md has settings for slow models")
    return fine(said)


def _check_context(agent: AgentSettings, names: SettingNames) -> Finding:
    """Compare the assumed context with the server's, which an Ollama knows now that the model is loaded."""
    try:
        server = look_at(agent.base_url, agent.api_key)
    except NoAnswer as error:
        return warning(f"context: {error}")
    model = server.find(agent.model) or (server.models[0] if len(server.models) == 1 else None)
    tokens = context_of(server, model) if model else 0
    if not tokens:
        return fine(
            f"context: {counted(agent.context_window, 'token is', 'tokens are')} assumed, the server does not say"
        )
    if tokens >= agent.context_window:
        return fine(
            f"context: {counted(agent.context_window, 'token is', 'tokens are')} used; the server's context is "
            f"{tokens:,}"
        )
    does = "silently cuts longer prompts" if server.ollama else "refuses longer prompts"
    if agent.name == "llm" and agent.context_window == LLMSettings().context_window:
        return warning(
            f"context: the server holds {counted(tokens, 'token')} and {does}; `raydex serve` takes that, other "
            f"commands assume {agent.context_window:,}",
            f"set {names.window}{tokens}",
        )
    larger = "`OLLAMA_CONTEXT_LENGTH=16384 ollama serve`" if server.ollama else "the server with a larger context"
    return failed(
        f"context: {counted(agent.context_window, 'token is', 'tokens are')} set, but the server holds {tokens:,} "
        f"and {does}",
        f"set {names.window}{tokens}, or start {larger}",
    )


def _remedy_for_list(error: NoAnswer, names: SettingNames) -> str:
    if error.status in (401, 403):
        return f"set {names.key} to a key of this server"
    if "nothing listens" in str(error):
        return f"start the server, or correct {names.url}"
    return f"correct {names.url}: it is the URL up to /chat/completions, and usually ends with /v1"


def _remedy_for_answer(error: Exception, names: SettingNames, agent: AgentSettings, server: Server | None) -> str:
    has = _names([model.name for model in server.models]) if server else ""
    remedies: dict[type[Exception], str] = {
        errors.LLMKeyRefused: f"set {names.key} to a key of this server",
        errors.KeyUnusable: f"copy the key into {names.key} again",
        errors.ContextTooLong: f"set {names.window}4096, or to the server's context",
        errors.LLMBusy: "look at the server's load, or at the quota of the key",
        errors.LLMTimeout: "check whether the server is busy or still loads the model; a smaller model begins sooner",
        errors.LLMUnreachable: f"start the server, or correct {names.url}",
        errors.LLMEmpty: "the server's log says why",
        TokenizerNotFound: "correct its tokenizer, or leave it out",
    }
    otherwise = f"set {names.model} to one that the server has: {has}"
    if not has:
        otherwise = f"correct {names.url}, which usually ends with /v1, or {names.model}"
    elif server and server.find(agent.model):
        otherwise = remedies[errors.LLMEmpty]
    return next((remedy for kind, remedy in remedies.items() if isinstance(error, kind)), otherwise)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (", ".join(names[:MOST_NAMED]) or "no model") + more


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"
