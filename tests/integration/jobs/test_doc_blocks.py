"""Every Python block in README and docs runs as written, against real servers on loopback.

A page's blocks run in order, in one namespace, on a database with two collections, with and without a language model.
Only addresses are replaced, which a reader replaces too. The blocks of docs/training.md load torch.
"""

import re
from functools import reduce
from pathlib import Path

import pytest
from kit.api import FakeEngine, FakeStore, run_server
from kit.scripted_llm import ScriptedLLM
from kit.web import closed_port
from kit.workshop import Workshop, small_site

from pipelines.store import Store
from serve.routes import create_app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:^([^\n]*)\n\n?)?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Words before a block which say that it needs a language model.
NEEDS_MODEL = "needs a language model"
MODEL_URL = "http://127.0.0.1:11434/v1"


def python_blocks(page: Path, model: bool = True) -> list[str]:
    found = BLOCK.findall(page.read_text())
    return [code for before, code in found if model or NEEDS_MODEL not in before]


def asks_model(page: Path) -> bool:
    return any(MODEL_URL in code for code in python_blocks(page))


WITH_BLOCKS = [page for page in PAGES if python_blocks(page)]
RUNS = [(page, True) for page in WITH_BLOCKS] + [(page, False) for page in WITH_BLOCKS if asks_model(page)]
LONG = {"training.md": pytest.mark.exhaustive}  # it trains a model


@pytest.fixture
def addresses(store: Store, database_url: str, tmp_path: Path, model: bool):  # type: ignore[no-untyped-def]
    """Return the addresses named in the docs, and their replacements."""
    Workshop(store).reindex(small_site(4))
    Workshop(store, "other").reindex(small_site(2))
    app = create_app(FakeEngine(FakeStore()), FakeStore())  # type: ignore[arg-type]
    with (
        run_server(app) as api,
        closed_port() as nothing,
        ScriptedLLM([], default='{"score": 4, "reasoning": "It is short."}') as llm,
    ):
        yield {
            "postgresql://…": database_url,
            "/var/cache/raydex": str(tmp_path),
            MODEL_URL: llm.url if model else f"http://127.0.0.1:{nothing}/v1",
            "http://localhost:8000": api,
            '"mydocs"': '"docs"',
        }


@pytest.mark.parametrize(("page", "model"), [
    pytest.param(page, model, id=f"{page.name}{'' if model else ', no model'}", marks=LONG.get(page.name, ()))
    for page, model in RUNS
])  # fmt: skip
def test_python_blocks_of_a_page_run(page, addresses, model, capsys):
    namespace = {"__name__": "__docs__"}
    for number, block in enumerate(python_blocks(page, model), 1):
        code = reduce(lambda text, pair: text.replace(*pair), addresses.items(), block)
        exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)
        printed = capsys.readouterr().out
        assert bool(printed.strip()) or "print(" not in code
        assert printed.strip() != "None" and "None None" not in printed


def test_pages_have_python_blocks():
    assert {page.name for page in WITH_BLOCKS} >= {"answering.md", "api.md", "judging.md"}
    assert any(not model for _, model in RUNS)
