"""Computes an evaluation's fingerprint from everything that determines its rows.

That is the questions, the index, the configuration, its models and the code. Reads files of local models and of this
package; knows no database and no engine.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pipelines
from pipelines.answering.settings import AnswerSettings, flatten
from pipelines.evaluation.dataset import Example, dataset_fingerprint
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.files.states import state_of
from pipelines.records import Index, digest

# Settings that affect where and how fast answers are made, not the answers.
ELSEWHERE = ("home", "collection", "retrieval.patience_s", "embedding.threads")
# Files whose change may change an answer or its scores.
CODE = (
    "*.py", "records/*.py", "text/*.py", "lexical/*.py", "llm/*.py", "llm/*.yaml", "embedding/**/*.py",
    "answering/**/*.py", "answering/**/*.yaml", "store/chunks.py", "store/indexes.py", "store/search.sql",
    "evaluation/evaluator.py", "evaluation/metrics.py", "evaluation/answer_scores.py",
)  # fmt: skip


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
        "code": digest(*(path.read_bytes() for path in code_files())),
    }
    return digest(json.dumps(decides, sort_keys=True))


def public_settings(settings: AnswerSettings) -> dict[str, Any]:
    """Return settings as data, without API keys and without settings that change no answer."""
    values = _without_keys(flatten(settings.model_dump(mode="json"), AnswerSettings))
    return {name: value for name, value in values.items() if name not in ELSEWHERE}


def code_files() -> list[Path]:
    """Return the files that match CODE."""
    folder = Path(pipelines.__path__[0])
    return sorted({path for pattern in CODE for path in folder.glob(pattern)})


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
