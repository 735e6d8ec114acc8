"""Reads settings from the environment for entry points; other modules in pipelines never read it.

variables.yaml lists the RAYDEX_… variables that other parts of the code read, so that unknown ones can be reported.
"""

import functools
import logging
from collections.abc import Iterator, Mapping

from pydantic import BaseModel
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from pipelines.answering.settings.answers import AnswerSettings
from pipelines.answering.settings.names import PREFIX, groups_of, rename_variables, variable_of
from pipelines.text.mistakes import nearest
from pipelines.text.phrases import read_table

log = logging.getLogger(__name__)

_TABLE = read_table(__name__)
SERVICE, OTHERS = tuple(_TABLE["service"]), tuple(_TABLE["others"])


class _Variables(EnvSettingsSource):
    """The environment's variables, under the names that pydantic reads."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        super().__init__(settings)
        self.env_vars = rename_variables(self.env_vars, settings)


class FromVariables(BaseSettings):
    """Settings from environment variables like `RAYDEX_RETRIEVAL__LEG_DEPTH`; constructor arguments override them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX.upper(), env_nested_delimiter="__", populate_by_name=True, hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(  # pyrefly: ignore[bad-override]
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        **_: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values, the one with the highest priority first."""
        return init_settings, _Variables(settings_cls)


def explain_not_json(error: SettingsError, variables: Mapping[str, str]) -> str:
    """Return a message that names the variable whose value should be JSON but isn't, without its value."""
    name = str(error).partition('"')[2].partition('"')[0]
    given = [one for one in variables if one.lower().startswith(PREFIX) and _flat(one) == _flat(PREFIX + name)]
    called = given[0] if given else variable_of(name)
    return f'{called} is not JSON, which several values need: write [...] or {{...}}, with names and texts in "…"'


def names_of(model: type[BaseModel]) -> list[str]:
    """Return the full names of the settings of `model`."""
    groups = groups_of(model)
    alone = [name for name in model.model_fields if name not in groups]
    return [*alone, *(f"{name}.{field}" for name, group in groups.items() for field in group.model_fields)]


def unread_variables(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each RAYDEX_… variable that nothing reads, with the name that was probably meant."""
    known = {_flat(variable_of(name)): variable_of(name) for name in (*names_of(AnswerSettings), *SERVICE, *OTHERS)}
    groups = {variable_of(name.partition(".")[0]) for name in (*names_of(AnswerSettings), *SERVICE) if "." in name}
    for variable in sorted(variables):
        upper, name = variable.upper(), variable.lower().removeprefix(PREFIX)
        if not upper.startswith(PREFIX.upper()) or name.startswith(tuple(_TABLE["beginnings"])):
            continue
        if _flat(upper) not in known and upper not in groups:
            near = nearest(name, [_flat(one).removeprefix(PREFIX) for one in known])
            meant = f"did you mean {known[PREFIX + near]}?" if near else "docs/settings.md lists the settings"
            yield f"{variable} is set, but nothing reads it: {meant}"


def warn_of_unread(variables: Mapping[str, str]) -> None:
    """Log a warning for each RAYDEX_… variable that nothing reads, once per process."""
    for line in unread_variables(variables):
        _warn_once(line)


@functools.cache
def _warn_once(line: str) -> None:
    log.warning("%s", line)


def _flat(variable: str) -> str:
    """Return a variable's name with a single underscore after the group, since both spellings are read."""
    return variable.lower().replace("__", "_")
