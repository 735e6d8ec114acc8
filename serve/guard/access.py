"""Decides the scope that each path needs: none, ask, query, changes or admin.

A path that is not listed needs query, so a new route is closed to readers until it is listed here.
"""

import re
from collections.abc import Sequence

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from pipelines.store import ASK, CHANGES

SESSION_PATH, READY_PATH = "/session", "/health/ready"
# The pages with their files, and health: permission is checked when a page asks. Under .well-known there is nothing, so
# clients that look there for a way to sign in learn that there is none.
OPEN = re.compile(r"/|/health|/health/ready|/web/.*|/widget\.js|/a/[^/]+|/\.well-known/.*|/insights")
READING = re.compile(
    r"/session|/health/ready|/query|/query/stream|/stream|/search|/feedback|/clicks|/collections(/[^/]+)?|/answers/[^/]+(/share)?"
    r"|/mcp|(/collections/[^/]+)?/llms(-full)?\.txt"
)
ANNOUNCING = re.compile(r"/v1/collections/[^/]+/changes(/[^/]+)?")
# These produce an answer or read all pages, which costs the most; all other reader requests are light.
ANSWERING = re.compile(r"/query|/query/stream|/stream|/mcp|(/collections/[^/]+)?/llms-full\.txt")
# These look something up or record it; even many of them never delay a question.
QUICK = re.compile(rf"/session|/feedback|/clicks|/answers/.*|{ANNOUNCING.pattern}")


def is_open(path: str, query: bytes = b"") -> bool:
    """Return whether `path` is open to anyone; asking about a collection needs permission for it."""
    return bool(OPEN.fullmatch(path)) and (path != READY_PATH or not query)


def scope_of(path: str) -> str:
    """Return the scope that a request for `path` needs, if it is not open."""
    if f"{path}/".startswith("/admin/"):
        return "admin"
    if ANNOUNCING.fullmatch(path):
        return CHANGES
    return ASK if READING.fullmatch(path) else "query"


def is_question(method: str, path: str) -> bool:
    """Return whether a request makes the service search or write an answer."""
    return method == "POST" and not QUICK.fullmatch(path)


def is_served(routes: Sequence[BaseRoute], scope: Scope) -> bool:
    """Return whether a path has a route, for any method, with or without a trailing slash."""
    bare = {**scope, "path": scope["path"].rstrip("/") or "/"}
    return any(route.matches(one)[0] is not Match.NONE for route in routes for one in (scope, bare))
