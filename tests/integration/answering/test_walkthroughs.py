"""Each script in examples/ runs as a guide's reader runs it: after `make install`, without any setup.

It uses this project's own documentation in a temporary database, once without a model and once with the model that
OPENAI_BASE_URL names. It uses only names that the packages of `pipelines` export.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kit.scripted_llm import Reply, Request, ScriptedLLM

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 79


def run(name: str, folder: Path, model: str = "") -> str:
    """Run an example in a temporary folder that it must leave empty, and return its output."""
    (script,) = (ROOT / "examples").glob(f"{name}_*.py")
    told = {"TMPDIR": str(folder), "HOME": str(folder), "OMP_NUM_THREADS": "1"} | (
        {"OPENAI_BASE_URL": model, "OPENAI_MODEL": "scripted"} if model else {}
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "RAYDEX_", "DATABASE_"))}
    done = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        env=kept | told,
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(folder.glob("raydex-*")), "its database is gone"
    return done.stdout


def replies(request: Request) -> str | Reply:
    """Return a model's reply to each kind of prompt in the examples."""
    if "score" in request.system or "1 to 5" in request.text:
        return '{"reasoning": "It agrees.", "score": 4}'
    if "other search queries" in request.text:
        return "1. removed pages\n2. delete vanished documents\n3. pages that return 404"
    return "Pages that vanished are deleted after a complete crawl [1]."


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem[:2])
def test_example_is_short_and_uses_only_exported_names(path):
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES
    modules = [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    deep = [module for module in modules if module.startswith("pipelines.") and module.count(".") > 1]
    assert not deep, f"{path.name} reaches into {deep}: export the name in the package's __init__"


@pytest.mark.exhaustive
def test_query_agent_answers_with_sources(tmp_path):
    said = run("02", tmp_path)
    assert "https://docs.example.com/freshness.md#" in said
    assert "llm: extractive" in said


@pytest.mark.exhaustive
def test_query_agent_uses_the_model_from_the_environment(tmp_path):
    with ScriptedLLM(default=replies) as llm:
        said = run("02", tmp_path, llm.url)
    assert "Pages that vanished are deleted" in said
    assert "llm: extractive" not in said


@pytest.mark.exhaustive
def test_fusion_retriever_combines_queries_and_legs(tmp_path):
    with ScriptedLLM(default=replies) as llm:
        said = run("03", tmp_path, llm.url)
    assert said.count("removed pages") == 2, "each kind of fusion searches for the queries that the model wrote"
    assert said.count("https://docs.example.com/freshness.md#deleting") == 2, said
    assert "'glossary':" in said
    assert "'bm25':" in said
    assert "'vector':" in said


def test_every_synthesis_mode_answers_without_a_retriever(tmp_path):
    said = run("04", tmp_path)
    for kind in ("refine:", "tree:", "compact, asynchronously:", "accumulate, asynchronously:", "own:"):
        assert kind in said
    assert said.count("\n- ") == 4, "the custom synthesizer asks once for each of four texts"


def test_every_synthesis_mode_uses_the_model_from_the_environment(tmp_path):
    with ScriptedLLM(default="An answer of the model.") as llm:
        said = run("04", tmp_path, llm.url)
    assert said.count("- An answer of the model.") == 4
    assert len(llm.asked) > 10


@pytest.mark.exhaustive
def test_evaluation_produces_questions_scores_and_a_router(tmp_path):
    said = run("05", tmp_path)
    scores = re.search(r"retrieval score \{'1': ([\d.]+), '5': ([\d.]+)\}", said)
    assert scores and 0.5 < float(scores[1]) <= float(scores[2])
    assert said.count(" -> extractive. The probability that extractive suffices is") == 2
    assert "US dollars for 1,000 questions: 0.0000" in said


@pytest.mark.exhaustive
def test_ray_data_turns_pages_into_an_index(tmp_path):
    said = run("01", tmp_path)
    stored = re.search(r"^(\d+) chunks are stored$", said, re.M)
    assert stored and int(stored[1]) > 3 * 5, "several of each of the three pages"
    assert len(re.findall(r"^0\.\d{3} https://docs\.example\.com/\w+\.md#", said, re.M)) == 5
