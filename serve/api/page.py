"""Serves the page web/index.html, which may run its own script and nothing else."""

import base64
import hashlib
import re
from importlib import resources

from fastapi import FastAPI
from fastapi.responses import HTMLResponse


def serve_page(app: FastAPI, path: str) -> None:
    """Add the page to `app` at `path`."""
    text = resources.files("serve").joinpath("web/index.html").read_text("utf-8")
    headers = {
        "Content-Security-Policy": content_security_policy(text),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    @app.get(path, include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(text, headers=headers)


def content_security_policy(page: str) -> str:
    """Return the policy that lets `page` run its own script and style, by their hashes, and call its own service."""
    own = {tag: _hashes(page, tag) for tag in ("script", "style")}
    return (
        f"default-src 'none'; script-src {own['script']}; style-src {own['style']}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> str:
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
