"""Asks a capable model, whose completions people write, the questions in questions/readers.jsonl.

    RAYDEX_HOME=DIR python -m benchmarks.readers_by_hand SITE [SITE …] --prompts FOLDER
    RAYDEX_HOME=DIR python -m benchmarks.readers_by_hand SITE [SITE …] --completions FOLDER --sheets FOLDER

The first command writes each question's prompt, as a model with the form `full` gets it, to SITE-N.txt, and prints how
many prompts contain a right section. The second command answers each prompt with FOLDER/SITE-N.txt, and writes the
answers as readers see them (readers_sheets.py). Rules complete follow-ups instead of the model.
"""

import argparse
import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.readers import QUESTIONS, ask, is_page, plain_heading
from benchmarks.readers_sheets import write_sheets
from pipelines import embedded
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.settings import AgentSettings, AnswerSettings
from pipelines.page.stored import plain_text
from pipelines.records import FULL, Answer, Hit
from pipelines.store import Store
from tests.kit.scripted_llm import Reply, Request, ScriptedLLM

WINDOW, SHARE = 32_768, 0.75  # tokens, the minimum for capable models, and the share for passages
UNANSWERED = "I do not know."  # if nobody wrote a completion
WHOLE = 0.9  # minimum share of a chunk's lines in a prompt that contains it
KINDS = ("whole", "part", "page", "neither", "no prompt")


class Player:
    """Replies to the prompts of one question after another, and records them."""

    def __init__(self, completions: Path | None) -> None:
        self._completions, self.name = completions, ""
        self.prompts: dict[str, str] = {}

    def reply(self, request: Request) -> Reply:
        """Return the completion of the current question, and refuse to rewrite questions."""
        if not request.stream:
            return Reply(status=400, error="only answers are written by hand")
        self.prompts[self.name] = "\n\n".join(f"##### {m['role'].upper()}\n{m['content']}" for m in request.messages)
        path = self._completions / f"{self.name}.txt" if self._completions else None
        return Reply(text=path.read_text().strip() if path and path.exists() else UNANSWERED)


def settings_of(site: str, home: Path, url: str) -> AnswerSettings:
    """Return settings with one capable agent at `url`."""
    agent = AgentSettings(
        name="capable",
        model="capable",
        base_url=url,
        form=FULL,
        context_window=WINDOW,
        context_share=SHARE,
        context_seconds=0,
        max_tokens=2048,
    )
    return AnswerSettings(home=home, collection=site, agents=[agent])


def held(row: Mapping[str, Any], prompt: str, chunks: Sequence[Hit]) -> str:
    """Return how much of the right sections in `chunks` a prompt contains: "whole", "part", "page" or "neither"."""
    words = f"{_words(prompt)} {_words(plain_text(prompt))}"
    sections: dict[tuple[str, ...], list[float]] = {}
    for hit in chunks:
        own = {plain_heading(one["heading"]) for one in row["answers"] if is_page(one["path"], hit.url)}
        if own & {"", plain_heading(hit.headings[-1] if hit.headings else "")}:
            sections.setdefault((hit.url, *hit.headings), []).append(_share(hit, words))
    if any(min(shares) >= WHOLE for shares in sections.values()):
        return "whole"
    if any(max(shares) >= WHOLE for shares in sections.values()):
        return "part"
    right = (hit for hit in chunks if any(is_page(one["path"], hit.url) for one in row["answers"]))
    return "page" if any(_share(hit, words) >= WHOLE for hit in right) else "neither"


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _share(hit: Hit, words: str) -> float:
    """Return the share of a chunk's lines that a text contains."""
    lines = [line for line in map(_words, plain_text(hit.text).split("\n")) if line]
    return sum(line in words for line in lines) / len(lines) if lines else 1.0


def report(site: str, rows: Sequence[Mapping[str, Any]], prompts: Mapping[str, str], chunks: Sequence[Hit]) -> str:
    """Return a site's line: how many prompts contain a right section, of the questions that have one."""
    found: Counter[str] = Counter()
    for n, row in enumerate(rows, 1):
        if row["answers"]:
            name = f"{site}-{n}"
            kind = held(row, prompts[name], chunks) if name in prompts else "no prompt"
            found[kind] += 1
            if kind != "whole":
                print(f"  {name}: {kind}")
    return f"{site:12} {sum(found.values()):9} " + "   ".join(f"{kind} {found[kind]}" for kind in KINDS)


async def ask_all(engine: QueryEngine, site: str, rows: Sequence[Mapping[str, Any]], player: Player) -> list[Answer]:
    """Return the answers to a site's questions, asked one after another."""
    answers: list[Answer] = []
    for n, row in enumerate(rows, 1):
        player.name = f"{site}-{n}"
        answers += await ask(engine, [row])
    return answers


def ask_site(
    site: str, rows: Sequence[Mapping[str, Any]], store: Store, home: Path, completions: Path | None
) -> tuple[list[Answer], dict[str, str]]:
    """Return the answers to a site's questions, and the prompts sent."""
    player = Player(completions)
    with ScriptedLLM(default=player.reply) as llm:
        settings = settings_of(site, home, llm.url)
        with closing(make_retriever(settings, store)) as retriever:
            engine = make_engine(settings, retriever, store=store)
            return asyncio.run(ask_all(engine, site, rows, player)), player.prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sites", nargs="+", metavar="SITE")
    parser.add_argument("--prompts", type=Path, metavar="FOLDER", help="write the prompts there")
    parser.add_argument("--completions", type=Path, metavar="FOLDER", help="where the completions are")
    parser.add_argument("--sheets", type=Path, metavar="FOLDER", help="write what readers see there")
    args = parser.parse_args()
    rows = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    home = Path(os.environ["RAYDEX_HOME"])
    print(f"{'site':12} questions")
    with embedded.run_postgres(home) as url, Store(url) as store:
        for site in args.sites:
            about = [row for row in rows if row["site"] == site]
            answers, prompts = ask_site(site, about, store, home, args.completions)
            if args.prompts:
                args.prompts.mkdir(parents=True, exist_ok=True)
                for name, prompt in prompts.items():
                    (args.prompts / f"{name}.txt").write_text(prompt + "\n")
                with store.scan_chunks(answers[0].index) as (_, chunks):
                    print(report(site, about, prompts, list(chunks)), flush=True)
            if args.sheets:
                write_sheets(args.sheets, FULL, site, about, answers)


if __name__ == "__main__":
    main()
