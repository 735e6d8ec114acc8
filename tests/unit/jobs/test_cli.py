"""`raydex`: help on one screen, one file per verb, and reliable exit codes and messages."""

import gc
import importlib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from jobs import ask, demo
from jobs.__main__ import raydex
from jobs.cli import INTERRUPTED, run_job
from jobs.flags import BadFlags, command, read_words
from jobs.verbs import VERBS
from pipelines.store import NoSuchCollection
from tests.kit.cluster import free_port

ROOT = Path(__file__).parents[3]
HEAVY = ("ray", "torch", "sklearn", "scipy", "pandas", "transformers", "scrapy", "onnxruntime", "sentence_transformers")


def run(*words: str, module: str = "jobs") -> "subprocess.CompletedProcess[str]":
    """Run `python -m <module> <words>`, which is `raydex <words>` for the module `jobs`."""
    return subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, text=True, capture_output=True, check=False)


def ending(*words: str) -> object:
    """Return the exit code of `raydex <words>` in this process."""
    with pytest.raises(SystemExit) as ended:
        raydex(words)
    return ended.value.code


def test_the_help_lists_all_verbs_in_groups_in_the_order_of_the_first_day(capsys):
    assert not ending("--help")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == list(VERBS) and listed[:5] == ["demo", "index", "ask", "serve", "doctor"]
    groups = dict.fromkeys(verb.group for verb in VERBS.values())
    assert [line for line in lines[2:] if line and line[0] != " "] == list(groups)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_ends_with_its_examples_which_its_app_reads(verb, capsys):
    assert not ending(verb, "--help")
    shown = capsys.readouterr().out.rstrip()
    assert len(VERBS[verb].examples) >= 2
    assert shown.endswith("\n".join(["Examples:", *(f"  {example}" for example in VERBS[verb].examples)]))
    for example in VERBS[verb].examples:
        words = re.search(r"raydex ([^)|>]*)", example)
        assert words is not None and len(example) <= 78
        first, *rest = shlex.split(words[1])
        assert first == verb
        assert read_words(importlib.import_module(VERBS[verb].module).app, rest)[0].__name__ != "help_print"


def test_every_verb_is_a_file_in_jobs_and_vice_versa():
    files = {path.stem for path in (ROOT / "jobs").glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    of_nodes = {"node"}  # users never call it: it runs on the nodes of a Ray job before the verb
    assert {verb.module for verb in VERBS.values()} == {f"jobs.{name}" for name in files - {"__main__"} - of_nodes}


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_shows_the_called_command(verb, capsys):
    assert not ending(verb, "--help")
    shown = capsys.readouterr().out
    assert shown.startswith((f"usage: raydex {verb} ", f"usage: raydex {verb}\n"))
    assert not ending("help", verb)
    assert capsys.readouterr().out == shown


def test_module_run_directly_shows_its_own_command():
    assert run("--help", module="jobs.keys").stdout.startswith("usage: python -m jobs.keys ")
    refused = run(" ", module="jobs.ask")
    assert (refused.returncode, refused.stderr) == (
        2,
        'python -m jobs.ask: the question is empty: raydex ask "your question"\n',
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: raydex COMMAND"),
        (["ask", " "], 'raydex ask: the question is empty: raydex ask "your question"\n'),
        (["statsu"], "raydex: there is no command 'statsu'; did you mean `raydex status`?"),
        (["reindex"], "raydex: there is no command 'reindex'; did you mean `raydex index`?"),
        (["xyz"], "raydex: there is no command 'xyz'; `raydex --help`"),
    ],
)
def test_missing_or_wrong_verb_is_an_error_that_says_what_to_type(words, said, capsys):
    assert ending(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(said) and "Traceback" not in printed.err


def test_version_is_the_package_version(capsys):
    assert not ending("--version")
    assert capsys.readouterr().out.startswith("raydex ")


@pytest.mark.parametrize("words", [["--help"], ["index", "--help"]])
def test_closed_pipe_causes_no_error_message(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "jobs", *words], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE,
                          check=False)  # fmt: skip
    os.close(writer)
    assert done.stderr == b"" and done.returncode in (0, 141)


@pytest.mark.parametrize("printing", ["print", "__import__('rich.console').console.Console().print"])
def test_long_output_into_a_closed_pipe_ends_alike(printing):
    """Output that is longer than the buffer meets the closed pipe while it is printed."""
    reader, writer = os.pipe()
    os.close(reader)
    work = f"from jobs.cli import quiet_when_piped\nwith quiet_when_piped():\n    {printing}('word ' * 50_000)"
    done = subprocess.run([sys.executable, "-c", work], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.stderr, done.returncode) == (b"", 141)


@pytest.mark.parametrize("verb", ["status", "default", "publish", "rollback", "prune", "drop", "dump"])
def test_a_verb_about_one_collection_takes_its_name_or_the_flag(verb):
    """Arguments and flags can be in any order. Two names are refused, and so is a missing one."""
    app = importlib.import_module(VERBS[verb].module).app
    rest = ["docs.dump"] if verb == "dump" else []
    for name in (["docs"], ["--collection", "docs"]):
        for parts in itertools.permutations([name, ["--json"], *([rest] if rest else [])]):
            if name == ["docs"] and rest and parts.index(rest) < parts.index(name):
                continue  # the first of two arguments is the name
            given = read_words(app, [*itertools.chain(*parts)])[1].arguments
            assert given["collection"] == "docs" and given["as_json"], parts
            assert not rest or str(given["file"]) == "docs.dump", parts
    with pytest.raises(BadFlags, match="--collection already names the collection"):
        read_words(app, ["docs", *rest, "--collection", "other"])
    if verb in ("status", "default"):
        assert read_words(app, [])[1].arguments == {}
    else:
        with pytest.raises(BadFlags, match="is missing"):
            read_words(app, rest)


@pytest.mark.parametrize("words", ["restore docs.dump --json --collection docs", "restore --json docs.dump --replace",
                                   "ask --json hello --collection docs", "ask --json -- --hello",
                                   "index --json docs --base-url https://x.test/", "keys revoke --json reader",
                                   "prune docs --keep 3 --json", "rollback docs --to 3 --json"])  # fmt: skip
def test_words_and_flags_of_other_verbs_stand_in_any_order(words):
    verb, *rest = words.split()
    assert read_words(importlib.import_module(VERBS[verb].module).app, rest)[1].arguments["as_json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("index --exlude x http://a.test/", "unknown option: --exlude. Did you mean --exclude?"),
        ("index http://a.test/ --chunk-unit token", "--chunk-unit is 'token': it must be 'tokens' or 'characters'"),
        ("index http://a.test/ --max-pages 0 --delay -1", "'0': it must be at least 1; --delay is '-1'"),
        ("index http://a.test/ --max-pages many", "--max-pages is 'many'"),
        ("keys craete a", 'unknown command "craete". Did you mean "create"?'),
        ("completion bsh", 'Did you mean "bash"?'),
        ("status docs api", "unexpected argument 'api'"),
        ("status --watch --json", "--watch and --json can't be combined"),
        ("train embedder --dataset a --output b --layers al", "--layers is 'al'"),
        ("train", "choose an action: adapter, embedder, reranker, router, tags"),
        ("dump docs", "FILE is missing: give it as an argument or with --file"),
        ("logs x", 'unable to convert "x" into int'),
    ],
)
def test_wrong_words_and_flags_are_refused_with_what_was_meant(words, said, capsys):
    assert ending(*words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err and "Traceback" not in printed.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb_and_its_flags(shell, capsys):
    assert not ending("completion", shell)
    script = capsys.readouterr().out
    assert [verb for verb in VERBS if verb not in script] == []
    assert all(flag in script for flag in ("max-pages", "fail-below", "publishable"))


HOMELESS = {"index": ["x", "--base-url", "https://x.test/"], "ask": ["hi"], "keys": ["list"], "answers": ["list"],
            "dump": ["x", "x.dump"]} | {verb: ["x"] for verb in ("publish", "rollback", "prune", "drop")}  # fmt: skip
HOMELESS |= {verb: [] for verb in ("serve", "mcp", "status", "default", "database", "insights")}


@pytest.mark.parametrize("verb", HOMELESS)
def test_impossible_home_folder_is_a_message_of_one_or_two_lines(verb, tmp_path, monkeypatch, capsys):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "page.html").write_text("<h1>Page</h1>")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setenv("RAYDEX_PORT", str(free_port()))  # a service may be running on this machine during the tests
    monkeypatch.chdir(tmp_path)
    assert ending(verb, *HOMELESS[verb]) == 1
    said = capsys.readouterr().err
    *before, last = said.splitlines()
    assert last.startswith(f"raydex {verb}: RAYDEX_HOME '{tmp_path}/file/home' can't be used: ")
    assert len(before) <= 1 and "Traceback" not in said


def test_serve_passes_its_flags_on_as_settings(capsys, monkeypatch):
    monkeypatch.setenv("RAYDEX_PORT", "8000")  # the flag overrides it, and the test's end removes it
    assert ending("serve", "--port", "99999") == 2
    assert "raydex serve: setting port is '99999': it must be at most 65,535" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["status", "serve"])
def test_relative_home_folder_is_refused(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAYDEX_HOME", "data")
    monkeypatch.chdir(tmp_path)
    assert ending(verb) == 2
    assert (
        f"'data' is relative, so it differs from folder to folder: write {tmp_path / 'data'}" in capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


def test_command_defaults_equal_service_defaults(capsys):
    from serve.settings import Settings

    host, port = (Settings.model_fields[name].default for name in ("host", "port"))
    assert port == demo.SERVE_PORT
    assert not ending("serve", "--help")
    shown = capsys.readouterr().out
    assert f"(default: {host})" in shown and f"(default: {port})" in shown


def test_no_help_loads_a_heavy_package():
    script = f"""
import json, sys
from jobs import ask, demo
from jobs.__main__ import VERBS, raydex
loaded = {{}}
for verb in ["", *VERBS]:
    try:
        raydex([*filter(None, [verb]), "--help"])
    except SystemExit:
        loaded[verb] = [name for name in {HEAVY} if name in sys.modules]
print(json.dumps(loaded))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert len(loaded) == len(VERBS) + 1
    assert {verb: names for verb, names in loaded.items() if names} == {}


@pytest.mark.parametrize(
    "words", [["how", "do", "I", "exclude"], ["how do I exclude"], ["how", "--json", "do", "I", "exclude"]]
)
def test_question_needs_no_quotes(words):
    assert read_words(ask.app, words)[1].args == ("how", "do", "I", "exclude") or words == ["how do I exclude"]
    assert read_words(ask.app, ["--", "--json", "how"])[1].args == ("--json", "how")


def test_misspelled_collection_is_named_with_the_intended_one():
    assert str(NoSuchCollection("dcos", ["docs", "api"])).endswith("there are: docs, api; did you mean docs?")
    assert str(NoSuchCollection("x", [])).endswith("'x': `raydex index` makes the first one")


@pytest.mark.parametrize(("error", "code", "traced"), [
    (KeyError("a"), 1, True), (IndexError("list index out of range"), 1, True), (AttributeError("x"), 1, True),
    (NoSuchCollection("x", []), 2, False), (ValueError("--x is 0"), 2, False),
])  # fmt: skip
def test_a_bug_is_no_bad_input_and_shows_its_traceback(error, code, traced, capsys):
    def work() -> int:
        raise error

    assert run_job(command("status", "Shows.", work), []) == code
    assert ("Traceback" in capsys.readouterr().err) is traced


def test_command_called_in_a_process_leaves_its_garbage_to_be_found() -> None:
    before = gc.get_freeze_count(), gc.isenabled()
    with pytest.raises(SystemExit):
        raydex(["status", "--help"])
    assert (gc.get_freeze_count(), gc.isenabled()) == before


def test_interrupt_before_a_command_begins_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert ending("status") == INTERRUPTED and gc.isenabled()
