"""Explains in plain words which values a model rejects: the place, the value, and the values allowed.

`mistakes_of` reads a ValidationError of any model. For an unknown key, it suggests the intended name or the place where
the key belongs. Values of secret fields are never shown. Independent of Raydex's models.
"""

import dataclasses
import difflib
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AliasChoices, BaseModel, SecretStr, ValidationError

from pipelines.text.phrases import read_table

OURS = ("value_error", "assertion_error")  # raised by our own checks, whose messages name the value
UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument", "no_such_attribute")
ELSE = "it can't be used"
# Minimum similarity for a suggestion: "exlude" and "exclude" have 0.92, "retreival" and "retrieval" 0.89. Unrelated
# short names, "url" and "key", have less than 0.4. From SURE on, a name has priority over the same key elsewhere.
NEAR, SURE = 0.6, 0.75
MOST_SHOWN = 80  # characters of a value
# A person reads no more than that at once, and finding a suggestion takes a millisecond.
MOST_PROBLEMS = 30
_PLURAL_OF_ONE = re.compile(r"\b(1 (?:character|byte|digit))s\b")
_KEY = "[key]"  # pydantic's last path step for a mapping's key instead of its value

Place = tuple[str, ...]


@dataclass(frozen=True)
class Mistake:
    """One mistake: the place of the value, the value in short form, the reason, and pydantic's error type.

    `value` is "" if it is secret or would add nothing.
    """

    place: Place
    value: str
    why: str
    kind: str

    @property
    def path(self) -> str:
        """The place as a dotted path: `sites.0.exclude`."""
        return ".".join(self.place)

    def describe(self, name: Callable[[str], str] = str) -> str:
        """Return the mistake as one sentence. `name` maps the path to the name that readers know, such as `--k`."""
        if not self.place:
            return self.why if self.kind in OURS or not self.value else f"{self.value}: {self.why}"
        called = name(self.path)
        if self.why.startswith("is ") and self.kind not in OURS:  # is missing, is unknown
            return f"{called} {self.why}"
        return f"{called} is {self.value}: {self.why}" if self.value else f"{called}: {self.why}"


def describe_mistakes(
    error: ValidationError, model: Any = None, name: Callable[[str], str] = str, between: str = "; "
) -> str:
    """Return the mistakes in `error` in plain words. `model` is the validated type: a model or a type with models."""
    return between.join(one.describe(name) for one in mistakes_of(error.errors(include_url=False), model))


def mistakes_of(problems: Sequence[Any], model: Any = None) -> list[Mistake]:
    """Return one mistake per place. `problems` are the `errors()` of a ValidationError, `model` the validated type.

    For a value of a union type, pydantic reports a problem for each member type. These are merged into one; if there is
    a problem with a part of the value, only that one is reported. Only the first MOST_PROBLEMS problems are read.
    """
    found: dict[tuple[Place, bool], list[Mistake]] = {}
    for problem in problems[:MOST_PROBLEMS]:
        mistake = _mistake(problem, model)
        found.setdefault((mistake.place, _KEY in problem["loc"]), []).append(mistake)
    wholes = {place[:end] for place, _ in found for end in range(len(place))}
    return [_join(mistakes) for (place, _), mistakes in found.items() if place not in wholes]


def unknown_keys(values: Any, model: Any, place: Place = ()) -> Iterator[str]:
    """Yield a line for each key of `values` that `model` does not have and would silently ignore."""
    fields = {name: field for kind in _members(model) for name, field in _fields(kind).items()}
    for key, value in values.items() if isinstance(values, Mapping) and fields else ():
        where = (*place, str(key))
        if key in fields:
            yield from unknown_keys(value, fields[key].kind, where)
        else:
            yield f"{'.'.join(where)} is unknown: {suggest(str(key), list(fields))}"
    for number, value in enumerate(values if isinstance(values, list) else ()):
        for kind in _members(model):
            for field in _inner(kind, number):
                yield from unknown_keys(value, field.kind, (*place, str(number)))


def nearest(name: str, names: Sequence[str], least: float = NEAR) -> str | None:
    """Return the name in `names` that `name` probably means, or None if none reaches the similarity `least`."""
    rated = [(_likeness(name, one), one) for one in names]
    best = max(rated, key=lambda pair: pair[0], default=(0.0, ""))
    return best[1] if best[0] >= least else None


def suggest(name: str, names: Sequence[str]) -> str:
    """Return `did you mean …?`, or else the list of valid names."""
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"there are: {', '.join(names) or 'none'}"


def _likeness(name: str, other: str) -> float:
    name, other = (one.lower().replace("-", "_") for one in (name, other))
    words, others = set(re.split(r"[._]", name)), set(re.split(r"[._]", other))
    # "urls" for "start_urls", "mode" for "synthesis.mode"
    shared = 0.9 if len(name) > 2 and (words < others or others < words) else 0.0
    return max(shared, difflib.SequenceMatcher(None, name, other).ratio())


def _join(mistakes: list[Mistake]) -> Mistake:
    whys = dict.fromkeys(one.why for one in mistakes)
    common = "it must be "
    if len(whys) > 1 and all(why.startswith(common) for why in whys):
        return dataclasses.replace(mistakes[0], why=common + " or ".join(why.removeprefix(common) for why in whys))
    return dataclasses.replace(mistakes[0], why=", or ".join(whys))


def _mistake(problem: Mapping[str, Any], model: Any) -> Mistake:
    walk = _walk(problem["loc"], model)
    kind, value = problem["type"], "" if walk.secret else _show(problem.get("input"))
    if kind in OURS:
        context = problem.get("ctx") or {}
        said = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        said = str(context.get("error") or said)
        return Mistake(walk.place, "", said, kind)
    if kind in UNKNOWN and walk.place:
        return Mistake(walk.place, "", f"is unknown: {_meant(walk, model)}", kind)
    own = kind.startswith("missing_a") or kind == "missing" or kind not in _table()
    return Mistake(walk.place, "" if own else value, _say(problem), kind)


def _say(problem: Mapping[str, Any]) -> str:
    """Return the rule that the value breaks, in words."""
    kind, context = problem["type"], problem.get("ctx") or {}
    words = _table().get(kind)
    if words is None:  # one of our own kinds, which has its message, or a kind from a newer pydantic
        return ELSE if kind in _kinds() else str(problem["msg"])
    said = words.format_map({name: _number(one) for name, one in context.items()})
    said = _PLURAL_OF_ONE.sub(r"\1", said)
    value, expected = problem.get("input"), str(context.get("expected", ""))
    choices = [one.strip("'") for one in expected.replace(" or ", ", ").split(", ")]
    near = nearest(value, choices) if isinstance(value, str) and expected else None
    return f"{said}; did you mean {near}?" if near else said


def _number(value: Any) -> Any:
    """Return a number as people write it (2,000 or 0.5), and any other value unchanged."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
    return value


@cache
def _table() -> Mapping[str, str]:
    return {kind: str(words) for kind, words in read_table(__name__).items()}


@cache
def _kinds() -> frozenset[str]:
    from pydantic_core.core_schema import ErrorType

    return frozenset(get_args(ErrorType))


def _show(value: Any) -> str:
    """Return a value in short form, without the contents of lists and mappings."""
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case Mapping():
            return "a table"
        case list() | tuple() | set() | frozenset():
            return "a list"
        case str() | int() | float():
            shown = repr(value)
            return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…"
    return f"of the type {type(value).__name__}"


# ------------------------------------------------------------------------------------- the path to a value in a model


@dataclass(frozen=True)
class _ValuePath:
    """The path from a model to a value: its place, the types around its last step, whether it may contain a secret."""

    place: Place
    around: tuple[Any, ...]
    secret: bool


def _walk(loc: Sequence[int | str], model: Any) -> _ValuePath:
    """Follow the steps of pydantic's path, skipping the steps that only name the member of a union."""
    kinds: tuple[Any, ...] = _members(model)
    around, place, secret = kinds, list[str](), False
    several = len(kinds) > 1
    for step in loc:
        if step == _KEY:
            continue
        if several and not any(_has(kind, step) for kind in kinds):
            several = False  # the step names a member of the union
            continue
        if model is None and isinstance(step, str) and step.startswith(("function-", "list[", "constrained-")):
            continue
        around = kinds
        place.append(str(step))
        inner = [one for kind in kinds for one in _inner(kind, step)]
        secret = secret or any(field.secret for field in inner)
        kinds = tuple(member for field in inner for member in _members(field.kind))
        several = len(kinds) > 1
    return _ValuePath(tuple(place), around, secret or any(_holds_secret(kind) for kind in kinds))


@dataclass(frozen=True)
class _Field:
    kind: Any
    secret: bool = False


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types that a value may have, except None."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _members(get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return tuple(member for one in get_args(kind) if one is not type(None) for member in _members(one))
    if hasattr(kind, "__value__"):  # a type alias
        return _members(kind.__value__)
    return () if kind in (None, Any) else (kind,)


def _has(kind: Any, step: int | str) -> bool:
    if isinstance(step, int):
        return get_origin(kind) in (list, tuple, set, frozenset) or _is_sequence(kind)
    return step in _fields(kind) or _is_table(kind)


def _inner(kind: Any, step: int | str) -> list[_Field]:
    """Return the types found one step inside a value of type `kind`."""
    given = get_args(kind)
    if step in (fields := _fields(kind)):
        return [fields[str(step)]]
    if _is_table(kind) and len(given) == 2:
        return [_Field(given[1])]
    if _is_sequence(kind) and given:
        whole = get_origin(kind) is tuple and Ellipsis not in given
        return [_Field(given[step] if whole and isinstance(step, int) and step < len(given) else given[0])]
    return []


def _is_table(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_sequence(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, (Sequence, set, frozenset)) and not issubclass(origin, str)


@cache
def _fields(kind: Any) -> Mapping[str, _Field]:
    """Return the fields of a model or dataclass by every name that they accept."""
    if not isinstance(kind, type):
        return {}
    if issubclass(kind, BaseModel):
        return dict(_fields_of_model(kind))
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {one.name: _Field(hints[one.name], not one.repr) for one in dataclasses.fields(kind) if one.init}
    return {}


def _fields_of_model(model: type[BaseModel]) -> Iterator[tuple[str, _Field]]:
    for name, info in model.model_fields.items():
        field = _Field(info.annotation, info.repr is False or info.annotation is SecretStr)
        yield name, field
        aliases = info.validation_alias
        for alias in aliases.choices if isinstance(aliases, AliasChoices) else [aliases]:
            if isinstance(alias, str) and alias != name:
                yield alias, field


@cache
def _holds_secret(kind: Any) -> bool:
    """Return whether a value of this type may contain a secret."""
    if kind is SecretStr:
        return True
    own = any(field.secret or any(map(_holds_secret, _members(field.kind))) for field in _fields(kind).values())
    held = (one for one in get_args(kind) if not isinstance(one, ForwardRef) and get_origin(kind) is not Literal)
    return own or any(_holds_secret(member) for one in held for member in _members(one))


# ------------------------------------------------------------------------------------------------------ unknown keys


def _meant(path: _ValuePath, model: Any) -> str:
    """Suggest a replacement for an unknown key: another name, another place, or else the list of valid keys."""
    key, names = path.place[-1], [name for kind in path.around for name in _fields(kind)]
    here = nearest(key, names)
    if here and _likeness(key, here) >= SURE:
        return f"did you mean {here}?"
    others = {name: places for name, places in _places(model).items() if name not in names}
    if key in others:
        return f"it belongs {_say_places(others[key])}"
    there = nearest(key, list(others), SURE)
    if there and not here:
        return f"did you mean {there}, {_say_places(others[there])}?"
    return suggest(key, names)


def _say_places(places: Sequence[Place]) -> str:
    named = list(dict.fromkeys(f"under {'.'.join(place)}" if place else "at the top level" for place in places))
    return " or ".join(named[:3])


@cache
def _places(model: Any) -> Mapping[str, tuple[Place, ...]]:
    """Return every key of a model and its nested models, each with the places that accept it."""
    places: dict[str, tuple[Place, ...]] = {}
    for name, place in _keys(model, (), ()):
        places[name] = (*places.get(name, ()), place)
    return places


def _keys(kind: Any, place: Place, above: tuple[Any, ...]) -> Iterator[tuple[str, Place]]:
    for member in _members(kind):
        if member in above:
            continue
        for name, field in _fields(member).items():
            yield name, place
            yield from _keys(field.kind, (*place, name), (*above, member))
        if not _fields(member) and get_origin(member) is not Literal:
            for held in get_args(member):
                if held is not Ellipsis:
                    yield from _keys(held, place, (*above, member))
