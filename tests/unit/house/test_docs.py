"""README and docs name only existing things: the tree, commands with flags, routes, settings, links."""

import functools
import importlib
import json
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from cyclopts import App
from kit.api import FakeEngine, FakeStore
from test_architecture import CODE, ROOT, files, name_of

from jobs.flags import all_commands, list_flags
from jobs.verbs import VERBS
from pipelines.answering.reranking import RerankerOptions
from pipelines.answering.settings import flatten
from pipelines.answering.settings.names import groups_of
from pipelines.embedding.load import ENGINES
from serve.guard.policy import Policy
from serve.routes import create_app
from serve.settings import Settings

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages of experiments: they name commands and settings as they were at that time.
RECORDS = sorted((ROOT / "benchmarks").rglob("*.md"))
# Paths in pages that belong to other sites and servers, to Ray, or to the image.
OTHER_PATHS = {
    "/chat/completions", "/docs", "/guide/", "/guide/index.html", "/llm", "/llm/v1", "/v1", "/v1/", "/v1/rerank",
    "/tmp/ray/session_latest/logs/serve/", "/tmp", "/tmp/ray", "/dev/shm", "/var/lib/raydex",
}  # fmt: skip


# ---------------------------------------------------------------------------------------------- tree


@pytest.fixture(scope="module")
def docs():  # type: ignore[no-untyped-def]
    """Import one of the programs in docs/."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def tree(docs):  # type: ignore[no-untyped-def]
    return docs("tree")


def test_tree_in_the_docs_matches_the_repository(tree):
    page = tree.PAGE.read_text()
    assert page == tree.in_page(page, tree.short_tree()), "run `make tree`"


def test_tree_lists_every_module_and_every_described_folder_exists(tree):
    text = tree.short_tree()
    for path in files(*tree.SOURCE):
        assert path.name == "__init__.py" or re.search(rf"\b{re.escape(path.name)}\b", text), path
    assert all((ROOT / name).is_dir() for name in tree.OTHERS)
    kept = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))}
    assert kept - {"models", "dist", "raydex.egg-info"} <= {*tree.SOURCE, *tree.OTHERS}


def test_every_package_and_module_has_a_one_line_description(tree):
    for path in files(*tree.SOURCE):
        line = tree.first_line(path)
        assert line.endswith("."), f"{name_of(path)} opens with {line!r}: write one sentence, on one line"
        assert len(line) <= 100, f"{name_of(path)}: its first line has {len(line)} characters"


def test_page_without_a_place_for_the_tree_is_refused(tree):
    with pytest.raises(ValueError, match="no place for the tree"):
        tree.in_page("# Architecture\n", "pipelines/\n")


# ---------------------------------------------------------------------------------------------- commands


def blocks(text: str, *languages: str) -> Iterator[str]:
    """Return a page's fenced blocks in one of `languages` ("" for none)."""
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language in languages:
            yield body


COMMAND = re.compile(r"(?:^|[\s/])(raydex submit |raydex |python -m jobs\.)([a-z_]+)(?![\w.])(.*)")


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Return the module of each `raydex …` or `python -m jobs.…` on a page, with the following words."""
    fenced = [re.sub(r"\\\n\s*", "", body) for body in blocks(text, "", "bash", "sh", "console")]
    lines = [line for body in fenced for line in body.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    for line in lines:
        if found := COMMAND.search(line):
            called, verb, rest = found.groups()
            known = VERBS[verb].module if verb in VERBS else f"jobs.{verb}"
            module = known if called.startswith("raydex ") else f"jobs.{verb}"
            yield module, re.sub(r"(\s#|\s&$|\s\|).*", "", rest).replace("'", " ").replace('"', " ").split()


def flags_of(app: App) -> set[str]:
    """Return all flags of a command and of its actions."""
    return {name for _, one in all_commands(app) for names, _ in list_flags(one) for name in names} | {"--help"}


def test_modules_imported_in_the_makefile_exist():
    imported = re.findall(r"from ([\w.]+) import (\w+)", (ROOT / "Makefile").read_text())
    assert len(imported) >= 3
    assert [each for each in imported if not hasattr(importlib.import_module(each[0]), each[1])] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_on_a_page_exists_with_its_flags(page):
    for module, words in commands(page.read_text()):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), f"{name_of(page)}: there is no command {module}"
        app = importlib.import_module(module).app
        named = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        assert named <= flags_of(app), f"{name_of(page)}: {module} {' '.join(words)}"


def test_commands_are_found_in_pages():
    text = "Run `raydex status --json`.\n```\nA=1 raydex index x.yaml --dry-run  # words\n"
    text += "python -m jobs.ask 'a b' \\\n  --url u\n```\n"
    assert list(commands(text)) == [
        ("jobs.reindex", ["x.yaml", "--dry-run"]),
        ("jobs.ask", ["a", "b", "--url", "u"]),
        ("jobs.status", ["--json"]),
    ]


def test_every_command_is_documented():
    listed = re.findall(r"^\| `raydex (\w+)`", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)


def test_every_kind_of_embedding_model_is_documented():
    text = (ROOT / "docs" / "indexing.md").read_text()
    unnamed = [name for prefix, kind in ENGINES.items() if f"\n| `{(name := f'{prefix}:{kind.names}')}` |" not in text]
    assert not unnamed, f"docs/indexing.md, Embedding models: {unnamed}"


def test_every_make_target_on_a_page_exists():
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)) <= targets, name_of(page)


# ---------------------------------------------------------------------------------------------- routes, settings, links


@functools.cache
def routes() -> set[str]:
    app = create_app(FakeEngine(FakeStore()), FakeStore())  # type: ignore[arg-type]
    return {route.path for route in app.routes}  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_route_on_a_page_exists(page):
    text = re.sub(r"^~~~~.*?^~~~~$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)  # without quoted answers
    named = set(re.findall(r"`(?:GET |POST )?(/[a-z][\w/]*)`", text))
    named |= set(re.findall(r"(?:localhost|127\.0\.0\.1):8000(/[\w/]*(?:\.js)?)", text)) - {"/"}
    assert named - routes() - OTHER_PATHS == set()


def test_every_route_is_documented():
    text = (ROOT / "docs" / "api.md").read_text()
    unnamed = {path for path in routes() if path.replace(":path", "") + "`" not in text}
    assert unnamed <= {"/docs/{name}"}


SETTINGS = set(flatten(Settings().model_dump(), Settings))


def variables_read() -> set[str]:
    """Return every environment variable that the code reads by name, directly or from a copy in `given`."""
    text = "\n".join(path.read_text() for path in files(*CODE))
    got = re.findall(r"""(?:environ|given)\.get\(\s*["']([A-Z]\w+)""", text)
    return {*got, *re.findall(r"""environ\[["'](\w+)""", text)}


def test_documented_variables_are_exactly_those_that_are_read():
    named = set(re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`", (ROOT / "docs" / "configuration.md").read_text()))
    of_service = {f"RAYDEX_{name.upper()}" for name in SETTINGS} | {"DATABASE_URL"}
    of_service = {name.replace(".", joint) for name in of_service for joint in ("_", "__")}
    of_service |= {"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_API_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    of_service.add("RAYDEX_NOTICE_NAME")  # NAME stands for a service of the collection file
    assert variables_read() - named == set()
    assert named - variables_read() - of_service == set()


def test_settings_are_documented_as_in_the_code(docs):
    """Compare names, defaults and limits. `settings_page` raises if docs/settings.yaml lists other settings."""
    reference = docs("reference")
    rows = re.findall(r"^\| `([\w.]+)` \|", reference.settings_page(), re.MULTILINE)
    assert len(rows) == len(set(rows)) and set(rows) == SETTINGS == set(reference.meanings())
    assert (ROOT / "docs" / "settings.md").read_text() == reference.settings_page(), "run `make reference`"


def test_setting_without_a_description_is_named_with_its_file(docs, monkeypatch):
    reference = docs("reference")
    said = reference.words()
    del said["meanings"]["retrieval.k"]
    monkeypatch.setattr(reference, "words", lambda: said)
    with pytest.raises(reference.NoMeaning, match=r"docs/settings\.yaml .*: add .* retrieval\.k$"):
        reference.settings_page()


def test_reference_contains_every_flag_and_every_route(docs):
    reference = docs("reference")
    flags, http = reference.flags_page(), reference.http_page()
    for verb, entry in VERBS.items():
        assert f"\n## raydex {verb}\n" in flags
        named = {flag for flag in flags_of(importlib.import_module(entry.module).app) if flag.startswith("--")}
        assert named - {"--help"} - set(re.findall(r"`(--[\w-]+)", flags)) == set(), verb
    assert "### POST /query\n" in http and "### QueryIn\n" in http


def test_site_has_the_pages_of_the_repository(docs):
    site = docs("site_pages")
    readme, page = ROOT / "README.md", ROOT / "docs" / "decisions" / "README.md"
    text = "[a](docs/howto.md#x) [b](SECURITY.md) [c](pipelines/x.py) [d](https://e.test/)\n"
    assert site.moved(text, readme) == "[a](howto.md#x) [b](security.md) c [d](https://e.test/)\n"
    assert site.moved("[a](../howto.md) [b](../../SECURITY.md)", page) == "[a](../howto.md) [b](../security.md)"
    assert site.spaced("Text:\n- a\n- b\n```\nx\n- y\n```\n") == "Text:\n\n- a\n- b\n```\nx\n- y\n```\n"


def test_site_has_the_results_of_experiments(docs):
    site, quality = docs("site_pages"), ROOT / "docs" / "quality.md"
    assert site.moved("[a](../benchmarks/results/typos.md)", quality) == "[a](results/typos.md)"
    result = ROOT / "benchmarks" / "results" / "typos.md"
    assert (
        site.moved("[a](prompts.md) [b](../../docs/llms.md#x)", result)
        == "[a](../results/prompts.md) [b](../llms.md#x)"
    )


def test_every_result_is_listed():
    folder = ROOT / "benchmarks" / "results"
    listed = set(re.findall(r"^\| \[[\w-]+\]\(([\w-]+\.md)\) \|", (folder / "README.md").read_text(), re.MULTILINE))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}


def test_every_page_named_in_a_comment_exists():
    """Comments, sweeps and messages name the pages with their figures."""
    places = [ROOT / name for name in (*CODE, "benchmarks", "collections", "deploy")]
    texts = {
        path: path.read_text() for place in places for suffix in ("py", "yaml") for path in place.rglob(f"*.{suffix}")
    }
    named = {
        (name_of(path), page)
        for path, text in texts.items()
        for page in re.findall(r"(?:docs|benchmarks)/[\w/-]+\.md\b", text)
    }
    assert len(named) >= 20
    assert [(file, page) for file, page in sorted(named) if not (ROOT / page).exists()] == []


def test_newcomer_questions_are_answered_by_existing_sections():
    rows = [json.loads(line) for line in (ROOT / "benchmarks/questions/newcomers.jsonl").read_text().splitlines()]
    for row in rows:
        name, _, anchor = row["source"].removeprefix("https://raydex.test/").partition("#")
        assert anchor in anchors(ROOT / name), f"{row['question']} {row['source']}"


def test_every_picture_is_drawn_from_the_source_next_to_it():
    for text in (ROOT / "docs" / "images").glob("*.d2"):
        drawn = re.search(r"<!-- drawn from (\w+) -->", text.with_suffix(".svg").read_text())
        assert drawn and drawn[1] == sha256(text.read_bytes()).hexdigest(), f"{text.name}: run `make pictures`"


def test_trace_pictures_are_drawn_from_the_spans_next_to_them(docs):
    for spans in (ROOT / "docs" / "images").glob("trace-*.tsv"):
        drawn = docs("waterfall").draw(spans.read_text())
        assert spans.with_suffix(".svg").read_text() == drawn, f"{spans.name}: run `make pictures`"


def test_every_page_is_in_the_site_menu(docs):
    menu = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]))
    pages = {docs("site_pages").place(page).as_posix() for page in [*PAGES, ROOT / "CHANGELOG.md"]}
    assert pages <= menu and menu - pages == {"flags.md", "http.md", "results/README.md"}


def test_every_setting_is_read():
    """A declared setting that no code uses would silently change nothing.

    A setting in a group is read as `group.name`, one about access as `policy.name`, any other as `settings.name`. The
    proxy has no settings: it reads variables.
    """
    paths = [path for path in files(*CODE) if path.parts[-2:] != ("settings", "names.py")]
    code = [re.sub(r"^from .*", "", path.read_text(), flags=re.MULTILINE) for path in paths]
    read = {found for text in code for found in re.findall(r"(?:\b|_(?=settings))(?=([a-z]+\.\w+))", text)}
    whole = {group for group in groups_of(Settings) if f"{group}.model_dump" in read}
    names = {name for name in SETTINGS if name.partition(".")[0] not in whole}
    homes = {name: "policy." if name in Policy.model_fields else "settings." for name in names if "." not in name}
    handed_on = {f"reranker.{name}" for name in RerankerOptions.model_fields}  # the group itself creates a reranker
    proxy = (ROOT / "serve" / "proxy" / "__init__.py").read_text()
    by_proxy = {f"policy.{name}" for name in Policy.model_fields if f'"RAYDEX_{name.upper()}"' in proxy}
    unread = {homes.get(name, "") + name for name in names} - read - handed_on - by_proxy
    assert not unread, f"pass these on, most in pipelines/answering/factory.py or serve/app.py: {unread}"


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return a page's heading anchors on a code host."""
    headings = re.findall(r"^#+ +(.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *RECORDS, ROOT / "CHANGELOG.md"], ids=name_of)
def test_every_link_between_pages_leads_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)", page.read_text()):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name_of(page)}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{name_of(page)}: {target}#{anchor}"
