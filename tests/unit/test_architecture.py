"""The house stands as docs and README say: which part may use which, and what belongs to one place only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.__main__ import VERBS

ROOT = Path(__file__).parents[2]
CODE = ("pipelines", "serve", "jobs")

# What each part of pipelines may import. evaluation and training stand above everything.
BASE = {"records", "retry_after", "whole", "llm", "embedding", "store"}
MAY_USE = {
    "records": set(),
    "retry_after": set(),
    "whole": set(),
    "llm": {"records", "retry_after"},
    "embedding": {"records", "whole"},
    "store": {"records", "whole"},
    "embedded": {"store", "whole"},
    "cluster": set(),
    "lexical": {"records", "whole", "store"},
    "indexing": BASE | {"cluster"},
    "answering": BASE | {"lexical"},
    "evaluation": BASE | {"cluster", "lexical", "indexing", "answering"},
    "training": BASE | {"lexical", "indexing", "answering", "evaluation"},
}
# The chain that builds an index, and the connection that it and a distributed evaluation need.
RAY = {"pipelines/indexing/build.py", "pipelines/cluster.py"}
# The keeper of the embedded Postgres is another Python process: it needs what this one was started with. Two of Ray's
# switches exist in the environment only: they are set, nothing is read.
ENVIRONMENT = {"pipelines/embedded.py", "pipelines/cluster.py"}
TRIVIAL_SQL = r"select$|set (local|transaction) "


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name_of(path))


def imports(path: Path) -> Iterator[str]:
    """Every module that the file imports, wherever in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: write imports in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def using(package: str, *folders: str) -> set[str]:
    """The files that import `package`."""
    return {
        name_of(path)
        for path in files(*folders)
        if any(module == package or module.startswith(package + ".") for module in imports(path))
    }


def part(module: str) -> str:
    """The part of pipelines that `pipelines.x.y` belongs to."""
    return [*module.split("."), ""][1]


# ---------------------------------------------------------------------------------------------- arrows


def test_serve_and_jobs_never_import_each_other():
    assert using("serve", "jobs") == set()
    assert using("jobs", "serve") == set()


def test_pipelines_imports_neither_serve_nor_jobs():
    assert using("serve", "pipelines") | using("jobs", "pipelines") == set()


@pytest.mark.parametrize("path", files("pipelines"), ids=name_of)
def test_inside_pipelines_arrows_point_one_way(path):
    own = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if own in ("", "__init__"):
        assert list(imports(path)) == []
        return
    assert own in MAY_USE, f"{name_of(path)} has no place: say here what it may import"
    used = {part(module) for module in imports(path) if module.startswith("pipelines.")}
    assert used - {own} <= MAY_USE[own]


@pytest.mark.parametrize("path", files(*CODE), ids=name_of)
def test_there_is_no_drawer_for_everything(path):
    assert not {"utils", "util", "common", "helpers", "misc"} & {part.removesuffix(".py") for part in path.parts}


# ---------------------------------------------------------------------------------------------- edges


def test_ray_is_known_only_where_the_chain_is_and_at_the_entry_points():
    assert using("ray", "pipelines") == RAY


def test_only_the_store_speaks_to_the_database():
    assert {name for name in using("psycopg", *CODE) if not name.startswith("pipelines/store")} == set()
    assert {name for name in using("psycopg_pool", *CODE) if not name.startswith("pipelines/store")} == set()


def test_only_entry_points_read_the_environment():
    reading = {
        name_of(path)
        for path in files("pipelines")
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"))
    }
    assert reading == ENVIRONMENT


def test_nothing_is_printed_or_parsed_from_a_command_line_in_pipelines():
    assert using("argparse", "pipelines") | using("fastapi", "pipelines") | using("rich", "pipelines") == set()


SQL = re.compile(
    r"\s*(select\b|insert\s+into\b|update\s+\S+\s+set\b|delete\s+from\b|truncate\b|lock\s+table\b"
    r"|(create|drop|alter)\s+(table|index|extension|database|unique|temp|view|role)\b|copy\s+\S+\s*\(|with\s+\w+\s+as\s*\()",
    re.IGNORECASE,
)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a file that are not docstrings."""
    tree = tree_of(path)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.lineno, node.value


def test_statements_stand_in_sql_files():
    found = [
        f"{name_of(path)}:{line}: {text[:60]}"
        for path in files(*CODE)
        for line, text in strings(path)
        if SQL.match(text) and not re.match(TRIVIAL_SQL, text.strip())
    ]
    assert found == []


def test_the_search_for_statements_would_find_one():
    for text in (
        "select a from b",
        "insert into t values (1)",
        "update t set a = 1",
        "create table t (a int)",
    ):
        assert SQL.match(text)
    for text in ("select", "Updates the index", "copy-button", "with pages as well"):
        assert not SQL.match(text) or re.match(TRIVIAL_SQL, text)


def test_every_named_statement_is_used_and_every_used_one_exists():
    folder = ROOT / "pipelines" / "store"
    named = [name for path in folder.glob("*.sql") for name in re.findall(r"^-- name: (\w+)$", path.read_text(), re.M)]
    assert len(named) == len(set(named))
    words = {text for path in folder.glob("*.py") for _, text in strings(path)}
    assert set(named) - words == set()
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    asked = set(re.findall(r"(?:statement|_all|_one|_run|_urls)\(\s*\"(\w+)\"", code))
    assert len(asked) > 40
    assert asked - set(named) == set()


@pytest.mark.parametrize("path", [p for p in files(*CODE) if p.read_text().strip()], ids=name_of)
def test_each_file_opens_by_saying_what_it_does(path):
    assert ast.get_docstring(tree_of(path))


# ---------------------------------------------------------------------------------------------- README


@pytest.fixture(scope="module")
def readme() -> str:
    path = ROOT / "README.md"
    if not path.exists():
        pytest.skip("there is no README.md yet")
    return path.read_text()


def section(text: str, title: str) -> str:
    """The text under a heading that holds `title`."""
    parts = re.split(r"^#+ +(.+)$", text, flags=re.MULTILINE)
    found = [body for heading, body in zip(parts[1::2], parts[2::2], strict=True) if title in heading.lower()]
    assert found, f"README has no section with {title!r} in its heading"
    return found[0]


def paths_of(tree: str) -> list[str]:
    """The paths of a tree drawn by indentation: `folder/  words` and below it `file.py  words`."""
    paths, parents = [], [(-1, "")]
    for line in tree.splitlines():
        bare = re.sub(r"[│├└─|`]", " ", line)
        depth = len(bare) - len(bare.lstrip())
        names = list(_names(bare.split()))
        if not names:
            continue
        while parents[-1][0] >= depth:
            parents.pop()
        paths += [parents[-1][1] + name for name in names]
        if names[0].endswith("/"):
            parents.append((depth, parents[-1][1] + names[0]))
    return paths


def _names(words: list[str]) -> Iterator[str]:
    """The words at the start of a line that are file names."""
    for word in words:
        if not re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*/?", word.rstrip(",")) or not re.search(r"[./]|file$|LICENSE", word):
            return
        yield word.rstrip(",")


def test_a_drawn_tree_is_read_as_paths():
    tree = "pyproject.toml  Makefile\na/    what a is\n  b.py   words and. words\n  c/   more.py\n    y.sql\nd/ things"
    assert paths_of(tree) == [
        "pyproject.toml",
        "Makefile",
        "a/",
        "a/b.py",
        "a/c/",
        "a/more.py",
        "a/c/y.sql",
        "d/",
    ]


def test_the_readmes_tree_is_the_repositorys(readme):
    block = re.search(r"```\w*\n(.*?)```", section(readme, "tree"), re.DOTALL)
    assert block, "README draws no tree"
    if "@@" in block[1]:
        pytest.skip("README's tree is not drawn yet")
    named = paths_of(block[1])
    missing = [path for path in named if not list(ROOT.glob(path.rstrip("/")))]
    assert missing == []
    folders = {f"{path.name}/" for path in ROOT.iterdir() if path.is_dir() and path.name in _kept()}
    assert folders - {path for path in named if path.count("/") == 1} == set()


def _kept() -> set[str]:
    return {*CODE, "collections", "deploy", "benchmarks", "docs", "tests"}


def test_the_readmes_commands_are_the_repositorys(readme):
    verbs = {module.removeprefix("jobs."): verb for verb, (module, _) in VERBS.items()}
    modules = set(re.findall(r"python -m jobs\.(?!train_)(\w+)", readme))
    assert modules - set(verbs) == set()
    named = set(re.findall(r"(?:^|[`/])raydex (\w+)", readme, re.MULTILINE)) | {verbs[module] for module in modules}
    named |= {"serve"} if "python -m serve" in readme else set()
    assert named - set(VERBS) == set()
    assert set(VERBS) - named - {"demo"} == set()  # the demo is `make demo`
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make (\w+)", readme, re.MULTILINE)) <= targets
    for path in re.findall(r"\]\(([\w./-]+)\)", readme):
        assert (ROOT / path).exists(), path


def variables_read() -> set[str]:
    """Every environment variable that jobs and serve read."""
    found = set()
    for path in files("jobs", "serve"):
        text = path.read_text()
        found |= set(re.findall(r"""environ\.get\(\s*["'](\w+)""", text))
        found |= set(re.findall(r"""environ\[["'](\w+)""", text))
    return found


def test_the_readmes_settings_are_the_repositorys(readme):
    named = set(re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`", section(readme, "configuration")))
    from serve.settings import Settings

    of_service = {f"RAYDEX_{name.upper()}" for name in Settings.model_fields} | {"DATABASE_URL"}
    assert variables_read() - named == set()
    assert named - variables_read() - of_service == set()


def test_every_setting_of_the_service_is_documented():
    from serve.settings import Settings

    table = section((ROOT / "docs" / "serving.md").read_text(), "settings")
    named = set(
        re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    )
    assert named == set(Settings.model_fields)
