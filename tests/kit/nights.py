"""Creates a collection of HTML files and runs nights over it in this process."""

import json
from pathlib import Path
from typing import Any

import yaml
from kit.reindexing import JobResult, Jobs, site_sections, write_site

PAGES = 12
BASE = "https://docs.test/"


class Nights:
    """A collection of HTML files, and nights over it."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self.folder, self.jobs, self.file = folder, jobs, folder / "docs.yaml"
        self.pages = folder / "pages"
        self.site = site_sections(PAGES)
        self.night: dict[str, Any] = {"questions": ["rows.jsonl"]}
        self.model = "hash:256"
        write_site(self.pages, self.site)
        rows = [{"question": text["usage"], "source": f"{BASE}{name}.html#usage"} for name, text in self.site.items()]
        (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def write(self) -> Path:
        """Write the collection file."""
        values = {"folders": [{"path": str(self.pages), "base_url": BASE, "url_style": "keep"}],
                  "index": {"model": self.model}, "night": self.night}  # fmt: skip
        self.file.write_text(yaml.safe_dump(values))
        return self.file

    def __call__(self, *flags: str) -> JobResult:
        return self.jobs.run("nightly", self.write(), *flags)
