"""Every slow test file declares its tier with a marker. pyproject.toml explains the markers."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
# Signs of a slow test: Ray, Serve, processes, its own Postgres, a crawl, archives of real pages.
SLOW = re.compile(r"\b(local_ray|service: Service|Popen|embedded\.running|running\(home|crawl\(|tarfile)\b")
TIER = re.compile(r"pytest\.mark\.(slow|exhaustive)\b")


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (TESTS / folder).rglob("test_*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()


def test_slow_tests_declare_their_tier():
    texts = {name_of(path): path.read_text() for path in files("integration", "acceptance", "attacks", "cluster")}
    assert [name for name, text in texts.items() if SLOW.search(text) and not TIER.search(text)] == []


def test_cluster_tests_are_in_the_exhaustive_tier():
    marked = re.compile(r"^pytestmark = .*exhaustive", re.MULTILINE)
    assert [name_of(path) for path in files("acceptance", "cluster") if not marked.search(path.read_text())] == []


def test_no_unit_test_starts_ray():
    starts = re.compile(r"def test_\w+\([^)]*\blocal_ray\b")
    assert [name_of(path) for path in files("unit") if starts.search(path.read_text())] == []
