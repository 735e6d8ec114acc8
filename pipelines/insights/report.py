"""Writes the report: a standalone HTML file, the live page that loads its data, and JSON.

The text of questions, comments and documents reaches the page as JSON and is shown as plain text.
"""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pipelines.insights.insights import Insights
from pipelines.standalone import StandalonePage

FOLDER = resources.files("pipelines.insights") / "page"
SCRIPTS = ("dom.js", "charts.js", "lists.js", "sections.js", "start.js")


def write_report(out: Path, insights: Insights) -> list[Path]:
    """Write insights.html and insights.json into the folder `out`, or the one file that `out` names.

    Return the paths.
    """
    contents = {".html": as_html, ".json": as_json}
    paths = [out] if out.suffix in contents else [out / f"insights{suffix}" for suffix in contents]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents[path.suffix](insights), encoding="utf-8")
    return paths


def as_json(insights: Insights) -> str:
    """Return the view of everything, in the format of `GET /admin/insights`."""
    return json.dumps(insights.view(), ensure_ascii=False, indent=1) + "\n"


def as_html(insights: Insights) -> str:
    """Return the report, including the views of all collections and periods."""
    return _page({"views": insights.views()}).text


def live_page() -> StandalonePage:
    """Return the page that asks for an admin key and loads its views from the service that served it."""
    return _page({}, "connect-src 'self'")


def _page(data: Mapping[str, Any], also: str = "") -> StandalonePage:
    parts = {name: FOLDER.joinpath(name).read_text("utf-8") for name in ("insights.html", "insights.css", *SCRIPTS)}
    script = "\n".join(['"use strict";', *(parts[name] for name in SCRIPTS)])
    return StandalonePage.of(parts["insights.html"], data, style=parts["insights.css"], script=script, also=also)
