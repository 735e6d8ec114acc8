"""Makes an HTML page that contains its data, style and script; nothing else may run or load.

This module knows no report. Texts are embedded as JSON that can't end its element.
"""

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StandalonePage:
    """The text of a page, and the content security policy that allows only its own script and style."""

    text: str
    policy: str

    @classmethod
    def of(
        cls, template: str, data: Any, *, style: str = "", script: str, title: str = "", also: str = ""
    ) -> "StandalonePage":
        """Fill @@POLICY@@, @@TITLE@@, @@STYLE@@, @@SCRIPT@@ and @@DATA@@ of a template.

        `also` are additional rules of the policy: `connect-src 'self'`, or a different `style-src`.
        """
        rules = [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            *([] if "style-src" in also else [f"style-src {_hash(style)}"]),
            *([also] if also else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
        policy = "; ".join(rules)
        parts = {
            "POLICY": html.escape(policy, quote=False),
            "TITLE": html.escape(title),
            "STYLE": style,
            "SCRIPT": script,
            "DATA": inert_json(data),
        }
        return cls(re.sub(r"@@(\w+)@@", lambda mark: parts[mark[1]], template), policy)


def inert_json(data: Any) -> str:
    """Return JSON that can't end its script element or affect the rest of the page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
