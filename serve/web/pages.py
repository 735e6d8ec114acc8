"""Serves the pages: chat, single answers, insights, and API documentation.

Each page may run only its own code.
"""

from importlib import resources

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from pipelines.insights.report import live_page
from serve.web.policy import content_security_policy
from serve.web.static import FILES, VERSION, add_files

# Swagger UI comes with the package fastapi-offline, so no other host is contacted.
SWAGGER = resources.files("fastapi_offline") / "static"
SWAGGER_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
A_DAY = {"Cache-Control": "public, max-age=86400"}
# Markup becomes nodes only through DOMPurify; any other way throws.
TRUSTED_TYPES = "require-trusted-types-for 'script'; trusted-types dompurify"


def add_pages(app: FastAPI) -> None:
    """Add `/`, `/a/<id>`, `/docs` and `/insights` to `app`."""
    add_files(app)
    chat = _read("index.html")
    policy = "; ".join((content_security_policy(chat, "'self'"), TRUSTED_TYPES))
    _add_page(app, "/", versioned(chat), policy)
    _add_page(app, "/a/{id}", versioned(chat, "../"), policy)
    api = _read("docs.html")
    _add_page(app, "/docs", api, content_security_policy(api, "'self'"))
    insights = live_page()
    _add_page(app, "/insights", insights.text, f"{insights.policy}; frame-ancestors 'none'")

    @app.get("/docs/{name}", include_in_schema=False)
    async def swagger(name: str) -> Response:
        if name not in SWAGGER_FILES:
            raise HTTPException(404, "Not Found")
        return Response((SWAGGER / name).read_bytes(), media_type=SWAGGER_FILES[name], headers={**HEADERS, **A_DAY})


def _add_page(app: FastAPI, path: str, text: str, policy: str) -> None:
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache", **HEADERS}

    @app.get(path, include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(text, headers=headers)


def _read(name: str) -> str:
    return resources.files("serve").joinpath("web", name).read_text("utf-8")


def versioned(page: str, up: str = "") -> str:
    """Return the page with versioned URLs of its files; `up` leads from its URL to the application's root.

    All modules are preloaded in its head; otherwise a browser would find each one only after parsing the one that
    imports it.
    """
    modules = sorted(name for name in FILES if name.startswith(("chat/", "vendor/")) and name.endswith(".js"))
    preloads = "".join(f'  <link rel="modulepreload" href="web/{name}">\n' for name in modules)
    return page.replace("</head>", f"{preloads}</head>").replace('="web/', f'="{up}web/{VERSION}/')
