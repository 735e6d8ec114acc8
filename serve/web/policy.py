"""Builds the Content-Security-Policy of a page."""

import base64
import hashlib
import re


def content_security_policy(page: str, also: str = "") -> str:
    """Return the policy that lets `page` run its own script and style, by their hashes, and call its own service.

    `also` is an additional origin for scripts and styles.
    """
    script, style = (f"{_hashes(page, tag)} {also}".strip() or "'none'" for tag in ("script", "style"))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> str:
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
