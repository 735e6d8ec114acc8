"""Writes a failure as a page for a reader who opened a URL in a browser.

Knows the design of the other pages; knows neither routes nor why a request failed.
"""

from functools import cache
from html import escape
from importlib import resources

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import Scope

from pipelines.text.languages import choose_language, read_texts
from serve.web.policy import content_security_policy

# The headline of each kind of failure, as a key of the page's texts.
HEADLINES = {
    "not_found": "no_page",
    "no_key": "no_key",
    "bad_key": "bad_key",
    "forbidden": "forbidden",
    "rate": "rate",
    "unavailable": "unavailable",
    "model": "model",
}
PAGE = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>{headline}</title>
<link rel="icon" href="data:,"><style>{style}</style></head>
<body><main><div class="rdx empty"><section class="main"><div class="thread"><div class="welcome">
<h1 class="lead">{headline}</h1><p{spoken}>{why}</p>
<p class="way"><a class="outlined" href="{home}">{ask}</a></p>
</div></div></section></div></main></body></html>
"""


def wants_page(scope: Scope) -> bool:
    """Return whether a browser opens the URL itself: scripts and other programs do not ask for HTML."""
    return scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", "").lower()


def failure_page(scope: Scope, status: int, kind: str, error: str, headers: dict[str, str]) -> HTMLResponse:
    """Return the page for a failure of this `kind`, in the reader's language; `error` is the service's message."""
    language = choose_language(*_accepted(Headers(scope=scope).get("accept-language", "")))
    texts = read_texts(language)["page"]
    missing = kind == "not_found"
    page = PAGE.format(
        language=language,
        headline=escape(texts[HEADLINES.get(kind, "failed")]),
        spoken="" if missing else ' lang="en"',
        why=escape(texts["no_page_why"]) if missing else _with_code(error),
        home=_way_up(scope),
        ask=escape(read_texts(language)["launcher"]["title"]),
        style=_style(),
    )
    policy = {"Content-Security-Policy": content_security_policy(page), "Cache-Control": "no-store"}
    return HTMLResponse(page, status, {**headers, **policy, "Vary": "Accept, Accept-Language"})


def _accepted(header: str) -> list[str]:
    """Return the languages that a browser accepts, in its order: browsers send the best one first."""
    return [part.partition(";")[0].strip() for part in header[:200].split(",")]


def _way_up(scope: Scope) -> str:
    """Return the relative URL of the start page, independent of any proxy prefix."""
    path, root = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0], scope.get("root_path", "")
    below = path[len(root) :] if root and path.startswith(root.encode()) else path
    return "../" * max(0, below.count(b"/") - 1) or "."


def _with_code(error: str) -> str:
    """Return a message with its `commands in backticks` as code."""
    parts = escape(error[:1].upper() + error[1:]).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


@cache
def _style() -> str:
    """Return the styles of the other pages, inlined because a failure page must not need another request."""
    web = resources.files("serve") / "web"
    return "\n".join((web / name).read_text("utf-8") for name in ("page.css", "chat/chat.css"))
