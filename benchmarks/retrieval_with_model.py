"""Measures the effect of a language model on retrieval: further queries, a hypothetical passage, follow-ups.

    RAYDEX_HOME=DIR python benchmarks/retrieval_with_model.py queries hyde --url http://127.0.0.1:8095/v1 \\
        --model qwen --questions eval-dev.jsonl --replies replies.jsonl [--sample 300] [--limit 50] [--at-once 2]
    RAYDEX_HOME=DIR python benchmarks/retrieval_with_model.py follow-ups …

Requires a collection `raydocs` of the Ray documentation. Each variant is compared with retrieval without a model on the
same questions. Every reply is stored in `--replies` with its tokens and seconds, so a stopped run can resume and a
second run calls no model. A question whose call failed is left out and repeated by the next run. `--offline` makes no
calls at all.
"""

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines import embedded
from pipelines.answering.conversation.followup import complete
from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_retriever
from pipelines.answering.question import EngineSettings
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.settings import AnswerSettings
from pipelines.evaluation.dataset import Example, read_dataset, sample
from pipelines.evaluation.metrics import HitSources, retrieval_score
from pipelines.evaluation.statistics import paired_test
from pipelines.llm import LLM, ChatModel, Completion, LLMFailed, LLMSettings
from pipelines.records import Message, Usage, digest
from pipelines.store import Store

DATA = Path(os.environ.get("RAYDEX_DATA", Path(__file__).parents[2] / "shared" / "data"))
FOLLOW_UPS = Path(__file__).parent / "questions" / "followups.jsonl"
KS = (1, 3, 5, 9)
PATIENCE_S = 100_000.0  # of a call: they wait for each other, and even a late reply is worth its tokens
SLOW = (60, 10)  # tokens read and written a second by the 1.5b on two idle cores


class Replies:
    """One model's stored replies, and their cost."""

    def __init__(self, llm: ChatModel | None, name: str, path: Path, at_once: int) -> None:
        self.llm, self.name, self._path = llm, name, path
        self._free = asyncio.Semaphore(at_once)
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self._known = {row["asked"]: row for row in rows}

    async def reply(self, messages: Sequence[Message], max_tokens: int) -> dict[str, Any]:
        """Return the stored row, else the model's reply. Raises LLMFailed."""
        key = digest(self.name, str(max_tokens), *(part for m in messages for part in (m.role, m.content)))
        if key not in self._known:
            if self.llm is None:
                raise LLMFailed("not asked yet")
            async with self._free:
                began = time.perf_counter()
                completion = await self.llm.complete(messages, max_tokens=max_tokens)
            usage = completion.usage
            self._known[key] = {
                "asked": key, "said": completion.text, "why": completion.finish_reason, "read": usage.prompt_tokens,
                "written": usage.completion_tokens, "seconds": round(time.perf_counter() - began, 2),
            }  # fmt: skip
            with self._path.open("a") as file:
                file.write(json.dumps(self._known[key]) + "\n")
        return self._known[key]


@dataclass
class RecordedModel:
    """A ChatModel for one question: stored replies, their sums, and whether a call failed."""

    replies: Replies
    model: str = "recorded"
    context_window: int = 8192
    context_share: float = 0.5
    max_tokens: int = 256
    rows: list[dict[str, Any]] = field(default_factory=list)
    lost: bool = False

    def count(self, text: str) -> int:
        return LLM_COUNT(text)

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        try:
            row = await self.replies.reply(messages, max_tokens or self.max_tokens)
        except LLMFailed:
            self.lost = True
            raise
        self.rows.append(row)
        return Completion(row["said"], Usage(row["read"], row["written"], 1), row["why"])

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncGenerator[str | Completion, None]:
        raise NotImplementedError


LLM_COUNT = LLM("count", base_url="http://127.0.0.1:1").count


@dataclass(frozen=True)
class Asked:
    """A question and the turns before it."""

    example: Example
    before: str = ""


Way = Callable[[Asked, RecordedModel], Awaitable[list[float]]]


def scores(asked: Asked, hits: Sequence[Any]) -> list[float]:
    return [retrieval_score(asked.example, HitSources.of(hits), k) for k in KS]


class Bench:
    """The search methods, each a function from a question and its model to scores at KS."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self.ways: dict[str, Way] = {
            "queries": self._rewritten(num_queries=3),
            "hyde": self._rewritten(hyde=True),
        }

    async def _search(self, question: str, **steps: Any) -> Sequence[Any]:
        settings = EngineSettings(k=max(KS), depth=10)
        return (await QueryEngine(self._retriever, settings=settings, **steps).asearch(question)).hits

    def _rewritten(self, **options: Any) -> Way:
        async def way(asked: Asked, model: RecordedModel) -> list[float]:
            rewriter = Rewriter(model, timeout_s=PATIENCE_S, **options)
            return scores(asked, await self._search(asked.example.question, rewriter=rewriter))

        return way

    async def alone(self, asked: Asked, model: RecordedModel) -> list[float]:
        return scores(asked, await self._search(asked.example.question))

    async def by_rules(self, asked: Asked, model: RecordedModel) -> list[float]:
        return scores(asked, await self._search(complete(asked.example.question, [asked.before]).question))

    async def condensed(self, asked: Asked, model: RecordedModel) -> list[float]:
        history = await self._history(asked)
        rewrite = await Rewriter(model, timeout_s=PATIENCE_S).condense(asked.example.question, history)
        if rewrite.failed:
            return await self.by_rules(asked, model)
        return scores(asked, await self._search(rewrite.question))

    async def by_engine(self, asked: Asked, model: RecordedModel) -> list[float]:
        engine = QueryEngine(self._retriever, rewriter=Rewriter(model, timeout_s=PATIENCE_S))
        history = tuple(await self._history(asked))
        answer = await engine.aquery(asked.example.question, mode="no_text", history=history, k=max(KS))
        return scores(asked, answer.hits)

    async def _history(self, asked: Asked) -> list[Message]:
        answer = await QueryEngine(self._retriever).aquery(asked.before)
        return [Message("user", asked.before), Message("assistant", answer.text)]


def follow_ups() -> list[Asked]:
    rows = [json.loads(line) for line in FOLLOW_UPS.read_text().splitlines()]
    return [Asked(Example(row["question"], (row["source"],)), row["before"]) for row in rows]


async def run(way: Way, questions: Sequence[Asked], replies: Replies, say: Callable[[str], None]) -> list[Any]:
    """Return each question's scores and the rows of its calls, or None if a call failed."""
    done = 0

    async def one(asked: Asked) -> Any:
        nonlocal done
        model = RecordedModel(replies)
        found = await way(asked, model)
        done += 1
        if done % 10 == 0 and replies.llm:
            say(f"{done} of {len(questions)}")
        return None if model.lost else (found, model.rows)

    return await asyncio.gather(*map(one, questions))


def line(name: str, base: Sequence[Any], found: Sequence[Any]) -> str:
    """Return a row of the table: n, scores, paired differences, calls, tokens, seconds."""
    both = [(b, f) for b, f in zip(base, found, strict=True) if b and f]
    cells = [name, str(len(both))]
    if not both:
        return "| " + " | ".join(cells) + " |"
    for at, _ in enumerate(KS):
        cells.append(f"{sum(f[0][at] for _, f in both) / len(both):.3f}")
    for at, k in enumerate(KS):
        if k in (1, 5, 9):
            test = paired_test([f[0][at] for _, f in both], [b[0][at] for b, _ in both])
            cells.append(f"{test.difference:+.3f} [{test.low:+.3f}, {test.high:+.3f}]")
    rows = [row for _, f in both for row in f[1]]
    read, written = (sum(row[key] for row in rows) / len(both) for key in ("read", "written"))
    cells += [f"{len(rows) / len(both):.1f}", f"{read:.0f}", f"{written:.0f}"]
    cells += [f"{read / SLOW[0] + written / SLOW[1]:.1f}", f"{sum(row['seconds'] for row in rows) / len(both):.1f}"]
    return "| " + " | ".join(cells) + " |"


async def measure(args: argparse.Namespace, bench: Bench) -> None:
    llm = None if args.offline else LLM(args.model, base_url=args.url, api_key="none", settings=LLMSettings(
        first_token_s=PATIENCE_S, between_tokens_s=PATIENCE_S, retries=0))  # fmt: skip
    replies = Replies(llm, args.label or args.model, args.replies, args.at_once)
    follow = args.variants == ["follow-ups"]
    questions = follow_ups() if follow else [Asked(e) for e in examples(args)]
    ways: dict[str, Way] = bench.ways
    base: Way = bench.alone
    names = args.variants
    if follow:
        ways = {"as asked": bench.alone, "model": bench.condensed, "rules, else model": bench.by_engine}
        base, names = bench.by_rules, list(ways)
    before = await run(base, questions, replies, print)
    print("| variant | n | @1 | @3 | @5 | @9 | diff @1 | diff @5 | diff @9 | calls | read | written | s at 60/10 | s |")
    print(line("rules" if follow else "no model", before, before))
    found = await asyncio.gather(*(run(ways[name], questions, replies, print) for name in names))
    for name, one in zip(names, found, strict=True):
        print(line(name, before, one), flush=True)


def examples(args: argparse.Namespace) -> list[Example]:
    path = args.questions if args.questions.exists() else DATA / args.questions
    found = read_dataset(path)
    found = sample(found, args.sample, seed=args.seed) if args.sample else found
    random.Random(args.seed).shuffle(found)  # so that even a stopped run covers a random sample
    return found[: args.limit] if args.limit else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--url", default="http://127.0.0.1:8095/v1")
    parser.add_argument("--model", default="qwen")
    parser.add_argument("--label", help="the model's name in --replies")
    parser.add_argument("--collection", default="raydocs")
    parser.add_argument("--questions", type=Path, default=Path("eval-dev.jsonl"))
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--offline", action="store_true")
    args = parser.parse_args()
    home = Path(os.environ["RAYDEX_HOME"])
    settings = AnswerSettings(home=home, collection=args.collection)
    with embedded.run_postgres(home) as url, Store(url) as store:
        retriever = make_retriever(settings, store)
        retriever.prepare()
        asyncio.run(measure(args, Bench(retriever)))
        retriever.close()


if __name__ == "__main__":
    main()
