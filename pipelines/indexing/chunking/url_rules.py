"""Derives the tags and the version of a page from its URL.

The patterns come from the collection file. Independent of page content and the database.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator

from pipelines.records import digest


class InvalidUrlRule(ValueError):
    """A pattern for tags or versions is not a regular expression, or lacks a group."""


def check_pattern(pattern: str) -> str:
    """Return `pattern`. Raises InvalidUrlRule."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidUrlRule(f"URL pattern {pattern!r} is not a regular expression: {error}") from error
    return pattern


UrlPattern = Annotated[str, AfterValidator(check_pattern)]


@dataclass(frozen=True)
class UrlRules:
    """Rules for tags and versions. Raises InvalidUrlRule.

    `tags` maps a regular expression to the tag of all URLs that it matches anywhere. Group 1 of `version` captures the
    version.
    """

    tags: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None

    def __post_init__(self) -> None:
        for pattern in [*self.tags, *([self.version] if self.version else [])]:
            check_pattern(pattern)
        if self.version and not re.compile(self.version).groups:
            raise InvalidUrlRule(f"version pattern {self.version!r} needs a group (…) around the version")

    @property
    def digest(self) -> str:
        """A hash of the rules, which the index stores with each page to notice that its metadata may have changed."""
        return digest(*(f"{pattern}\t{tag}" for pattern, tag in sorted(self.tags.items())), self.version or "")[:8]

    def tags_of(self, url: str) -> tuple[str, ...]:
        """Return the tags of `url`, each once, in the order of their patterns."""
        return tuple(dict.fromkeys(tag for pattern, tag in self.tags.items() if re.search(pattern, url)))

    def version_of(self, url: str) -> str | None:
        """Return the version in `url`, if any."""
        match = re.search(self.version, url) if self.version else None
        return match.group(1) if match else None
