"""Runs `jobs.reindex` and related jobs in this process, on a tiny documentation site."""

import html
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.workshop import Sections, rows_of

from jobs.cli import run_job
from pipelines.store import Store


def html_page(title: str, sections: Sections, head: str = "", links: tuple[str, ...] = ()) -> str:
    """Return a page in Sphinx's HTML, with an id for each section."""
    parts = "".join(
        f'<section id="{anchor}"><h2>{anchor.title()}</h2><p>{html.escape(text)}</p></section>'
        for anchor, text in sections.items()
    )
    menu = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head>'
        f"<body><nav>{menu}</nav><main><h1>{title}</h1>{parts}</main></body></html>"
    )


def site_sections(pages: int) -> dict[str, dict[str, str]]:
    """Return pages p00, p01, … with three sections each, all with different words."""
    return {
        f"p{page:02}": {
            anchor: f"This {anchor} of page {page} treats subject {page * 31 + number} and matter {page * 17 + number}."
            for number, anchor in enumerate(("purpose", "usage", "limits"))
        }
        for page in range(pages)
    }


def write_site(folder: Path, site: Mapping[str, Sections]) -> None:
    """Write `site` as HTML files."""
    folder.mkdir(exist_ok=True)
    for name, sections in site.items():
        (folder / f"{name}.html").write_text(html_page(f"Page {name}", sections))


@dataclass
class JobResult:
    """The outcome of a job: exit code, JSON object, and messages on standard error."""

    code: int
    summary: dict[str, Any]
    messages: str


@dataclass
class Jobs:
    """Runs jobs on one collection of the database at `url`. `common` are flags for every reindex."""

    url: str
    capsys: pytest.CaptureFixture[str]
    name: str = "docs"
    common: list[str] = field(default_factory=list)

    def run(self, verb: str, *flags: object) -> JobResult:
        """Run `python -m jobs.<verb> <flags> --json` in this process."""
        module = importlib.import_module(f"jobs.{verb}")
        self.capsys.readouterr()
        code = run_job(module.app, [*map(str, flags), "--json"])
        printed = self.capsys.readouterr()
        lines = printed.out.strip().splitlines()
        return JobResult(code, json.loads(lines[-1]) if lines else {}, printed.err)

    def text(self, verb: str, *flags: object) -> str:
        """Run a job in this process, and return its output for people."""
        module = importlib.import_module(f"jobs.{verb}")
        self.capsys.readouterr()
        run_job(module.app, [*map(str, flags)])
        return self.capsys.readouterr().out

    def reindex(self, *flags: object) -> JobResult:
        return self.run("reindex", "--collection", self.name, *self.common, *flags)

    def verb(self, verb: str, *flags: object) -> JobResult:
        return self.run(verb, "--collection", self.name, *flags)

    def rows(self) -> dict[str, tuple[str, str]]:
        """Return each live chunk's position in the table and the transaction that wrote it."""
        with Store(self.url) as store:
            return rows_of(store, store.live_index(self.name))

    def texts(self) -> dict[str, str]:
        """Return the live index's text by source (without the base URL)."""
        with Store(self.url) as store, store.scan_chunks(store.live_index(self.name).id) as (_, hits):
            return {hit.source.split("/", 3)[3]: hit.text for hit in hits}

    def page_states(self) -> dict[str, str]:
        with psycopg.connect(self.url) as connection:
            rows = connection.execute("select url, state from page where collection = %s", [self.name])
            return {url.split("/", 3)[3]: state for url, state in rows}
