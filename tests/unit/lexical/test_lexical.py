"""BM25 over an index: it follows publishes, finds names whole and in parts, and survives any question or folder."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.archives import KeptArchives
from kit.processes import full_disk

from pipelines.lexical import LexicalIndex, LexicalNotBuilt, name_parts, other_words
from pipelines.records import Filters, Hit, Index, IndexSettings
from pipelines.store import ChangesPruned


def make_hit(chunk_id: str, text: str, title: str = "", url: str = "https://d.test/a.html") -> Hit:
    return Hit(chunk_id, url, (), title, (), text, f"hash of {text}", 0.0, "none")


class FakeChunks(KeptArchives):
    """Chunks with revisions and a change log, like the store's. Counts reads."""

    def __init__(self, hits: list[Hit]) -> None:
        super().__init__()
        self.chunks = {hit.chunk_id: hit for hit in hits}
        self.revision, self.scans, self.pruned_below = 1, 0, 0
        self.log: list[tuple[int, str]] = []

    @property
    def index(self) -> Index:
        return Index(7, "docs", IndexSettings(), "live", self.revision)

    def publish(self, *hits: Hit, delete: tuple[str, ...] = ()) -> Index:
        self.revision += 1
        self.chunks.update({hit.chunk_id: hit for hit in hits})
        for chunk_id in delete:
            del self.chunks[chunk_id]
        self.log += [(self.revision, chunk_id) for chunk_id in [*(hit.chunk_id for hit in hits), *delete]]
        return self.index

    @contextmanager
    def scan_chunks(self, index_id: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        self.scans += 1
        yield self.revision, iter(list(self.chunks.values()))

    def changes_since(self, index_id: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        if revision < self.pruned_below:
            raise ChangesPruned(index_id, revision)
        changed = dict.fromkeys(chunk_id for at, chunk_id in self.log if at > revision)
        return self.revision, [(chunk_id, self.chunks.get(chunk_id)) for chunk_id in changed]


@pytest.fixture
def store() -> FakeChunks:
    return FakeChunks([
        make_hit("csv", "Call ray.data.read_csv to read comma separated files.", "Loading data"),
        make_hit("pool", "ActorPoolStrategy sets how many actors run.", "Actors"),
        make_hit("cpp", "The C++ API is experimental.", "Languages"),
        make_hit("tune", "Tune searches hyperparameters.", url="https://d.test/guides/early-stopping.html")
    ])  # fmt: skip


def built(tmp_path: Path, store: FakeChunks, **options: object) -> LexicalIndex:
    index = LexicalIndex(tmp_path / "7", **options)  # type: ignore[arg-type]
    index.sync(store, store.index)
    return index


@pytest.fixture
def lexical(tmp_path: Path, store: FakeChunks) -> LexicalIndex:
    return built(tmp_path, store)


def ids(index: LexicalIndex, question: str, k: int = 10) -> list[str]:
    return [chunk_id for chunk_id, _ in index.search(question, k).scores]


@pytest.mark.parametrize(("question", "first"), [
    ("ray.data.read_csv", "csv"), ("read_csv", "csv"), ("how do I read a csv?", "csv"), ("actor pool", "pool"),
    ("actorpoolstrategy", "pool"), ("C++", "cpp"), ("early stopping", "tune"), ("loading", "csv"),
    ("search hyperparameter", "tune")
])  # fmt: skip
def test_names_are_found_whole_in_parts_and_in_every_field(lexical: LexicalIndex, question: str, first: str) -> None:
    assert ids(lexical, question)[0] == first


def test_names_are_split_at_dots_underscores_and_capitals() -> None:
    assert name_parts("ray.data.read_csv") == ("ray", "data", "read_csv", "read", "csv")
    assert name_parts("HTTPServerConfig") == ("HTTP", "Server", "Config")
    assert name_parts("plain") == name_parts("2.6.1")[3:] == ()


@pytest.mark.parametrize(
    "question", ["", " ", "C++ (", "a:b", '"x', "😀", "\x00", "\ud800 lone", "AND OR NOT", "*", "-", "x" * 100_000]
)
def test_any_text_is_a_valid_question(lexical: LexicalIndex, question: str) -> None:
    assert all(score > 0 for _, score in lexical.search(question, 5).scores)


@given(question=st.text())
def test_no_text_breaks_a_search(shared: LexicalIndex, question: str) -> None:
    assert len(shared.search(question, 3).scores) <= 3


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> LexicalIndex:
    return built(tmp_path_factory.mktemp("lexical"), FakeChunks([make_hit("one", "some text")]))


def test_very_long_question_is_searched_by_its_rarest_terms(lexical: LexicalIndex) -> None:
    question = "hyperparameters " + " ".join(f"word{i}" for i in range(10_000))
    assert ids(lexical, question) == ["tune"]


def test_version_marker_is_not_found_as_a_chunk(lexical: LexicalIndex) -> None:
    assert "#marker" not in ids(lexical, "marker #marker version index revision")


def test_scores_are_bm25(tmp_path: Path) -> None:
    # Two chunks of two terms, one of them with the asked term: idf ln(1 + (N-n+.5)/(n+.5)), tf part 1/(1+k1)·(k1+1).
    chunks = FakeChunks([make_hit("a", "alpha beta"), make_hit("b", "gamma delta"), make_hit("c", "beta delta")])
    index = built(tmp_path, chunks, boosts={"text": 1.0})
    (alpha,), beta = index.search("alpha", 5).scores, index.search("beta", 5).scores
    assert alpha[0] == "a" and alpha[1] > beta[0][1] == beta[1][1] > 0


# ---------------------------------------------------------------------------------------------- filters


D = "https://d.test"
URLS = (f"{D}/a_b/x.html", f"{D}/aXb/x.html", f"{D}/a%b/é?q=[1]&z=^$|(){{}}.*", "https://e.test/😀")


@pytest.fixture
def filtered(tmp_path: Path) -> LexicalIndex:
    """Return an index with four chunks of the same word: two tags, two versions, two languages."""
    chunks = FakeChunks([
        replace(
            make_hit(str(n), "word", url=url), tags=(f"tag {n}", "all"), version=None if n % 2 else "2.0",
            language="ja" if n == 3 else "en",
        )
        for n, url in enumerate(URLS)
    ])  # fmt: skip
    return built(tmp_path, chunks)


def kept(index: LexicalIndex, **filters: object) -> str:
    return "".join(sorted(name for name, _ in index.search("word", 9, Filters(**filters)).scores))  # type: ignore[arg-type]


def test_filters_allow_any_of_the_tags_one_version_and_one_language(filtered: LexicalIndex) -> None:
    assert kept(filtered, tags=("tag 0", "tag 3", "none")) == "03" and kept(filtered, tags=("all",)) == "0123"
    assert kept(filtered, version="2.0") == "02" and kept(filtered, version="2") == ""
    assert kept(filtered, language="en") == "012" and kept(filtered, language="e") == ""
    assert kept(filtered, tags=("tag 0", "tag 1"), version="2.0", language="en", url_prefix=D) == "0"


@pytest.mark.parametrize("url", URLS)
def test_url_prefix_is_matched_literally_at_any_length(filtered: LexicalIndex, url: str) -> None:
    for length in range(1, len(url) + 1):
        expected = "".join(str(n) for n, other in enumerate(URLS) if other.startswith(url[:length]))
        assert kept(filtered, url_prefix=url[:length]) == expected


def test_filters_change_no_score_and_match_nothing_alone(filtered: LexicalIndex) -> None:
    (score, *others) = {score for _, score in filtered.search("word", 9).scores}
    assert not others and filtered.search("word", 9, Filters(tags=("tag 0",))).scores == (("0", score),)
    assert filtered.search("nothing", 9, Filters(tags=("all",))).scores == ()


@pytest.mark.parametrize("value", ["", "\ud800", "\0", "x" * 70_000, '"', "a:b AND ("])
def test_any_text_is_a_valid_filter(filtered: LexicalIndex, value: str) -> None:
    assert len(kept(filtered, tags=(value,), version=value, language=value)) <= 4
    assert len(kept(filtered, url_prefix=value)) <= 4


def test_publish_is_followed_without_a_scan(lexical: LexicalIndex, store: FakeChunks) -> None:
    changed = replace(make_hit("pool", "Now about parquet."), tags=("new",))
    index = store.publish(make_hit("new", "Placement groups reserve bundles."), changed, delete=("csv",))
    assert lexical.sync(store, index) == lexical.revision == 2
    assert ids(lexical, "bundles") == ["new"] and ids(lexical, "csv") == []
    assert ids(lexical, "parquet") == ["pool"] and ids(lexical, "actors") == []
    assert lexical.search("parquet", 3, Filters(tags=("new",))).scores
    assert store.scans == 1


def test_replaced_chunks_change_neither_order_nor_evidence(tmp_path: Path) -> None:
    texts = ["Dateien lesen mit CSV", "reading of CSV files", "Hier steht etwas", "Other things are here"]
    hits = [replace(make_hit(str(n), texts[n % 4]), language=("de", "en")[n % 2]) for n in range(40)]
    index = built(tmp_path, store := FakeChunks(hits))
    for first in range(0, 30, 10):
        index.sync(store, store.publish(*hits[first : first + 10]))
    followed, rebuilt = (one.search("how do I read CSV files", 5) for one in (index, built(tmp_path / "new", store)))
    assert {int(name) % 4 for found in (followed, rebuilt) for name, _ in found.scores} == {1}
    best = [found.scores[0][1] / found.full_score for found in (followed, rebuilt)]
    assert best[0] == pytest.approx(best[1], rel=0.05)


def test_unchanged_folder_is_opened_not_rebuilt(lexical: LexicalIndex, store: FakeChunks, tmp_path: Path) -> None:
    again = LexicalIndex(tmp_path / "7")
    assert again.sync(store, store.index) == 1 and ids(again, "actors") == ["pool"]
    assert store.scans == 1


def test_pruned_changes_or_an_older_store_cause_a_rebuild(lexical: LexicalIndex, store: FakeChunks) -> None:
    index = store.publish(make_hit("new", "bundles"))
    store.pruned_below = 2
    lexical.sync(store, index)
    assert store.scans == 2 and ids(lexical, "bundles") == ["new"] and ids(lexical, "actors") == ["pool"]
    store.revision, store.log = 1, []
    del store.chunks["new"]
    assert lexical.sync(store, store.index) == 1 and ids(lexical, "bundles") == []


def test_folder_of_another_index_is_rebuilt(lexical: LexicalIndex, tmp_path: Path) -> None:
    again = LexicalIndex(tmp_path / "7")
    again.sync(FakeChunks([make_hit("other", "bundles")]), Index(8, "docs", IndexSettings(), "live", 1))
    assert ids(again, "bundles actors") == ["other"]


def test_unreadable_folder_is_rebuilt(store: FakeChunks, tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "meta.json").write_text("{not json")
    assert ids(built(tmp_path, store), "actors") == ["pool"]


@contextmanager
def broken_scan(store: FakeChunks) -> Iterator[None]:
    """Break a scan after its first chunk while in the block. The error reaches the caller and ends the block."""

    def chunks() -> Iterator[Hit]:
        yield make_hit("a", "half built")
        raise OSError("the scan broke")

    @contextmanager
    def scan(index_id: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        yield store.revision, chunks()

    with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="the scan broke"):
        patch.setattr(store, "scan_chunks", scan)
        yield


def test_failed_build_leaves_nothing_visible(store: FakeChunks, tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path / "7")
    with broken_scan(store):
        index.sync(store, store.index)
    with pytest.raises(LexicalNotBuilt):
        index.search("half", 1)
    assert index.sync(store, store.index) == 1 and ids(index, "half") == []


def test_full_disk_fails_a_sync_and_loses_nothing(lexical: LexicalIndex, store: FakeChunks) -> None:
    words = " ".join(f"word{number}" for number in range(3_000))
    large = store.publish(make_hit("large", words))
    with full_disk(after_bytes=2_000), pytest.raises(Exception, match="File too large"):
        lexical.sync(store, large)
    assert lexical.search("actors", 3).revision == 1 and not lexical.search("word7", 3).scores
    lexical.sync(store, large)
    assert lexical.search("word7", 3).scores[0][0] == "large"


def test_failed_rebuild_keeps_the_old_commit(lexical: LexicalIndex, store: FakeChunks) -> None:
    store.publish(make_hit("new", "bundles"))
    store.pruned_below = 2
    with broken_scan(store):
        lexical.sync(store, store.index)
    assert ids(lexical, "actors") == ["pool"]
    assert lexical.sync(store, store.index) == 2 and set(ids(lexical, "bundles actors")) == {"new", "pool"}


def test_only_one_of_several_concurrent_syncs_builds(store: FakeChunks, tmp_path: Path) -> None:
    indexes = [LexicalIndex(tmp_path / "7") for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda index: index.sync(store, store.index), indexes))
    assert store.scans == 1 and all(ids(index, "actors") == ["pool"] for index in indexes)


def test_readers_see_writes_of_another_process(lexical: LexicalIndex, store: FakeChunks, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from test_lexical import FakeChunks, built, make_hit\n"
        "chunks = FakeChunks([]); chunks.publish(make_hit('new', 'bundles')); built(Path(sys.argv[1]), chunks)\n"
    )
    folders = map(str, Path(__file__).parents[:4])
    subprocess.run([sys.executable, "-c", script, str(tmp_path), *folders], check=True)
    index = store.publish(make_hit("new", "bundles"))
    lexical.sync(store, index)
    assert set(ids(lexical, "bundles actors")) == {"new", "pool"} and store.scans == 1


def test_readers_follow_a_rebuilt_folder(lexical: LexicalIndex, store: FakeChunks, tmp_path: Path) -> None:
    other = LexicalIndex(tmp_path / "7")
    other.forget(store, store.index)
    index = store.publish(make_hit("new", "bundles"))
    other.sync(store, index)
    lexical.sync(store, index)
    assert set(ids(lexical, "bundles actors")) == {"new", "pool"} and store.scans == 2


def test_synonyms_are_the_other_words_of_a_group() -> None:
    groups = [["k8s", "kubernetes"], ["GPU", "accelerator", "graphics card"]]
    assert other_words("Deploy on K8s?", groups) == "kubernetes"
    assert other_words("two graphics cards and a gpu", groups) == "accelerator"
    assert other_words("a card with graphics", groups) == other_words("", groups) == ""
