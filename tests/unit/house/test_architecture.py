"""The code follows the documented architecture: allowed imports, and things that belong in one place only."""

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest

from jobs.verbs import VERBS

ROOT = Path(__file__).parents[3]
CODE = ("pipelines", "serve", "jobs")

# Allowed imports of each part of pipelines. evaluation, training and nights are above everything.
BASE = {
    "embedding", "fetched", "files", "llm", "logs", "owned", "page", "proxies", "records", "standalone", "store",
    "text", "tracing", "version",
}  # fmt: skip
NOTHING = (
    "fetched", "owned", "proxies", "ray_internals", "records", "server_account", "signing", "standalone",
    "text", "tracing", "version",
)  # fmt: skip
MAY_USE = dict.fromkeys(NOTHING, frozenset()) | {
    "files": {"text"},
    "logs": {"tracing"},
    "llm": {"proxies", "records", "text", "tracing"},
    "embedding": {"files", "owned", "proxies", "records", "text", "tracing"},
    "page": {"embedding", "records", "text"},
    "store": {"fetched", "files", "page", "records", "text", "version"},
    "keeper": {"files", "server_account", "store", "text"},
    "embedded": {"files", "keeper", "store"},
    "cluster": {"files", "ray_internals", "ray_place", "ray_ports", "text"},
    "ray_ports": {"ray_internals"},
    "service_client": {"llm", "proxies", "text"},
    "lexical": {"files", "page", "records", "store", "text"},
    "ray_place": {"text"},
    "occupancy": {"text"},
    "indexing": BASE | {"cluster", "occupancy"},
    "announcements": {"indexing", "store", "text"},
    "answering": BASE | {"lexical"},
    "insights": BASE | {"lexical", "answering"},
    "diagnosis": BASE | {"cluster", "ray_place", "keeper", "embedded", "answering"},
    "evaluation": BASE | {"cluster", "occupancy", "lexical", "indexing", "answering"},
    "training": BASE | {"lexical", "indexing", "answering", "evaluation"},
    "nights": BASE | {"embedded", "signing", "lexical", "indexing", "answering", "insights", "evaluation", "training"},
}
# The chain that builds an index, and the connection that it and a distributed evaluation need.
RAY = {
    *("pipelines/indexing/building/ray_builder.py", "pipelines/evaluation/distributed.py"),
    *("pipelines/cluster.py", "pipelines/occupancy.py"),
}
# The keeper of the embedded Postgres is another Python process, and gets this process's environment. Two of Ray's
# switches exist only as environment variables: they are set, and nothing is read.
ENVIRONMENT = {"pipelines/embedded.py", "pipelines/cluster.py", "jobs/environment.py"}
TRIVIAL_SQL = r"select$|set (local|transaction) "


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name_of(path))


@functools.cache
def imports(path: Path) -> list[str]:
    """Return every module that the file imports, at any place."""
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: write imports in full"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def using(package: str, *folders: str) -> set[str]:
    """Return the files that import `package`."""
    return {
        name_of(path)
        for path in files(*folders)
        if any(module == package or module.startswith(package + ".") for module in imports(path))
    }


def part(module: str) -> str:
    """Return the part of pipelines that `pipelines.x.y` belongs to."""
    return [*module.split("."), ""][1]


# ---------------------------------------------------------------------------------------------- arrows


def test_pipelines_serve_and_jobs_import_each_other_only_as_allowed():
    assert using("serve", "pipelines", "jobs") | using("jobs", "pipelines", "serve") == set()


def test_no_job_imports_another():
    shared = {"jobs.cli", "jobs.environment", "jobs.flags", "jobs.terminal", "jobs.verbs"}
    for path in files("jobs"):
        used = {".".join(module.split(".")[:2]) for module in imports(path) if module.startswith("jobs.")}
        own = {
            "ask.py": {"jobs.markdown"},
            "demo.py": {"jobs.documentation"},
            "submit.py": {"jobs.node"},
            "flags.py": {"jobs.columns"},
        }
        assert used <= shared | own.get(path.name, set()), name_of(path)


def test_only_commands_know_the_library_that_reads_their_flags():
    shared = {"jobs/flags.py", "jobs/columns.py", "jobs/cli.py"}
    assert using("cyclopts", *CODE) - shared <= {f"{verb.module.replace('.', '/')}.py" for verb in VERBS.values()}


def test_imports_inside_pipelines_point_one_way():
    places = MAY_USE | {"__init__": set()}
    for path in files("pipelines"):
        own = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
        assert own in places, f"{name_of(path)} has no place: say here what it may import"
        used = {part(module) for module in imports(path) if module.startswith("pipelines.")}
        assert used - {own} <= places[own], name_of(path)


# The files and folders of a wing, lowest first. Each one uses only those to the left of a < before it.
LAYERS = {
    "pipelines/page": "parser tree urls < plain < flow < builder markdown < stored < blocks cut",
    "pipelines/page/cut": "listings weights < atoms outline < packs < packing < chunker",
    "pipelines/indexing/sources": "source < absence published site < folder",
    "pipelines/evaluation": (
        "dataset statistics < answer_scores judging < metrics questions < evaluator < fingerprint result_text worker"
        " < results distributed < run < experiments judge_check trials"
    ),
    "pipelines/evaluation/trials": "asked recommendation < trial",
    "pipelines/evaluation/judging": "dimensions verdict < judge < checks",
    "pipelines/evaluation/questions": (
        "alike feedback headings labelled replies sections selection tagged < examples writer < making"
    ),
    "pipelines/evaluation/experiments": (
        "prices sweep < record < effects table < comparison < gate indexes < report runner"
    ),
    "pipelines/nights": (
        "dumps gate journal notices regression < result retraining upkeep < plan telling weekly < night"
    ),
    "pipelines/training": (
        "folds low_rank vocabulary < mining < ranking < run < classification fine_tuning < sequence_classifier"
        " < adapter cross_encoder embedder router tags"
    ),
}
# Wings without import cycles that have no lines above yet.
WINGS = ("pipelines/answering", "pipelines/indexing", "pipelines/insights", "serve")


def arrows_inside(wing: str) -> dict[str, set[str]]:
    """Return a folder's files and folders, with those of them that each one uses."""
    used: dict[str, set[str]] = {}
    for path in files(wing):
        own, *_ = path.relative_to(ROOT / wing).with_suffix("").parts
        inside = [module.removeprefix(wing.replace("/", ".") + ".") for module in imports(path)]
        rooms = {module.partition(".")[0] for module in inside if not module.startswith("pipelines.")}
        there = {room for room in rooms if (ROOT / wing / room).exists() or (ROOT / wing / f"{room}.py").exists()}
        if own != "__init__":
            used.setdefault(own, set()).update(there - {own})
    return used


@pytest.mark.parametrize("wing", LAYERS)
def test_imports_inside_a_wing_point_down(wing):
    height = {room: number for number, line in enumerate(LAYERS[wing].split(" < ")) for room in line.split()}
    arrows = arrows_inside(wing)
    moved = set(arrows) ^ set(height)
    assert not moved, f"{wing}: LAYERS above gives each module its place, right of those that it uses: {moved}"
    back = {(room, other) for room, used in arrows.items() for other in used if height[other] >= height[room]}
    assert not back, f"{wing}: the second may not be used by the first, by LAYERS above: {back}"


@pytest.mark.parametrize("wing", WINGS)
def test_imports_inside_a_wing_point_one_way(wing):
    graphlib.TopologicalSorter(arrows_inside(wing)).prepare()


def test_no_module_is_a_catch_all():
    names = {part.removesuffix(".py") for path in files(*CODE) for part in path.relative_to(ROOT).parts}
    assert not {"utils", "util", "common", "helpers", "misc"} & names


# ---------------------------------------------------------------------------------------------- edges


def test_only_the_ray_chain_and_entry_points_import_ray():
    assert using("ray", "pipelines") == RAY


def test_private_names_of_ray_are_in_one_file():
    private = re.compile(r"\bray\.(\w+\.)*_(?!_)\w+")
    naming = {name_of(path) for path in files(*CODE) if private.search(path.read_text())}
    naming |= {name_of(path) for path in files(*CODE) if any(re.match(r"ray\b.*\._", one) for one in imports(path))}
    assert naming == {"pipelines/ray_internals.py"}


def test_only_the_store_talks_to_the_database():
    speaking = using("psycopg", *CODE) | using("psycopg_pool", *CODE)
    assert {name for name in speaking if not name.startswith("pipelines/store")} == set()


def test_only_entry_points_read_the_environment():
    reading = {
        name_of(path)
        for path in files("pipelines", "jobs")
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"))
    }
    assert reading == ENVIRONMENT


def test_pipelines_print_nothing_and_parse_no_command_line():
    assert using("argparse", "pipelines") | using("fastapi", "pipelines") | using("rich", "pipelines") == set()


SQL = re.compile(
    r"\s*(select\b|insert\s+into\b|update\s+\S+\s+set\b|delete\s+from\b|truncate\b|lock\s+table\b"
    r"|(create|drop|alter)\s+(table|index|extension|database|unique|temp|view|role)\b|copy\s+\S+\s*\(|with\s+\w+\s+as\s*\()",
    re.IGNORECASE,
)


@functools.cache
def strings(path: Path) -> list[tuple[int, str]]:
    """Return a file's string literals except docstrings."""
    tree = tree_of(path)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in docstrings)
    return [(node.lineno, node.value) for node in constants if isinstance(node.value, str)]


def test_sql_statements_are_in_sql_files():
    found = [
        f"{name_of(path)}:{line}: {text[:60]}"
        for path in files(*CODE)
        for line, text in strings(path)
        if SQL.match(text) and not re.match(TRIVIAL_SQL, text.strip())
    ]
    assert found == []


def test_search_for_statements_can_find_one():
    for text in ("select a from b", "insert into t values (1)", "update t set a = 1", "create table t (a int)"):
        assert SQL.match(text)
    for text in ("select", "Updates the index", "copy-button", "with pages as well"):
        assert not SQL.match(text) or re.match(TRIVIAL_SQL, text)


# Tables whose rows several tasks or replicas write concurrently.
SHARED_TABLES = {"page", "staged_page", "staged_chunk", "staged_vector", "embedding_claim", "question", "judgement"}
SHARED_TABLES |= {"evaluated_question", "rate_bucket"}
# Run only by the driver, or over rows of one run: these wait for nobody who waits for them.
OF_ONE_WRITER = {
    "adopt_pages", "clear_claims", "clear_staged_chunks", "clear_staged_pages", "clear_staged_vectors", "copy_pages",
    "delete_questions", "delete_vectors_of_runs", "describe_pages", "describe_returned", "drop_staged_duplicates",
    "forget_gone_pages", "forget_unread_pages", "mark_deleted", "mark_duplicates", "mark_unclaimed",
    "mark_unseen", "unmark_duplicates",
}  # fmt: skip


def orderless_writes(name: str, text: str) -> list[str]:
    """Return a statement's writes to shared rows that take their locks in no defined order."""
    if name in OF_ONE_WRITER:
        return []
    inserts = re.findall(r"insert into (\w+)(?: as \w+)?[^;]*?\bselect\b([^;]*?)on conflict", text)
    found = [f"insert into {table}" for table, rows in inserts if table in SHARED_TABLES and "order by" not in rows]
    changes = re.findall(r"(?:^|\()\s*(update|delete from) (\w+)([^;]*)", text, re.MULTILINE)
    for verb, table, rest in changes:
        by_key = re.search(r"\b(url|id|hash) = %", rest)
        if table in SHARED_TABLES and not by_key and not re.search(r"order by [^;]*?for update|skip locked", text):
            found.append(f"{verb} {table}")
    return found


def test_rows_written_by_concurrent_tasks_are_written_in_one_order():
    """Otherwise two tasks wait for each other.

    Use `order by` the key in an insert, and `for update` before an update or delete.
    """
    folder, wrong = ROOT / "pipelines" / "store", []
    for path in (path for path in folder.rglob("*.sql") if path.parent.name != "migrations"):
        parts = re.split(r"^-- name: (\w+)\n", path.read_text(), flags=re.MULTILINE)[1:]
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            wrong += [f"{path.name}: {name}: {write}" for write in orderless_writes(name, text)]
    assert wrong == []
    many = [path.name for path in folder.rglob("*.py") if "executemany" in path.read_text()]
    assert many == ["connection.py"]  # its only use sorts its rows


def test_check_for_write_order_detects_a_violation():
    insert = "insert into staged_vector select * from incoming on conflict (embed_hash) do nothing;"
    assert orderless_writes("x", insert) == ["insert into staged_vector"]
    assert orderless_writes("x", insert.replace(" on conflict", " order by embed_hash on conflict")) == []
    assert orderless_writes("x", "update page set state = 'ok' where url = any(%(urls)s);") == ["update page"]
    assert orderless_writes("x", "update page set state = 'ok' where url = %(url)s;") == []


def test_every_named_statement_is_used_and_every_used_one_exists():
    folder = ROOT / "pipelines" / "store"
    named = [name for path in folder.rglob("*.sql") for name in re.findall(r"^-- name: (\w+)$", path.read_text(), re.M)]
    assert len(named) == len(set(named))
    words = {text for path in folder.rglob("*.py") for _, text in strings(path)}
    assert set(named) - words == set()
    code = "".join(path.read_text() for path in folder.rglob("*.py"))
    asked = set(re.findall(r"(?:statement|_all|_one|_run)\(\s*\"(\w+)\"", code))
    assert len(asked) > 40
    assert asked - set(named) == set()
