"""Makes an HTML page with its data, style and script in it; nothing else may run or load.

Knows no report. Texts reach the page as JSON that can't end its element.
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
    """The text of a page, and the content security policy that lets its own script and style run alone."""

    text: str
    policy: str

    @classmethod
    def of(
        cls, template: str, data: Any, *, style: str = "", script: str, title: str = "", also: str = ""
    ) -> "StandalonePage":
        """Fill @@POLICY@@, @@TITLE@@, @@STYLE@@, @@SCRIPT@@ and @@DATA@@ of a template.

        `also` is what the policy allows besides: `connect-src 'self'`, or a `style-src` of its own.
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
    """Return JSON that can't end its script element, nor anything else of the page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
