"""Writes the reference from the code: settings from their classes, flags from the commands, routes from OpenAPI.

    python docs/reference.py --write     replace docs/settings.md
    python docs/reference.py FOLDER      write settings.md, flags.md and http.md into FOLDER, as the site has them

docs/settings.yaml has the meaning of each setting; tests compare it and docs/settings.md with the classes.
"""

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from jobs.flags import all_commands, list_flags  # noqa: E402
from jobs.verbs import VERBS  # noqa: E402
from serve.routes import create_app  # noqa: E402
from serve.settings import Settings  # noqa: E402

Schema = Mapping[str, Any]
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


class NoMeaning(ValueError):
    """docs/settings.yaml and the classes have different settings."""


def cell(text: object) -> str:
    """A text as one cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [tuple(head), *([cell(each) for each in row] for row in rows)]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0]), *text[1:]]) + "\n"


def named(schema: Schema, below: Schema) -> tuple[str, Schema]:
    """The name of the object that a schema refers to, and its schema; "" for anything else."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return name, below.get(name, {})


# ---------------------------------------------------------------------------------------------- settings


def settings(schema: Schema, groups: Schema, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Each setting's dotted name and its schema."""
    for name, field in schema["properties"].items():
        _, group = named(field, groups)
        if group.get("type") == "object":
            yield from settings(group, groups, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def range_of(field: Schema) -> str:
    """The limits or the choices of a setting."""
    kinds = [field, *field.get("anyOf", ())]
    choices = [str(value) for kind in kinds for value in kind.get("enum", ())]
    between = [f"{kind['minimum']:,}–{kind['maximum']:,}" for kind in kinds if {"minimum", "maximum"} <= kind.keys()]
    limits = [f"{sign} {kind[key]:,}" for kind in kinds for key, sign in LIMITS.items() if key in kind]
    return ", ".join(between or limits or choices)


def default_of(field: Schema) -> str:
    value = field.get("default")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in ([], {}) else "" if value in (None, ".") else str(value)


def default_and_range_of(field: Schema) -> str:
    """The default of a setting, then its limits or choices in brackets; each only if there is one."""
    limits = range_of(field)
    return " ".join(filter(None, (default_of(field), limits and f"({limits})")))


def words() -> Mapping[str, Any]:
    return yaml.safe_load((DOCS / "settings.yaml").read_text("utf-8"))


def meanings() -> dict[str, str]:
    return dict(words()["meanings"])


def settings_page() -> str:
    schema, meaning = Settings.model_json_schema(), meanings()
    declared = dict(settings(schema, schema["$defs"]))
    if unlike := declared.keys() ^ meaning.keys():
        names = ", ".join(sorted(unlike))
        raise NoMeaning(f"`meanings` in docs/settings.yaml has each setting and no other: add or delete there {names}")
    rows = [(f"`{name}`", default_and_range_of(declared[name]), said) for name, said in meaning.items()]
    return f"# Settings\n\n{words()['introduction']}\n" + table(("setting", "default (limits)", "meaning"), rows)


# ---------------------------------------------------------------------------------------------- flags


def flags_page() -> str:
    parts = [
        "# Flags of each command\n\nAs in `raydex COMMAND --help`. [Commands](commands.md) says what each is for.\n"
    ]
    for verb, entry in VERBS.items():
        for name, app in all_commands(importlib.import_module(entry.module).app):
            rows = [(", ".join(f"`{one}`" for one in names), meaning) for names, meaning in list_flags(app)]
            said = f"{entry.line[0].upper()}{entry.line[1:]}." if name == f"raydex {verb}" else app.help
            parts.append(f"## {name}\n\n{cell(said)}\n\n" + (table(("flag", "meaning"), rows) if rows else ""))
    return "\n".join(parts)


# ---------------------------------------------------------------------------------------------- routes


def kind_of(schema: Schema) -> str:
    """The type of a value in a few words, with a link to its object."""
    if name := str(schema.get("$ref", "")).rpartition("/")[2]:
        return f"[{name}](#{name.lower()})"
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(kind_of(each) for each in several))
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def fields(schema: Schema) -> str:
    needed = schema.get("required", ())
    rows = [
        (f"`{name}`", kind_of(field), "yes" if name in needed else "", field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "required", "meaning"), rows) if rows else f"{kind_of(schema)}\n"


def route(method: str, path: str, given: Schema) -> str:
    parts = [f"### {method.upper()} {path}\n\n{cell(given.get('summary') or given.get('description', ''))}\n"]
    rows = [
        (f"`{p['name']}`", p["in"], kind_of(p["schema"]), p.get("description", "")) for p in given.get("parameters", ())
    ]
    parts += [table(("parameter", "in", "type", "meaning"), rows)] if rows else []
    for media in given.get("requestBody", {}).get("content", {}).values():
        parts.append(f"Body: {kind_of(media['schema'])}\n")
    replies = [
        (code, reply["description"], *map(kind_of, schemas(reply))) for code, reply in given["responses"].items()
    ]
    parts.append(table(("status", "meaning", "body"), ((*row, "")[:3] for row in replies)))
    return "\n".join(parts)


def schemas(reply: Schema) -> list[Schema]:
    return [media["schema"] for media in reply.get("content", {}).values() if media.get("schema")][:1]


def http_page() -> str:
    described = create_app(None, None).openapi()  # type: ignore[arg-type]  # nothing is asked of them
    parts = [
        "# Routes and fields\n\nFrom the service's own `/openapi.json`; [the API](api.md) has examples.\n\n## Routes\n"
    ]
    parts += [route(method, path, given) for path, ways in described["paths"].items() for method, given in ways.items()]
    parts.append("## Objects\n")
    for name, schema in described["components"]["schemas"].items():
        parts.append(f"### {name}\n\n{cell(schema.get('description', ''))}\n\n{fields(schema)}")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        (DOCS / "settings.md").write_text(settings_page(), "utf-8")
    elif len(arguments) == 1 and Path(arguments[0]).is_dir():
        for name, page in (("settings", settings_page), ("flags", flags_page), ("http", http_page)):
            (Path(arguments[0]) / f"{name}.md").write_text(page(), "utf-8")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
