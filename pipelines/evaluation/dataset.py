"""Reads and writes data sets: questions with their sources, and off-topic questions.

A file with mistakes is rejected as a whole, with the line of each mistake. Knows no metric and no engine.
"""

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast
from urllib.parse import unquote

from pipelines.files.atomic_files import whole_file
from pipelines.records import digest
from pipelines.text.counts import counted

T = TypeVar("T")

NO_QUESTION = "there is no question in it"
JSON_STARTS = ("{", "[")
# Separators of CSV cells: spreadsheets use the one of their locale.
SEPARATORS = ",;\t"
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
# Mistakes that an error lists; any more are only counted.
MOST_NAMED = 20

# A person's review of a row. A draft is waiting for review; only accepted rows are used. Accepted is the default.
ReviewState = Literal["draft", "accepted", "rejected"]
DRAFT: ReviewState = "draft"
ACCEPTED: ReviewState = "accepted"
REJECTED: ReviewState = "rejected"


class BadDataset(ValueError):
    """A data set can't be used; the message names the file, and the line and mistake of each bad row."""

    def __init__(self, path: Path, mistakes: Sequence[tuple[int, str]]) -> None:
        self.mistakes = tuple(mistakes)
        lines = [f"{path}:{line}: {what}" if line else f"{path}: {what}" for line, what in mistakes[:MOST_NAMED]]
        more = len(mistakes) - MOST_NAMED
        super().__init__("\n".join([*lines, *([f"and {counted(more, 'more mistake')}"] if more > 0 else [])]))


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the reference sources (`url#anchor`, or a page's `url`) that answer it, and a reference answer.

    An off-topic question has no source: the right answer is that it is not known. `negatives` are sources that a person
    has marked as wrong. They are used for training, not for scoring.
    """

    question: str
    sources: tuple[str, ...]
    answer: str | None = None
    negatives: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether any source answers it."""
        return bool(self.sources)

    @property
    def pages(self) -> set[str]:
        """The pages of its sources."""
        return set(map(page_of, self.sources))

    @property
    def id(self) -> str:
        """A hash of question, sources and answer, independent of the file."""
        return digest(self.question, *self.sources, json.dumps(self.answer))


def page_of(source: str) -> str:
    """Return the page of a source: `url#anchor` without the anchor."""
    return source.split("#", 1)[0]


def read_dataset(path: Path | str) -> list[Example]:
    """Return the examples of a file, in order.

    Each is an object {"question", "source" or "sources", "answer"?}, one per line or in one JSON array, or a row of a
    CSV. `source` and `sources` take a string or a list. Other keys are ignored, and an empty answer counts as none. An
    off-topic question has `"answerable": false` and no source. Rows with `"review": "draft"` or `"rejected"` are
    skipped. Raises BadDataset, also if the file is missing, is not text, or has no accepted row.
    """
    rows = parse_rows(path, _read_example)
    examples = [example for example in rows if example]
    if not examples:
        none = f"no question of {len(rows)} is accepted: `raydex questions review {path} --accept …` accepts them"
        raise BadDataset(Path(path), [(0, none if rows else NO_QUESTION)])
    return examples


def review_of(row: Any) -> ReviewState:
    """Return the review state of a row. Raises ValueError."""
    state = row.get("review", ACCEPTED) if isinstance(row, Mapping) else ACCEPTED
    if state not in (DRAFT, ACCEPTED, REJECTED):
        raise ValueError(f"review is {str(state)[:60]!r}: it must be draft, accepted or rejected")
    return cast(ReviewState, state)


def count_left_out(paths: Iterable[Path | str]) -> dict[str, int]:
    """Return how many rows of data sets are not used, by review state. Raises BadDataset."""
    states = Counter(review_of(row) for path in paths for row in read_rows(path))
    return {state: states[state] for state in (DRAFT, REJECTED) if states[state]}


def read_rows(path: Path | str) -> list[dict[str, Any]]:
    """Return the objects of a data set with all their keys, unchanged. Raises BadDataset."""
    return parse_rows(path, _read_row)


def read_datasets(paths: Iterable[Path | str]) -> list[Example]:
    """Return the examples of several files in order, without duplicates. Raises BadDataset."""
    return list({example.id: example for path in paths for example in read_dataset(path)}.values())


def read_answerable(path: Path | str) -> list[Example]:
    """Return the examples of a file that have a source. Raises BadDataset, also if none has one."""
    examples = [example for example in read_dataset(path) if example.answerable]
    if not examples:
        raise BadDataset(Path(path), [(0, "every question has answerable false: give questions with a source")])
    return examples


def name_datasets(paths: Iterable[Path]) -> str:
    """Return the display name of a data set in one or more files: "a.jsonl + b.jsonl"."""
    return " + ".join(path.name for path in paths)


def read_questions(path: Path | str) -> list[str]:
    """Return the questions of a file without their sources, in order; empty ones are skipped.

    Accepts JSON or CSV as `read_dataset` does, or one question per line. Raises BadDataset.
    """
    path = Path(path)
    text = _read_text(path)
    has_rows = _is_table(path, text) or text.lstrip()[:1] in JSON_STARTS
    texts = parse_rows(path, _question) if has_rows else text.splitlines()
    questions = [question.strip() for question in texts if question.strip()]
    if not questions:
        raise BadDataset(path, [(0, NO_QUESTION)])
    return questions


def write_dataset(path: Path | str, examples: Sequence[Example]) -> None:
    """Write `examples` as JSONL for `read_dataset`; the file appears complete or not at all."""
    write_rows(path, map(as_row, examples))


def write_rows(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the objects of a data set as JSONL; the file appears complete or not at all. Raises BadDataset."""
    path = Path(path)
    if path.is_file() and _is_table(path, _read_text(path)):
        raise BadDataset(path, [(0, "is a spreadsheet, which JSON lines would replace: give a file of another name")])
    with whole_file(path) as making, making.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def as_row(example: Example) -> dict[str, Any]:
    """Return an example as an object of a data set."""
    answer = {} if example.answer is None else {"answer": example.answer}
    negatives = {"negatives": list(example.negatives)} if example.negatives else {}
    return {"question": example.question, **_source_row(example), **answer, **negatives}


def _source_row(example: Example) -> dict[str, Any]:
    match example.sources:
        case ():
            return {"answerable": False}
        case (source,):
            return {"source": source}
    return {"sources": list(example.sources)}


def dataset_fingerprint(examples: Sequence[Example]) -> str:
    """Return a hash of a data set's content: questions, sources and answers in their order."""
    return digest(*(example.id for example in examples))


def describe_dataset(name: str, examples: Sequence[Example]) -> dict[str, Any]:
    """Return the description of a data set for results: name, number of questions and fingerprint."""
    return {"name": name, "questions": len(examples), "fingerprint": dataset_fingerprint(examples)}


def sample(examples: Sequence[Example], n: int, seed: int = 0) -> list[Example]:
    """Return `n` examples drawn at random with `seed`, in their original order; all of them if there are no more."""
    if n >= len(examples):
        return list(examples)
    return [examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), n))]


def parse_rows(path: Path | str, parse: Callable[[Any], T]) -> list[T]:
    """Return the result of `parse` for each object of a file.

    Raises BadDataset with every ValueError that it raises.
    """
    path = Path(path)
    parsed: list[T] = []
    mistakes: list[tuple[int, str]] = []
    for line, row in _rows(path):
        try:
            parsed.append(parse(_object(row)))
        except ValueError as error:
            mistakes.append((line, str(error)))
    if mistakes:
        raise BadDataset(path, mistakes)
    return parsed


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and JSON of each object.

    Raises BadDataset for a file that is not text, an array or a table.
    """
    text = _read_text(path)
    if _is_table(path, text):
        return _table(text, path)
    if text.lstrip().startswith("["):
        return _elements(text, path)
    lines = enumerate(text.split("\n"), 1)
    return ((number, line) for number, line in lines if line.strip())


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadDataset(
            path,
            [(error.object.count(b"\n", 0, error.start) + 1, "is not UTF-8: save it as that (in Excel: CSV UTF-8)")],
        ) from error
    except OSError as error:
        raise BadDataset(path, [(0, f"can't be read ({error.strerror}): give a file of questions")]) from error


def _object(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at character {error.colno}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _elements(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the elements of a JSON array, decoded one by one because the decoder does not report their lines."""
    decoder, place, line, counted = json.JSONDecoder(), text.index("[") + 1, 1, 0
    try:
        elements = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadDataset(path, [(error.lineno, f"is not JSON: {error.msg}")]) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets thousands deep
        raise BadDataset(path, [(0, f"can't be read: {error}")]) from error
    for _ in elements:
        while text[place] in " \t\r\n,":
            place += 1
        line, counted = line + text.count("\n", counted, place), place
        begin, (_, place) = place, decoder.raw_decode(text, place)
        yield line, text[begin:place]


def _is_table(path: Path, text: str) -> bool:
    """Return whether a file is CSV. Content that looks like JSON is read as JSON, whatever the file name."""
    return path.suffix.lower() == ".csv" and text.lstrip()[:1] not in JSON_STARTS


def _table(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the rows of a CSV that have a question, with their non-empty cells. Raises BadDataset."""
    head = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(SEPARATORS, key=head.count))
    try:
        reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
        if "question" not in reader.fieldnames:
            raise BadDataset(path, [(1, "has no column question: name it in the first line")])
        for row in reader:
            cells = {name: _cell(name, cell) for name, cell in row.items() if name and cell and cell.strip()}
            if "question" in cells:
                yield reader.line_num, json.dumps(cells)
    except csv.Error as error:
        raise BadDataset(path, [(reader.line_num, f"is no CSV: {error}")]) from error


def _cell(column: str, text: str) -> Any:
    """Return the value of a cell: sources are separated by blanks; true and false are booleans."""
    if column in ("sources", "negatives"):
        return text.split()
    return TRUTHS.get(text.strip().lower(), text) if column in ("answerable", "target") else text


def _read_example(row: Any) -> Example | None:
    """Return the example of an object, None for one that is not accepted."""
    if review_of(row) != ACCEPTED:
        return None
    question, answer = _question(row), row.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise ValueError(f"answer is {str(answer)[:60]!r}: it must be a text, or left out")
    reference = answer.strip() or None if answer else None
    return Example(question.strip(), _sources(row), reference, _negatives(row))


def _read_row(row: Any) -> dict[str, Any]:
    _question(row)
    review_of(row)
    return dict(row)


def _question(row: Any) -> str:
    if not isinstance(row, Mapping):
        raise ValueError(f"is {str(row)[:60]!r}, not an object with question and source")
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question is {question!r}: it must be a text")
    return question


def _sources(row: Mapping[str, Any]) -> tuple[str, ...]:
    named = [name for name in ("source", "sources") if row.get(name) is not None]
    if not _is_answerable(row):
        if any(row[name] for name in named):
            raise ValueError(f"has {' and '.join(named)}, and answerable is false: leave one of them out")
        return ()
    if not named:
        raise ValueError(
            'has neither source nor sources: name the page that answers it, or write "answerable": false if none does'
        )
    if len(named) > 1:
        raise ValueError("has source and sources: give one of them")
    value = row[named[0]]
    sources = [value] if isinstance(value, str) else value
    if not sources or not _are_sources(sources):
        raise ValueError(
            f"{named[0]} is {str(value)[:100]!r}: it must name a page, url or url#anchor, or be a list of them"
        )
    return _once(sources)


def _negatives(row: Mapping[str, Any]) -> tuple[str, ...]:
    value = row.get("negatives") or []
    if not _are_sources(value):
        raise ValueError(f"negatives is {str(value)[:100]!r}: it must be a list of sources that are wrong")
    return _once(value)


def _are_sources(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and page_of(one.strip()) for one in value)


def _once(sources: Iterable[str]) -> tuple[str, ...]:
    """Return each source once; for an anchor that a browser has escaped (`#gr%C3%B6sse`), add the unescaped one."""
    written = [source.strip().removesuffix("#").partition("#") for source in sources]
    spelt = (page + mark + text for page, mark, anchor in written for text in (anchor, unquote(anchor)))
    return tuple(dict.fromkeys(spelt))


def _is_answerable(row: Mapping[str, Any]) -> bool:
    value = row.get("answerable", True)
    if not isinstance(value, bool):
        raise ValueError(f"answerable is {value!r}: it must be true or false")
    return value
