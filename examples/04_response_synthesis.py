"""LlamaIndex's "response synthesis from scratch": refine, tree, async, and a custom synthesizer.

    .venv/bin/python examples/04_response_synthesis.py

It needs no retriever and no store: a synthesizer makes an answer from any passages, here the first sections of
docs/freshness.md. With OPENAI_BASE_URL (and OPENAI_MODEL, OPENAI_API_KEY) a model writes; without it, a stand-in
repeats the beginning of its prompts.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from pipelines.answering import Synthesizer, Task, make_synthesizer
from pipelines.indexing import read_page
from pipelines.llm import LLM, ChatModel, Completion, LLMSession
from pipelines.page import section_text
from pipelines.records import Message, Page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "freshness.md"
QUESTION = "What does a second run do?"
MODES = ("compact", "refine", "tree_summarize", "accumulate")


class StandIn:
    """Repeats the beginning of its prompt. Any object with these names works as a language model."""

    model, context_window, context_share, max_tokens = "stand-in", 4000, 0.5, 200

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: list[Message], **_: Any) -> Completion:
        return Completion(" ".join(messages[-1].content.split()[:12]))

    async def stream(self, messages: list[Message], **_: Any) -> AsyncGenerator[str | Completion, None]:
        reply = await self.complete(messages)
        yield reply.text
        yield reply


class Bullets(Synthesizer):
    """A custom synthesizer: one call per passage, each answer a bullet point."""

    async def stream(self, task: Task, session: LLMSession) -> AsyncGenerator[str, None]:
        """Yield a line for each passage."""
        for hit in task.hits:
            said = await session.complete(f"In one sentence: {task.question}\n\n{hit.passage}")
            yield f"- {said}\n"


def choose_model() -> ChatModel:
    """Return the model named in the environment, else the stand-in."""
    url, name = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    return LLM(name, base_url=url, api_key=os.environ.get("OPENAI_API_KEY", "")) if url else StandIn()


async def answer_at_once(llm: ChatModel, texts: list[str]) -> list[str]:
    """Return the answers of all modes, which run concurrently."""
    return await asyncio.gather(*(make_synthesizer(mode, llm=llm).asynthesize(QUESTION, texts) for mode in MODES))


def main() -> None:
    """Print an answer of each kind."""
    document = read_page(Page(PAGE.as_uri(), PAGE.read_bytes(), "text/markdown"))
    texts = [section_text(section) for section in document.sections[:4]]
    llm = choose_model()
    print("refine:", make_synthesizer("refine", llm=llm).synthesize(QUESTION, texts), sep="\n")
    print("tree:", make_synthesizer("tree_summarize", num_children=2, llm=llm).synthesize(QUESTION, texts), sep="\n")
    for mode, text in zip(MODES, asyncio.run(answer_at_once(llm, texts)), strict=True):
        print(f"{mode}, asynchronously:", text, sep="\n")
    print("own:", Bullets().synthesize(QUESTION, texts, llm=llm), sep="\n")


if __name__ == "__main__":
    main()
