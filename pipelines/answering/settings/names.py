"""The names of settings: `group.name`, the ways to write them, and the names of the version before.

`RAYDEX_LLM__MODEL` in the environment is `llm.model`; one underscore does, and so it does as the name of a flat value.
Names of the version before are read for one version more, with a warning; names.yaml has them. Knows no setting.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from pipelines.text.phrases import read_table

log = logging.getLogger(__name__)

PREFIX = "raydex_"
_TABLE = read_table(__name__)
OLD_NAMES: Mapping[str, str] = _TABLE["old"]
FORMER_VALUES: Mapping[str, str] = _TABLE["former_values"]
GONE = {name: f"{name} is gone, as {why}. Unset it" for name, why in _TABLE["gone"].items()}
# Variables that stand in for another one that is not set.
STAND_INS = {"openai_base_url": "raydex_embedding__url", "openai_api_key": "raydex_embedding__key"}
Settings = TypeVar("Settings", bound=BaseModel)


class SettingsGroup(BaseModel):
    """The settings of one step."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def groups_of(model: type[BaseModel]) -> dict[str, type[SettingsGroup]]:
    """Return the groups of settings of `model` by name."""
    annotated = {name: field.annotation for name, field in model.model_fields.items()}
    return {
        name: kind for name, kind in annotated.items() if isinstance(kind, type) and issubclass(kind, SettingsGroup)
    }


def full_name(name: str, model: type[BaseModel], value: Any = None) -> str:
    """Return the name of a setting of `model` as it is now, `group.name`; `name` itself if it is of no group."""
    groups = groups_of(model)
    if name in FORMER_VALUES and name in groups and not _is_group(value, name, groups[name]):
        return FORMER_VALUES[name]
    group, _, field = name.partition("_")
    if group in groups and field in _fields(group, groups[group]):
        return f"{group}.{field}"
    new = OLD_NAMES.get(name, "")
    return new if new.partition(".")[0] in groups else name


def _fields(name: str, group: type[SettingsGroup]) -> set[str]:
    """Return the fields of a group, with those that are gone."""
    return {*group.model_fields, *(gone.removeprefix(f"{name}.") for gone in GONE if gone.startswith(f"{name}."))}


def _is_group(value: Any, name: str, group: type[SettingsGroup]) -> bool:
    return isinstance(value, group) or (isinstance(value, Mapping) and value.keys() <= _fields(name, group))


def _is_old(name: str) -> bool:
    return OLD_NAMES.get(name, name) not in GONE and (name in OLD_NAMES or name in FORMER_VALUES)


def nest(values: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return values by their names now, those of groups in a dict each; of two for one setting the later counts.

    Names of the version before are named in one warning. Raises ValueError for a setting that is gone.
    """
    nested: dict[str, Any] = {}
    old = {}
    for name, value in values.items():
        new = full_name(name, model, value)
        if new != name and _is_old(name):
            old[name] = new
        group, _, field = new.partition(".")
        if field:
            nested[group] = {**_as_dict(nested.get(group, {})), field: value}
        elif isinstance(value, Mapping) and group in groups_of(model):
            nested[group] = {**_as_dict(nested.get(group, {})), **value}
        else:
            nested[name] = value
    _refuse_gone(nested)
    warn_of_old(old)
    return nested


def _refuse_gone(nested: Mapping[str, Any]) -> None:
    for name, why in GONE.items():
        group, _, field = name.partition(".")
        if field in _as_dict(nested.get(group, {})):
            raise ValueError(why)


def _as_dict(group: Any) -> dict[str, Any]:
    return (
        {name: getattr(group, name) for name in group.model_fields_set}
        if isinstance(group, SettingsGroup)
        else dict(group)
    )


def warn_of_old(old: Mapping[str, str]) -> None:
    """Say in one line which settings have new names; `old` maps names to those of now."""
    if old:
        renamed = ", ".join(f"{name} is {new} ({variable_of(new)})" for name, new in sorted(old.items()))
        log.warning("settings have new names, the old ones will go with the next version: %s", renamed)


def rename_variables(variables: Mapping[str, str | None], model: type[BaseModel]) -> dict[str, str | None]:
    """Return environment variables, in lower case, under the names that pydantic reads the settings of `model` from."""
    renamed: dict[str, str | None] = {}
    old = {}
    for variable, value in variables.items():
        name = variable.removeprefix(PREFIX)
        new = full_name(name, model, _read_json(value)) if variable.startswith(PREFIX) else name
        if new != name and _is_old(name):
            old[name] = new
        renamed.setdefault(PREFIX + new.replace(".", "__") if new != name else variable, value)
    warn_of_old(old)
    stand_ins = {name: variables[other] for other, name in STAND_INS.items() if other in variables}
    return {**stand_ins, **renamed}


def _read_json(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return (PREFIX + name.replace(".", "__")).upper()


def flatten(values: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return values of settings of `model` by their full names, of dicts for groups."""
    groups, flat = groups_of(model), dict[str, Any]()
    for name, value in values.items():
        flat |= {f"{name}.{key}": one for key, one in value.items()} if name in groups else {name: value}
    return flat


def change(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return `settings` with other values, by their full names; they are not checked."""
    updates: dict[str, Any] = {}
    for name, value in values.items():
        group, _, field = name.partition(".")
        before = updates.get(group, getattr(settings, group))
        updates[group] = before.model_copy(update={field: value}) if field else value
    return settings.model_copy(update=updates)
