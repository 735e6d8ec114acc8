"""Defines the names of settings, `group.name`, and the ways to write them.

`RAYDEX_LLM__MODEL` in the environment is `llm.model`. A single underscore works too, also in the name of a flat value.
This module doesn't know any particular setting.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

PREFIX = "raydex_"
# Variables that serve as fallbacks for other variables.
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


def full_name(name: str, model: type[BaseModel]) -> str:
    """Return the full name `group.name` of a setting of `model`, or `name` itself if it has no group."""
    groups = groups_of(model)
    group, _, field = name.partition("_")
    return f"{group}.{field}" if group in groups and field in groups[group].model_fields else name


def nest(values: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return values by name, with a dict for each group; of two values for one setting, the later one wins."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        new = full_name(name, model)
        group, _, field = new.partition(".")
        if field:
            nested[group] = {**_as_dict(nested.get(group, {})), field: value}
        elif isinstance(value, Mapping) and group in groups_of(model):
            nested[group] = {**_as_dict(nested.get(group, {})), **value}
        else:
            nested[name] = value
    return nested


def _as_dict(group: Any) -> dict[str, Any]:
    return (
        {name: getattr(group, name) for name in group.model_fields_set}
        if isinstance(group, SettingsGroup)
        else dict(group)
    )


def rename_variables(variables: Mapping[str, str | None], model: type[BaseModel]) -> dict[str, str | None]:
    """Return lower-case environment variables under the names from which pydantic reads the settings of `model`."""
    renamed: dict[str, str | None] = {}
    for variable, value in variables.items():
        name = variable.removeprefix(PREFIX)
        new = full_name(name, model) if variable.startswith(PREFIX) else name
        renamed.setdefault(PREFIX + new.replace(".", "__") if new != name else variable, value)
    stand_ins = {name: variables[other] for other, name in STAND_INS.items() if other in variables}
    return {**stand_ins, **renamed}


def variable_of(name: str) -> str:
    """Return the name of a setting's environment variable."""
    return (PREFIX + name.replace(".", "__")).upper()


def flatten(values: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the values in dicts of groups by their full names, as settings of `model`."""
    groups, flat = groups_of(model), dict[str, Any]()
    for name, value in values.items():
        flat |= {f"{name}.{key}": one for key, one in value.items()} if name in groups else {name: value}
    return flat


def change(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return `settings` with other values, given by their full names; the values are not validated."""
    updates: dict[str, Any] = {}
    for name, value in values.items():
        group, _, field = name.partition(".")
        before = updates.get(group, getattr(settings, group))
        updates[group] = before.model_copy(update={field: value}) if field else value
    return settings.model_copy(update=updates)
