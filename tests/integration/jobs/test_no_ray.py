"""If no Ray can start, a run embeds in its own process, and a run that requires Ray ends before any work."""

from pathlib import Path

import pytest
from kit.reindexing import Jobs, write_site

from pipelines.indexing import gather


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with many pages, on a machine without a usable folder for Ray."""
    monkeypatch.setattr("pipelines.ray_place.LEAST_FREE", 1 << 60)
    for module in ("pipelines.cluster", "pipelines.indexing.gather", "pipelines.indexing.run"):
        monkeypatch.setattr(f"{module}.is_connected", lambda: False)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr(gather, "is_little", lambda *_: False)
    monkeypatch.setattr(gather, "PAGES_PER_RANGE", 2)
    folder = tmp_path / "site"
    write_site(folder, {f"page{n}": {f"part-{n}": f"Nodes restart after {n} minutes."} for n in range(12)})
    return folder


def reindex(jobs: Jobs, site: Path, *flags: str):  # type: ignore[no-untyped-def]
    return jobs.reindex("--path", site, "--base-url", "https://d.example/", "--model", "hash:16", *flags)


def test_run_embeds_without_ray_and_says_why(jobs: Jobs, site: Path) -> None:
    done = reindex(jobs, site)
    assert done.code == 0, done.messages
    assert done.summary["chunks"]["total"] == 12
    [warning] = done.summary["warnings"]
    assert "Ray can't start here: no folder can be used" in warning and "Only this process embeds" in warning


def test_run_that_requires_embedders_fails_before_it_starts(jobs: Jobs, site: Path) -> None:
    done = reindex(jobs, site, "--embedders", "1")
    assert done.code == 1 and "RAY_TMPDIR" in done.messages and "Traceback" not in done.messages
    assert "run 1" not in done.messages and jobs.page_states() == {}
