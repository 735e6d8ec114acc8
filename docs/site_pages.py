"""Builds the documentation site: `make docs`, or `python docs/site_pages.py` where Zensical is installed.

It copies README, the pages of docs/, those of the root and the results of experiments into .site/pages, writes the
reference from the code beside them (docs/reference.py), and runs Zensical on mkdocs.yml. A link that leads nowhere ends
the build with an error.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS, PAGES = ROOT / "docs", ROOT / ".site" / "pages"
RESULTS = ROOT / "benchmarks" / "results"
# Pages that stand at the root of the repository, where code hosts look for them.
OF_THE_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
NO_PAGES = shutil.ignore_patterns("*.py", "*.mjs", "*.yaml", "*.d2", "__pycache__", ".theme")
ITEM = re.compile(r"\s*([-*]|\d+\.) |\|")
LINK = re.compile(r"\[([^\[\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def place(source: Path) -> Path:
    """Where a file of the repository stands in the site, below its root."""
    if source.is_relative_to(RESULTS):
        return Path("results") / source.relative_to(RESULTS)
    return Path(OF_THE_ROOT.get(source.relative_to(ROOT).as_posix()) or source.relative_to(DOCS))


def moved(text: str, source: Path) -> str:
    """The text of a page with its links as they are in the site; of one to a file of the code its words stay."""

    def link(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        in_site = target.is_relative_to(DOCS) or target.is_relative_to(RESULTS)
        if not in_site and target.relative_to(ROOT).as_posix() not in OF_THE_ROOT:
            return match[1]
        up = "../" * (len(place(source).parts) - 1)
        return f"[{match[1]}]({up}{place(target).as_posix()}{match[3] or ''})"

    return LINK.sub(link, text)


def spaced(text: str) -> str:
    """The text with an empty line before each list and table, which Python-Markdown wants and code hosts do not."""
    lines, fenced, before = [], False, ""
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced and ITEM.match(line) and before and not ITEM.match(before) and not before.startswith(" "):
            lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def copy_pages() -> None:
    """Fill the folder of the pages anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES, ignore=NO_PAGES)
    (PAGES / "results").mkdir()
    for source in [*(ROOT / name for name in OF_THE_ROOT), *DOCS.rglob("*.md"), *RESULTS.glob("*.md")]:
        (PAGES / place(source)).write_text(spaced(moved(source.read_text("utf-8"), source)), "utf-8")


def main() -> int:
    copy_pages()
    for words in (["python", str(DOCS / "reference.py"), str(PAGES)], ["zensical", "build", "--clean", "--strict"]):
        program = Path(sys.executable).parent / words[0]
        if code := subprocess.run([program, *words[1:]], cwd=ROOT, check=False).returncode:
            return code
    print(f"the site is in {ROOT / '.site' / 'html'}: open index.html there, or serve the folder")
    return 0


if __name__ == "__main__":
    sys.exit(main())
