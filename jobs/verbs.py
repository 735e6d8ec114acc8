"""The verbs of `raydex` in groups, each with its module, its line of the help and its examples.

verbs.yaml has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.text.phrases import read_table

MODULES = {"index": "reindex"}  # verbs whose module has another name


@dataclass(frozen=True)
class Verb:
    """A verb: the module that runs it, its line of the help, its group there, and commands that show its use."""

    module: str
    line: str
    group: str
    examples: tuple[str, ...]


def read_verbs() -> Mapping[str, Verb]:
    """Return the verbs by name, in the order of the help."""
    return {
        name: Verb(f"jobs.{MODULES.get(name, name)}", entry["does"], group, tuple(entry["examples"]))
        for group, verbs in read_table("jobs.verbs").items()
        for name, entry in verbs.items()
    }


VERBS = read_verbs()
