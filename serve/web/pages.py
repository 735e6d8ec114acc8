"""Serves the page to ask at and the page that shows the API.

Each may run what comes with it, and nothing else.
"""

import base64
import hashlib
import re
from importlib import resources

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

# Swagger UI comes with the package fastapi-offline: no other host is asked for it.
SWAGGER = resources.files("fastapi_offline") / "static"
SWAGGER_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
A_DAY = {"Cache-Control": "public, max-age=86400"}


def add_pages(app: FastAPI) -> None:
    """Add `/` and `/docs` to `app`."""
    _add_page(app, "/", "index.html")
    _add_page(app, "/docs", "docs.html", also="'self'")

    @app.get("/docs/{name}", include_in_schema=False)
    async def swagger(name: str) -> Response:
        if name not in SWAGGER_FILES:
            raise HTTPException(404, "Not Found")
        return Response((SWAGGER / name).read_bytes(), media_type=SWAGGER_FILES[name], headers={**HEADERS, **A_DAY})


def _add_page(app: FastAPI, path: str, name: str, also: str = "") -> None:
    text = resources.files("serve").joinpath("web", name).read_text("utf-8")
    headers = {"Content-Security-Policy": content_security_policy(text, also), **HEADERS}

    @app.get(path, include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(text, headers=headers)


def content_security_policy(page: str, also: str = "") -> str:
    """Return the policy that lets `page` run its own script and style, by their hashes, and call its own service.

    `also` is where further scripts and styles may come from.
    """
    script, style = (f"{_hashes(page, tag)} {also}".strip() for tag in ("script", "style"))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> str:
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
