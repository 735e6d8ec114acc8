"""Computes an evaluation's fingerprint from everything that determines its rows.

That is the questions, the index, the configuration, its models and the code. Reads files of local models and of this
package; knows no database and no engine.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import pipelines
from pipelines.answering.settings import AnswerSettings, flatten
from pipelines.evaluation.dataset import Example, dataset_fingerprint
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.files.shared_files import state_of
from pipelines.records import Index, digest

# Settings that affect where and how fast answers are made, not the answers.
ELSEWHERE = ("home", "collection", "retrieval.patience_s", "embedding.threads")
# Files whose change may change an answer or its scores.
CODE = (
    "*.py", "records/*.py", "text/*.py", "lexical/*.py", "llm/*.py", "llm/*.yaml", "embedding/**/*.py",
    "answering/**/*.py", "answering/**/*.yaml", "store/chunks.py", "store/indexes.py", "store/search.sql",
    "evaluation/evaluator.py", "evaluation/metrics.py", "evaluation/answer_scores.py",
)  # fmt: skip
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # nodes that may have a docstring


def evaluation_fingerprint(
    examples: Sequence[Example],
    plan: EvaluationPlan,
    index: Index,
    settings: AnswerSettings,
    judge: str = "",
    verified: str = "",
) -> str:
    """Return the name under which rows are stored.

    `judge` identifies the judge by its model and prompts. `verified` identifies the verified answers in use.
    """
    decides = {
        "dataset": dataset_fingerprint(examples),
        "collection": plan.collection,
        "index": [index.id, index.revision, *([index.rules] if any(index.rules.values()) else [])],
        "hits": max(plan.ks),
        "answers": [plan.answers, plan.component],
        "judge": judge,
        **({"verified": verified} if verified else {}),
        "configuration": public_settings(settings),
        "models": {name: _file_states(path) for name, path in _local_models(settings)},
        "code": code_digest(),
    }
    return digest(json.dumps(decides, sort_keys=True))


def public_settings(settings: AnswerSettings) -> dict[str, Any]:
    """Return settings as data, without API keys and without settings that change no answer."""
    values = _without_keys(flatten(settings.model_dump(mode="json"), AnswerSettings))
    return {name: value for name, value in values.items() if name not in ELSEWHERE}


@cache
def code_digest() -> str:
    """Return the digest of the code that may change an answer; computed once, as parsing it takes two seconds."""
    return digest(*(meaning_of(path.suffix, path.read_text("utf-8")) for path in code_files()))


def code_files() -> list[Path]:
    """Return the files that match CODE."""
    folder = Path(pipelines.__path__[0])
    return sorted({path for pattern in CODE for path in folder.glob(pattern)})


def meaning_of(suffix: str, text: str) -> str:
    """Return the text of a Python, YAML or SQL file without the parts that change no answer.

    Those are comments, docstrings and layout. The result is the same on every version of Python.
    """
    match suffix:
        case ".py":
            return json.dumps(_nested(ast.parse(text)))
        case ".yaml":
            return repr(yaml.safe_load(text))
        case ".sql":
            return re.sub(r"^--(?! name: ).*\n", "", text, flags=re.MULTILINE)
    return text


def _nested(node: Any) -> Any:
    """Return a syntax tree as lists, without positions, docstrings and empty fields.

    `ast.dump` and `ast.unparse` differ between versions of Python. Python 3.12 also adds empty text to some f-strings,
    which is left out here.
    """
    if isinstance(node, list):
        return [_nested(one) for one in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    if isinstance(node, ast.JoinedStr):
        fields["values"] = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
    kept = {name: value for name, value in fields.items() if value is not None and value != []}
    return [type(node).__name__, *([name, _nested(value)] for name, value in kept.items())]


def _without_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_keys(inner) for name, inner in value.items() if not name.endswith(("_key", ".key"))}
    return [_without_keys(inner) for inner in value] if isinstance(value, list) else value


def _local_models(settings: AnswerSettings) -> Iterator[tuple[str, Path]]:
    """Yield the settings that name a local file or folder, because a model at that path may be retrained."""
    for name, value in public_settings(settings).items():
        if isinstance(value, str) and value not in ("", ".") and Path(value).exists():
            yield name, Path(value)


def _file_states(path: Path) -> list[list[Any]]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    states = [(file, state) for file in files if (state := state_of(file))]
    return [[str(file.relative_to(path)), state.st_size, state.st_mtime_ns] for file, state in states]
