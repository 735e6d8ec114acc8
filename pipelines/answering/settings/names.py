"""The names of settings: `group.name`, and the ways to write them.

`RAYDEX_LLM__MODEL` in the environment is `llm.model`; one underscore does too, also in the name of a flat value. Knows
no setting.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

PREFIX = "raydex_"
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


def full_name(name: str, model: type[BaseModel]) -> str:
    """Return the full name, `group.name`, of a setting of `model`; `name` itself if it is of no group."""
    groups = groups_of(model)
    group, _, field = name.partition("_")
    return f"{group}.{field}" if group in groups and field in groups[group].model_fields else name


def nest(values: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return values by name, those of groups in a dict each; of two for one setting the later counts."""
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
    """Return environment variables, in lower case, under the names that pydantic reads the settings of `model` from."""
    renamed: dict[str, str | None] = {}
    for variable, value in variables.items():
        name = variable.removeprefix(PREFIX)
        new = full_name(name, model) if variable.startswith(PREFIX) else name
        renamed.setdefault(PREFIX + new.replace(".", "__") if new != name else variable, value)
    stand_ins = {name: variables[other] for other, name in STAND_INS.items() if other in variables}
    return {**stand_ins, **renamed}


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
