"""Measures answers to questions in readers' own words, on documentation that nothing was tuned on.

    RAYDEX_HOME=DIR python -m benchmarks.readers SITE [SITE …] [--answers FILE] [--sheets FOLDER]

Asks the questions in questions/readers.jsonl about each SITE, whose documentation is in a collection of that name
(docs/evaluation.md lists the repositories). Prints how often a right section is the first hit, among five and among
nine, how often the answer shows one, and how many unanswerable questions are refused. People judge the quality of
answers: `--answers` writes them as JSON, `--sheets` as readers see them, with the labels in a separate file
(readers_sheets.py).
"""

import argparse
import asyncio
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from benchmarks.readers_sheets import write_sheets
from pipelines import embedded
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.question import Question
from pipelines.answering.settings import AnswerSettings
from pipelines.records import QUOTED, Answer, Message
from pipelines.store import Store

QUESTIONS = Path(__file__).parent / "questions" / "readers.jsonl"
WITHIN = (1, 5, 9)
FRONT = {"index", "_index", "readme"}  # files for the page of their folder
SUFFIX = re.compile(r"\.(?:html?|mdx?|qmd|rst|adoc|ipynb|txt)$")
MARKUP = re.compile(r"\s*\{ ?[#.:][^{}]*\}\s*$|\]\([^()\s]*\)")  # of a heading's source, unseen by readers


def parts_of(path: str) -> list[str]:
    """Return a page's folders and name in lower case without suffix, from its file or URL."""
    parts = [part for part in SUFFIX.sub("", unquote(path).lower()).split("/") if part]
    return parts[:-1] if parts and parts[-1] in FRONT else parts


def plain_heading(heading: str) -> str:
    """Return a heading's letters and digits as readers see them, without its id and link targets."""
    return "".join(re.findall(r"\w+", MARKUP.sub("", heading).lower()))


def is_right(answers: Sequence[Mapping[str, str]], url: str, headings: Sequence[str]) -> bool:
    """Return whether a section or one of its parents is a right one. "" as a heading means its page."""
    names = {"", *map(plain_heading, headings)}
    return any(is_page(answer["path"], url) and plain_heading(answer["heading"]) in names for answer in answers)


def is_page(file: str, url: str) -> bool:
    """Return whether a file may be published at a URL: the names are equal, and the folders may differ."""
    page, parts = parts_of(urlsplit(url).path), parts_of(file)
    if not page:
        return PurePosixPath(file).stem.lower() in FRONT
    return parts[-1:] == page[-1:]


def place_of(row: Mapping[str, Any], answer: Answer) -> int:
    """Return the position of the first hit in a right section, from 1, or 0 if there is none."""
    places = (n for n, hit in enumerate(answer.hits, 1) if is_right(row["answers"], hit.url, hit.headings))
    return next(places, 0)


def shows(row: Mapping[str, Any], answer: Answer) -> bool:
    """Return whether an answer cites a right section."""
    return any(is_right(row["answers"], cited.source, cited.headings) for cited in answer.citations)


async def ask(engine: QueryEngine, rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Return the answers to questions about one site in order."""
    return [
        await engine.aquery(Question(row["question"], collection=row["site"], history=_history(row))) for row in rows
    ]


def _history(row: Mapping[str, Any]) -> tuple[Message, ...]:
    return (Message("user", row["before"]),) if row.get("before") else ()


def report(site: str, rows: Sequence[Mapping[str, Any]], answers: Sequence[Answer]) -> str:
    """Return a site's line."""
    asked = [(row, answer) for row, answer in zip(rows, answers, strict=True) if row["answers"]]
    others = [answer for row, answer in zip(rows, answers, strict=True) if not row["answers"]]
    places = [place_of(row, answer) for row, answer in asked]
    cells = [f"{sum(0 < place <= most for place in places) / len(asked):.2f}" for most in WITHIN]
    shown = sum(shows(row, answer) for row, answer in asked) / len(asked)
    refused = f"{sum(not answer.known for answer in others)} of {len(others)}"
    return f"{site:12} {len(asked):9} {'   '.join(cells)}   {shown:.2f}   {refused}"


@contextmanager
def engine_of(site: str, store: Store, home: Path) -> Iterator[QueryEngine]:
    """Yield an engine without a language model over the collection `site`."""
    settings = AnswerSettings(home=home, collection=site)
    with closing(make_retriever(settings, store)) as retriever:
        yield make_engine(settings, retriever, store=store)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sites", nargs="+", metavar="SITE")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="write questions and answers there")
    parser.add_argument("--sheets", type=Path, metavar="FOLDER", help="write what readers see there, and the labels")
    args = parser.parse_args()
    rows = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    home, written = Path(os.environ["RAYDEX_HOME"]), []
    print(f"{'site':12} questions first  five   nine   shown  refused")
    with embedded.run_postgres(home) as url, Store(url) as store:
        for site in args.sites:
            about = [row for row in rows if row["site"] == site]
            with engine_of(site, store, home) as engine:
                answers = asyncio.run(ask(engine, about))
            print(report(site, about, answers), flush=True)
            if args.sheets:
                write_sheets(args.sheets, QUOTED, site, about, answers)
            written += [row | {"answer": found.to_dict()} for row, found in zip(about, answers, strict=True)]
    if args.answers:
        args.answers.write_text("".join(json.dumps(row) + "\n" for row in written))


if __name__ == "__main__":
    main()
