"""Reads the arguments and flags of a command with cyclopts, and explains mistakes in them.

A command is a function with typed parameters; `command` makes the app that reads them. The types below are the flags
that several commands share.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from inspect import BoundArguments
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from cyclopts import App, Group, Parameter
from cyclopts.exceptions import CycloptsError, MissingArgumentError, UnusedCliTokensError
from pydantic import BaseModel, ValidationError, create_model

from jobs.columns import Columns
from jobs.verbs import VERBS
from pipelines.text.mistakes import describe_mistakes

M = TypeVar("M", bound=BaseModel)

Json = Annotated[bool, Parameter("--json", help="print the result as one JSON object, on the last line")]
Wait = Annotated[bool, Parameter(help="wait for another run on the collection to end")]
NoLLM = Annotated[bool | None, Parameter("--no-llm", help="quote the documentation, without any language model")]
NoRay = Annotated[bool, Parameter(help="do all work in this process")]

OR_DEFAULT = "(default: the one set by `raydex default`, else the only one)"
Name = Annotated[str, Parameter(help="name of the collection")]
"""A collection, as an argument or with --collection."""
SOURCE = "name of the collection, with the settings of its last run; or its file (*.yaml)"
Source = Annotated[str, Parameter("--collection", help=SOURCE)]
"""A collection by its name or by its file, as an argument or with --collection."""

ARGUMENTS, FLAGS, RUNNING = Group("Arguments", sort_key=0), Group("Flags", sort_key=1), Group("Running", sort_key=9)
Fresh = Annotated[bool, Parameter(group=RUNNING, help="ask every question again and ignore stored answers")]
Workers = Annotated[int, Parameter(group=RUNNING, help="Ray actors (0: one per CPU, none for few questions)")]
AtOnce = Annotated[
    int, Parameter(group=RUNNING, help="questions at once (0: one, or 8 if the language model runs on another machine)")
]

Work = Callable[..., int]


def shown_default(value: object) -> str | None:
    """Return a default as help shows it, None if help leaves it out."""
    return None if value is None or value is False or value in ((), [], "") else str(value)


PLAIN = Parameter(negative=(), show_default=shown_default, allow_repeating=True)
"""Flags have no negative form; if a flag is given twice, the last value counts."""


class BadFlags(ValueError):
    """The arguments or flags of a command can't be used; the message names them and the fix."""


def command(verb: str, doc: str | None, work: Work | None = None, *, note: str = "", kind: type[App] = App) -> App:
    """Return the app of `raydex <verb>`, which calls `work`. Without `work`, register functions as the verb's actions.

    The help has the first paragraph of `doc`, and ends with `note` and the verb's examples. The app has the name
    that the user typed: `raydex <verb>`, or `python -m jobs.<file>`.
    """
    app = kind(
        name=called(verb),
        help=(doc or "").split("\n\n")[0].replace("\n", " "),
        help_epilogue="\n\n".join(filter(None, [note, examples(verb)])),
        help_format="plaintext",
        help_formatter=Columns(),
        help_flags=("--help", "-h"),
        version_flags=(),
        group_parameters=FLAGS,
        group_arguments=ARGUMENTS,
        group_commands=Group("Actions"),
        default_parameter=PLAIN,
    )
    for flag in app.help_flags:
        app[flag].show = False
    if work is not None:
        app.default(work)
    return app


def called(verb: str) -> str:
    """Return the command that the user typed for a verb."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name if spec else ""
    return f"python -m {module}" if module.startswith("jobs.") and module != "jobs.__main__" else f"raydex {verb}"


def examples(verb: str) -> str:
    """Return the examples of a verb as the end of its help."""
    return "\n".join(["Examples:", *(f"  {example}" for example in VERBS[verb].examples)])


def read_words(app: App, words: Sequence[str]) -> tuple[Work, BoundArguments]:
    """Return the function of `app` that the command line calls, and its arguments.

    Raises BadFlags.
    """
    try:
        work, arguments, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise BadFlags(describe(error, words)) from error
    if work == app.help_print and not words:
        raise BadFlags(f"choose an action: {', '.join(actions_of(app))}")
    return work, arguments


def actions_of(app: App) -> list[str]:
    """Return the names of the actions of a verb that has several."""
    return [name for name in app if not name.startswith("-")]


def describe(error: CycloptsError, words: Sequence[str]) -> str:
    """Return the message about a command line that can't be read."""
    error.verbose = False
    if isinstance(error.__cause__, ValidationError):
        names = {one.field_info.name: one.name for one in (error.argument.children if error.argument else ())}
        return describe_flags(error.__cause__, names=names)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        word = error.unused_tokens[0]
        why = ": --collection already names the collection" if "--collection" in " ".join(words) else ""
        return f"unexpected argument {word!r}{why}"
    if isinstance(error, MissingArgumentError) and error.argument and not error.argument.tokens and not error.keyword:
        flag = error.argument.name
        word = f"{flag.removeprefix('--').upper()} is missing: give it as an argument or with {flag}"
        return word if flag.startswith("--") and error.argument.field_info.is_positional else f"{flag} is missing"
    said = str(error).strip()
    return f"{said[0].lower()}{said[1:].rstrip('.')}"


def at_most_one(**flags: object) -> None:
    """Raise BadFlags if more than one of these flags was given."""
    given = [f"--{name.strip('_').replace('_', '-')}" for name, value in flags.items() if value]
    if len(given) > 1:
        raise BadFlags(f"{given[0]} and {given[1]} can't be combined: give one of them")


def flags_of(
    model: type[BaseModel], group: Group = FLAGS, named: Mapping[str, Parameter] = MappingProxyType({})
) -> type[BaseModel]:
    """Return the flags that fill `model`: one for each field with a description, which is its help.

    `named` has the parameters of fields whose flags have other names. `given` returns the fields that the command line
    set, and `fill` returns the model.
    """
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if field.description:
            about = Parameter.combine(Parameter(help=field.description, group=group), named.get(name))
            kind: Any = Annotated[field.annotation, about]  # pyrefly: ignore[not-a-type]
            fields[name] = (kind, copy(field))
    return Parameter("*")(create_model(f"{model.__name__}Flags", **fields))


def given(flags: BaseModel | None) -> dict[str, Any]:
    """Return the fields of a model of flags that the command line set; None is a model of which it set nothing."""
    return flags.model_dump(exclude_unset=True) if flags else {}


def fill(model: type[M], flags: BaseModel | None) -> M:
    """Return the model that the flags give. Raises BadFlags."""
    try:
        return model.model_validate(given(flags))
    except ValidationError as error:
        raise BadFlags(describe_flags(error, model)) from error


def describe_flags(
    error: ValidationError, model: type[BaseModel] | None = None, names: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the message about values that a model refused; `names` has the flags of fields."""

    def flag(path: str) -> str:
        field = path.partition(".")[0]  # what follows is the place in the values of a repeated flag
        return names.get(path) or f"--{field.replace('_', '-')}"

    return describe_mistakes(error, model, flag)


def all_commands(app: App) -> Iterator[tuple[str, App]]:
    """Yield a verb's app and the apps of its actions, each with its command line."""
    yield app.name[0], app
    for name in actions_of(app):
        yield f"{app.name[0]} {name}", app[name]


def list_flags(app: App) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the names of each argument and flag of a command, with its help."""
    if app.default_command is not None:
        for argument in app.assemble_argument_collection(default_parameter=PLAIN):
            if argument.parse and argument.show:
                yield tuple(argument.names), argument.parameter.help or ""
