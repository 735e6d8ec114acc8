"""Reads the front matter of a source: fields in YAML or TOML between two lines of marks."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pipelines.text.parsing import NotParsed, parse_toml, parse_yaml

_HEAD = 20_000  # characters in which front matter is looked for
# Empty lines may come first.
FRONT_MATTER = re.compile(r"\A\ufeff?\s*^(---|\+\+\+)[ \t]*\r?\n(.*?)^\1[ \t]*\r?$\n?", re.MULTILINE | re.DOTALL)


def front_matter(source: bytes | str) -> Mapping[str, Any]:
    """Return the fields of a source's front matter, empty if there is none or it can't be read."""
    head = source[:_HEAD]
    text = head if isinstance(head, str) else head.decode("utf-8-sig", "replace")
    match = FRONT_MATTER.match(text.replace("\r\n", "\n"))
    with suppress(NotParsed):  # PyYAML rejects tabs that YAML allows in lists
        fields = (parse_yaml if match[1] == "---" else parse_toml)(match[2].expandtabs()) if match else None
        return fields if isinstance(fields, dict) else {}
    return {}
