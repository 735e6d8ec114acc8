"""Reads the workspaces file: their bot tokens, and the collections of their channels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pipelines.text.mistakes import describe_mistakes
from pipelines.text.parsing import NotParsed, parse_yaml
from serve.chat.running import ChatRefused


def _check_team(id: str) -> str:
    if not re.fullmatch(r"[TE][A-Z0-9]+", id):
        raise ValueError(f"{id!r} is not a workspace ID: an ID starts with T, as in https://app.slack.com/client/T…/C…")
    return id


def _check_channel(id: str) -> str:
    if not re.fullmatch(r"[CGD][A-Z0-9]+", id):
        raise ValueError(f"{id!r} is not a channel ID: an ID starts with C and is at the end of the channel's details")
    return id


TeamId = Annotated[str, AfterValidator(_check_team)]
ChannelId = Annotated[str, AfterValidator(_check_channel)]


class BadWorkspaces(ChatRefused):
    """The workspaces file can't be used; the message names the file, the place and the remedy."""


class WorkspaceEntry(BaseModel):
    """A workspace: the variable with its bot token, its collection, the collections of individual channels."""

    model_config = ConfigDict(extra="forbid")

    token: str = ""
    collection: str = ""
    channels: dict[ChannelId, str] = {}


class WorkspaceFile(BaseModel):
    """The file: the default collection, and the workspaces by id."""

    model_config = ConfigDict(extra="forbid")

    collection: str = ""
    workspaces: dict[TeamId, WorkspaceEntry] = {}


@dataclass(frozen=True, slots=True)
class Workspaces:
    """The collection of each channel ("": the service's default), and the bot tokens by workspace."""

    file: WorkspaceFile = field(default_factory=WorkspaceFile)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)

    def collection(self, team: str, channel: str) -> str:
        """Return the collection for a question in `channel`."""
        entry = self.file.workspaces.get(team, WorkspaceEntry())
        return entry.channels.get(channel) or entry.collection or self.file.collection

    @property
    def collections(self) -> set[str]:
        """All collections named in the file."""
        entries = self.file.workspaces.values()
        named = {self.file.collection, *(entry.collection for entry in entries)}
        return {*named, *(name for entry in entries for name in entry.channels.values())} - {""}


def read_workspaces(path: str, variables: Mapping[str, str], collection: str = "") -> Workspaces:
    """Return the workspaces in a file ("": none), with the tokens from `variables`. Raises BadWorkspaces.

    `collection` is the default if the file names none.
    """
    if not path:
        return Workspaces(WorkspaceFile(collection=collection))
    file = _parse(path)
    if collection and not file.collection:
        file = file.model_copy(update={"collection": collection})
    tokens = {}
    for team, entry in file.workspaces.items():
        if not entry.token:
            continue
        if entry.token.startswith("xox"):
            raise BadWorkspaces(f"{path}: {team}: token: write the name of the variable that holds it, not the token")
        if not variables.get(entry.token):
            raise BadWorkspaces(f"{path}: {team}: token: the variable {entry.token} is not set")
        tokens[team] = variables[entry.token]
    return Workspaces(file, tokens)


def _parse(path: str) -> WorkspaceFile:
    try:
        return WorkspaceFile.model_validate(parse_yaml(Path(path).read_text("utf-8")) or {})
    except OSError as error:
        raise BadWorkspaces(f"{path} can't be read: {error.strerror or error}") from error
    except NotParsed as error:
        raise BadWorkspaces(f"{path} is not valid YAML: {error}") from error
    except ValidationError as error:
        raise BadWorkspaces(f"{path}: {describe_mistakes(error, WorkspaceFile)}") from error
