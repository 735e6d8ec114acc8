"""Checks a Serve config file before deployment: `raydex serve --check deploy/serve.yaml`.

Reads only the file, and the modules it names; starts nothing. The variables of the cluster's nodes are unknown here, so
a setting that comes from them is not reported as missing.
"""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
from ray.serve.schema import ServeDeploySchema

from pipelines.text.mistakes import describe_mistakes, nearest, suggest, unknown_keys
from pipelines.text.parsing import NotParsed, parse_yaml
from serve.app import deployment_names
from serve.settings import Settings

BUILD = "serve.app:build"


class FileSettings(Settings):
    """The settings in a file's `args`, ignoring the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        **_: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values: only the file."""
        return (init_settings,)


def check_file(path: Path) -> list[str]:
    """Return the faults of a Serve config file, one line each."""
    try:
        values = parse_yaml(path.read_text("utf-8"))
    except OSError as error:
        return [f"can't be read: {(error.strerror or str(error)).lower()}"]
    except (UnicodeDecodeError, NotParsed) as error:
        return [f"is not YAML: {' '.join(str(error).split())}"]
    if not isinstance(values, Mapping):
        return [f"must be a table (`key: value`) with the keys {', '.join(ServeDeploySchema.model_fields)}"]
    faults = list(unknown_keys(values, ServeDeploySchema))
    try:
        ServeDeploySchema.model_validate(values)
    except ValidationError as error:
        return [*faults, *describe_mistakes(error, ServeDeploySchema, between="\n").splitlines()]
    for number, application in enumerate(values.get("applications") or ()):
        faults += [f"applications.{number}.{fault}" for fault in _check_application(application)]
    return faults


def _check_application(application: Mapping[str, Any]) -> Iterator[str]:
    path = application["import_path"]
    if path == BUILD:
        yield from _check_args(application)
    elif nearest(path, [BUILD], 0.8):
        yield f"import_path is {path!r}: did you mean {BUILD}?"
    elif why := _why_not_imported(path):
        yield f"import_path is {path!r}: {why}"


def _check_args(application: Mapping[str, Any]) -> Iterator[str]:
    try:
        settings = FileSettings(**application.get("args") or {})
    except ValidationError as error:
        yield from describe_mistakes(error, Settings, lambda path: f"args.{path}", "\n").splitlines()
        return
    names = deployment_names(settings)
    for number, deployment in enumerate(application.get("deployments") or ()):
        if deployment["name"] not in names:
            yield f"deployments.{number}.name is {deployment['name']!r}, which `args` do not make: " + suggest(
                deployment["name"], names
            )


def _why_not_imported(path: str) -> str:
    """Return why a module or its attribute can't be imported, "" if it can."""
    module, _, attribute = path.replace(":", ".").rpartition(".")
    try:
        found = importlib.import_module(module or path)
    except Exception as error:  # importing a module can raise anything
        return f"{module or path} can't be imported: {error}"
    return "" if hasattr(found, attribute) else f"{module} has no {attribute!r}"
