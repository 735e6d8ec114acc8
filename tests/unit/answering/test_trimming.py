"""Trimmed passages keep the relevant text and whole code, and mark omissions."""

from hypothesis import example, given
from hypothesis import strategies as st
from kit.answering import make_hit

from pipelines.answering.synthesis.trimming import GAP, MOST_LEAD_WORDS, choose_parts

CODE = "```python\nimport ray\n\nds = ray.data.read_csv(\n    'a.csv',\n    parallelism=4,\n)\n```"
SECTION = (
    "Datasets hold rows in blocks, which live in the object store of the cluster. Together they may be larger than its "
    "memory.\n\n"
    f"To read a CSV file, call read_csv. It takes the path of the file:\n\n{CODE}\n\n"
    "Nobody reads twice. Blocks that nobody needs any more are freed, so that later stages have room."
)


def one(question: str, text: str, words: int) -> str:
    hit = make_hit("https://d.test/a", text)
    return choose_parts(question, [hit], lambda texts: len(texts[0].split()) <= words)[0]


def test_relevant_text_is_kept_with_its_code():
    kept = one("how do I read a csv file", SECTION, 30)
    assert kept == f"{GAP}\n\nTo read a CSV file, call read_csv. It takes the path of the file:\n\n{CODE}\n\n{GAP}"


def test_several_parts_keep_their_order_if_there_is_room():
    kept = one("how do I read a csv file", SECTION, 60)
    assert kept.index("read_csv") < kept.index("Blocks that nobody") or kept.index("Datasets hold") < kept.index(
        "To read"
    )
    assert kept.count(GAP) == 1


@example("\r0", "", 1)
@example("a\r\n\r\nb", "b", 1)
@given(st.text(max_size=300), st.text(max_size=60), st.integers(1, 40))
def test_every_text_keeps_something(text, question, words):
    kept = one(question, text, words)
    assert any(map(str.isalnum, kept)) == any(map(str.isalnum, text))


HITS = [make_hit(f"https://d.test/{n}", f"Page {n} begins. Its subject is rows.\n\n{SECTION}") for n in range(3)]


def choose(words: int, question: str = "how do I read a csv file") -> list[str]:
    return choose_parts(question, HITS, lambda texts: sum(len(text.split()) for text in texts) <= words)


def test_best_part_of_every_page_starts_before_any_page_is_complete():
    assert all("call read_csv" in text for text in choose(100))
    assert sum(len(text.split()) for text in choose(100)) <= 100


def test_first_pages_are_shown_and_never_none_if_room_is_short():
    assert [bool(text) for text in choose(25)] == [True, False, False]
    assert [bool(text) for text in choose(0)] == [True, False, False]
    assert len(choose(0)[0].split()) <= MOST_LEAD_WORDS + 2


def test_everything_is_shown_if_there_is_room():
    assert choose(10_000) == [hit.passage for hit in HITS]


def test_omissions_inside_a_part_are_marked():
    long = "word " * 100
    [shown] = choose_parts("word", [make_hit("https://d.test/a", long)], lambda texts: len(texts[0]) < 200)
    assert shown == f"{'word ' * MOST_LEAD_WORDS}{GAP}"
