"""Unchanged files in a folder are not read, and all others are."""

import os
import time
from pathlib import Path

import pytest
from kit.reindexing import html_page
from kit.workshop import BASE

from pipelines.indexing.folders import files
from pipelines.indexing.folders.folder import FolderSettings
from pipelines.indexing.reading.sources import SourceFolder
from pipelines.store import RunLock, Store


class Runs:
    """Runs over one folder. `read` has the files that the last run opened."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store, self.root, self.read = store, root, list[str]()
        self.lock = RunLock(store, "docs")
        assert self.lock.try_acquire()

    def __call__(self, read_all: bool = False, **changes: object) -> dict[str, int]:
        run = self.lock.begin("reindex", {})
        folder = FolderSettings(**{"path": str(self.root), "base_url": BASE, **changes})
        self.read.clear()
        files.save_files(folder, folder.files(), self.store, "docs", run, read_all)
        self.store.mark_unseen("docs", run, BASE, "its file is gone")
        return self.store.page_counts("docs", run)


@pytest.fixture
def runs(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Create three files, old enough for any clock resolution."""
    monkeypatch.setattr(files, "SETTLED_NS", 0)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.html").write_text(html_page(name, {"s": f"Text of {name}."}))
    runs, read = Runs(store, tmp_path), files.read_file
    monkeypatch.setattr(
        files, "read_file", lambda system, path: [runs.read.append(Path(path).stem), read(system, path)][1]
    )
    yield runs
    runs.lock.release()


def test_unchanged_files_are_not_opened(runs: Runs) -> None:
    assert runs() == {"seen": 3, "new": 3, "changed": 0, "unchanged": 0, "failed": 0, "duplicate": 0, "skipped": 0}
    assert sorted(runs.read) == ["a", "b", "c"]
    assert runs()["unchanged"] == 3
    assert runs.read == []
    assert runs(read_all=True)["unchanged"] == 3
    assert sorted(runs.read) == ["a", "b", "c"]


def test_changed_touched_new_and_renamed_files_are_read(runs: Runs) -> None:
    runs()
    (runs.root / "a.html").write_text(html_page("a", {"s": "Another text."}))
    assert runs()["changed"] == 1
    assert runs.read == ["a"]
    os.utime(runs.root / "b.html")
    assert runs()["unchanged"] == 3
    assert runs.read == ["b"]
    (runs.root / "c.html").rename(runs.root / "d.html")
    assert runs() == {"seen": 3, "new": 1, "changed": 0, "unchanged": 2, "failed": 0, "duplicate": 0, "skipped": 0}
    assert runs.read == ["d"]
    assert runs.store.status("docs")["pages"] == {"gone": 1, "ok": 3}
    (runs.root / "d.html").rename(runs.root / "c.html")
    assert runs()["seen"] == 3
    assert runs.read == ["c"]


def test_page_changes_with_its_included_files(runs: Runs) -> None:
    (runs.root / "page.md").write_text('# Page\n\n--8<-- "code.py"\n')
    (runs.root / "code.py").write_text("first()\n")
    assert runs()["new"] == 4
    assert runs() == {"seen": 4, "new": 0, "changed": 0, "unchanged": 4, "failed": 0, "duplicate": 0, "skipped": 0}
    (runs.root / "code.py").write_text("second()\n")
    assert runs()["changed"] == 1 and runs.read == ["page"]
    (page,) = runs.store.page_bodies("docs", [f"{BASE}page.md"])
    assert page.body == b"# Page\n\n```python\nsecond()\n```\n"


def test_page_of_jekyll_changes_with_the_data_that_it_shows(runs: Runs) -> None:
    (runs.root / "_config.yml").write_text("title: A\n")
    (runs.root / "_data").mkdir()
    (runs.root / "_data/ports.yml").write_text("web: 80\n")
    (runs.root / "page.md").write_text("---\n---\n{{ site.title }}: {{ site.data.ports.web }}\n")
    sources = SourceFolder("Jekyll", f"{runs.root}/_config.yml", f"{runs.root}/", "keep", liquid=True)
    assert runs(sources=sources)["new"] == 4
    assert runs(sources=sources)["unchanged"] == 4
    (runs.root / "_data/ports.yml").write_text("web: 81\n")
    assert runs(sources=sources)["changed"] == 1 and runs.read == ["page"]
    (page,) = runs.store.page_bodies("docs", [f"{BASE}page.md"])
    assert page.body == b"---\n---\nA: 81\n"


def test_change_of_equal_size_with_a_reset_mtime_is_detected(runs: Runs) -> None:
    """`tar --mtime` and reproducible builds do this."""
    path = runs.root / "a.html"
    os.utime(path, (1, 1))
    runs()
    text = path.read_text()
    path.write_text(text.replace("Text of a", "Text of A"))
    os.utime(path, (1, 1))
    assert runs()["changed"] == 1
    assert runs.read == ["a"]


def test_very_recent_file_is_read_again_and_one_dated_in_the_future_always(runs, monkeypatch):
    monkeypatch.setattr(files, "SETTLED_NS", 10**12)
    runs()
    monkeypatch.setattr(files, "SETTLED_NS", 0)
    later = time.time() + 3600
    os.utime(runs.root / "a.html", (later, later))
    for read in (["a", "b", "c"], ["a"]):
        assert runs()["unchanged"] == 3
        assert sorted(runs.read) == read


def test_files_are_reread_when_the_reading_settings_change(runs: Runs) -> None:
    runs()
    sources = SourceFolder("MkDocs", "mkdocs.yml", f"{runs.root}/", "html")
    for change in ({"base_url": BASE + "en/"}, {"url_style": "bare"}, {"sources": sources}):
        runs(**change)
        assert sorted(runs.read) == ["a", "b", "c"]
    runs(sources=sources)
    assert runs.read == []


def test_last_of_two_files_with_one_url_wins_in_every_run(runs: Runs) -> None:
    """The front matter of Docusaurus can cause this."""
    for name in ("a", "b"):
        (runs.root / f"{name}.md").write_text(f"---\nslug: /same\n---\n# Page {name}\n")
    sources = SourceFolder("Docusaurus", "docusaurus.config.js", f"{runs.root}/", "bare", routes=(("", ""),))
    runs(sources=sources)
    for _ in range(2):
        assert runs(sources=sources).items() >= {"changed": 0, "unchanged": 4}.items()
    (runs.root / "b.md").unlink()
    assert runs(sources=sources)["changed"] == 1
    (runs.root / "b.md").write_text("---\nslug: /same\n---\n# Page b\n")
    assert runs(sources=sources)["changed"] == 1


@pytest.mark.parametrize(
    "says", ["---\ndraft: true\n---\n", "+++\ndraft = true\n+++\n", "---\npublished: false\n---\n"]
)
def test_draft_is_skipped_by_a_generator_that_supports_drafts(says: str, runs: Runs) -> None:
    (runs.root / "d.md").write_text(f"{says}# Not yet\n")
    assert runs()["seen"] == 4
    sources = SourceFolder("", "", f"{runs.root}/", "keep", routes=(("", ""),))
    assert runs(sources=sources)["seen"] == runs(sources=sources)["seen"] == 3
    assert "d" in runs.read


def test_page_that_another_source_changed_meanwhile_is_read_again(runs: Runs) -> None:
    runs()
    run = runs.lock.begin("reindex", {})
    folder = FolderSettings(path=str(runs.root), base_url=BASE)
    page = folder.page(str(runs.root / "a.html"), BASE + "a.html", b"<p>As crawled.</p>", None)
    runs.store.save_pages("docs", run, [page])
    assert runs()["changed"] == 1
    assert runs.read == ["a"]


def test_unreadable_file_is_a_failed_page_and_the_others_are_indexed(runs: Runs) -> None:
    runs()
    (runs.root / "a.html").unlink()
    (runs.root / "a.html").symlink_to("/proc/self/mem")  # unreadable even for root
    (runs.root / "b.html").write_text(html_page("b", {"s": "Another text."}))
    for _ in range(2):
        counts = runs()
        [failed] = runs.store.failed_pages("docs", 5)
        assert (failed["url"], failed["error"].endswith("Input/output error")) == (BASE + "a.html", True)
        assert (counts["failed"], counts["changed"] + counts["unchanged"]) == (1, 2)
    sources = SourceFolder("", "", f"{runs.root}/", "keep", routes=(("", ""),))
    with pytest.raises(OSError, match="Input/output error"):  # it may contain its URL, which no other page has
        runs(sources=sources)


def test_unreadable_page_stays_failed_with_its_attempts(runs: Runs) -> None:
    runs()
    runs.store.fail_pages("docs", [(BASE + "a.html", "no text")])
    assert runs()["failed"] == 1
    assert runs.read == []
    [failed] = runs.store.failed_pages("docs", 5)
    assert (failed["url"], failed["error"]) == (BASE + "a.html", "no text")


def test_files_are_batched_by_bytes(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 300)
    listing = FolderSettings(path=str(runs.root), base_url=BASE).files()
    assert [len(batch) for batch in files._batches(listing.paths, listing.infos)] == [1, 1, 1]
    assert runs()["new"] == 3


def test_file_deleted_while_others_are_read_is_gone(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FolderSettings(path=str(runs.root), base_url=BASE)
    listing = folder.files()
    (runs.root / "a.html").unlink()
    run = runs.lock.begin("reindex", {})
    files.save_files(folder, listing, runs.store, "docs", run)
    assert runs.store.page_counts("docs", run)["new"] == 2
