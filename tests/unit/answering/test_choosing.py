"""Sections of an answer without a model: the ranking counts, and so do both halves of a question."""

from dataclasses import replace

from kit.answering import Alike, extract, make_hit, quote

from pipelines.answering.grounding.answerable import UNKNOWN, is_likely, is_possible
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.ranking.texts import LEARNED
from pipelines.records import ANSWER, RESULTS, Hit
from pipelines.text.languages import say

FIRST = {"vector": 1, "bm25": 1}
DOUBTFUL = Evidence(terms=2, texts=800, words=0.9, cosine=0.5)
LIKELY = Evidence(terms=4, texts=800, words=1.0, cosine=1.0)
BACKUP = make_hit(
    "https://d.test/o#backup",
    "A backup is a dump of the whole database. Make one every night with `pg_dump` while everything runs, and keep it "
    "on another machine for as long as you may need it.",
    ("Backup",),
)
RESTORE = make_hit(
    "https://d.test/o#restore",
    "Restore the dump into an empty database with `pg_restore`, before anything else is started there. Stop the "
    "service for as long as that takes, and start it afterwards as always.",
    ("Restore",),
)


def ask(question: str, *hits: Hit, evidence: Evidence | None = None) -> str:
    return extract(question, *hits, evidence=evidence)[0]


def support(question: str, *hits: Hit) -> float:
    return (extract(question, *hits)[2].quotes or ())[0].support


def ranked(hit: Hit, odds: float) -> Hit:
    return replace(hit, scores={LEARNED: odds})


def test_both_halves_of_a_question_are_answered_from_their_own_sections() -> None:
    made = ask("How do I make a backup and restore it?", ranked(RESTORE, 4.0), ranked(BACKUP, 3.9))
    assert "pg_dump" in made and "pg_restore" in made


def test_answer_to_one_of_two_questions_is_not_certain() -> None:
    text = "A backup of the whole database is made with `pg_dump`, every night, while the service goes on."
    hit = make_hit("https://d.test/o#b", f"{text} {text} {text}", ("Backup of the database",), ranks=FIRST)
    one, two = "How do I make a backup of the database?", "How do I make a backup of the database and when is it made?"
    forms = [extract(asked, hit, embed=Alike(), evidence=LIKELY)[1].form for asked in (one, two)]
    assert forms == [ANSWER, RESULTS]


def test_answer_from_a_section_other_than_the_first_is_not_certain() -> None:
    text = "A backup of the whole database is made with `pg_dump`, every night, while the service goes on."
    hit = make_hit("https://d.test/o#b", f"{text} {text} {text}", ("Backup of the database",), ranks=FIRST)
    asked = "How do I make a backup of the database?"
    assert extract(asked, hit, RESTORE, embed=Alike(), evidence=LIKELY)[1].form == ANSWER
    made, result, task = extract(asked, RESTORE, hit, embed=Alike(), evidence=LIKELY)
    assert result.form == RESULTS and task.hits[0] == RESTORE and made.index("pg_restore") < made.index("pg_dump")
    for evidence in (DOUBTFUL, None):
        assert extract(asked, hit, RESTORE, embed=Alike(), evidence=evidence)[1].form == RESULTS


def test_hit_far_ahead_in_the_ranking_is_quoted_despite_equal_words() -> None:
    one = make_hit("https://d.test/a", "The port is set with `--port`, a number.", ("Service",))
    other = make_hit("https://d.test/b", "The port is set with `--listen`, a number.", ("Proxy",))
    for first, second in ((one, other), (other, one)):
        assert first.text in quote("Which port is set?", ranked(second, 1.0), ranked(first, 6.0))


def test_certainty_of_a_quotation_depends_on_the_share_of_its_section() -> None:
    asked = "How do I make a backup?"
    odds = ((9, 2), (5, 5), (5, 4), (1, 0))
    chances = [support(asked, ranked(BACKUP, own), ranked(RESTORE, other)) for own, other in odds]
    assert chances[0] > chances[2] > chances[1] > chances[3] > 0
    twice = replace(BACKUP, chunk_id="more", text="A backup takes minutes.")
    both = support(asked, ranked(BACKUP, 5), ranked(RESTORE, 5), ranked(twice, 5))
    assert both > chances[1], "hits of one section count together"
    assert support(asked, ranked(BACKUP, 99), ranked(RESTORE, 2)) >= chances[0], "a boost may be large"


def test_page_of_measurements_does_not_win_by_words_of_its_subject() -> None:
    table = "\n".join(f"| gte-base {n}00 | {n}00 | 0.5{n} |" for n in range(1, 9))
    measured = f"Chunk size:\n\n| run | chunk size | score |\n|---|---|---|\n{table}"
    told = "The chunk size is what the model reads. `--chunk-size` sets a smaller one."
    hits = (make_hit("https://d.test/q", measured, ("Runs",)), make_hit("https://d.test/h", told, ("Chunks",)))
    made = quote("What chunk size is used?", ranked(hits[0], 4.0), ranked(hits[1], 3.5))
    assert made.startswith(f"**Chunks**\n\n{told}")


def test_short_section_is_quoted_whole_without_titles_of_other_sections() -> None:
    text = (
        "Nothing is installed by hand. All that it needs comes with it. The first start takes a minute. It prints "
        "where it listens.\n\nOn Windows use the installer:\n\n```\nsetup.exe /quiet\n```\n\n"
        "> Everything is removed by the same program.\n\n- Upgrading\n- Removing"
    )
    made = quote("What comes with it?", make_hit("https://d.test/i", text, ("Installation",)))
    assert "setup.exe /quiet" in made and "removed by the same program" in made and "- Upgrading" not in made


def test_section_whose_heading_asks_the_question_is_not_unknown() -> None:
    asked = "Can it be reached from other machines?"
    hit = make_hit("https://d.test/p", "```\nserve --host 0.0.0.0\n```", ("How is it reached from other machines?",))
    beside = replace(hit, headings=("Ports of a cluster",))
    assert is_possible(DOUBTFUL) and not is_likely(DOUBTFUL)
    made = ask(asked, hit, evidence=DOUBTFUL)
    assert "--host 0.0.0.0" in made and UNKNOWN not in made and say("unsure", "en") not in made
    assert ask(asked, beside, evidence=DOUBTFUL).startswith(UNKNOWN)
    far = ranked(make_hit("https://d.test/far", "Machines have ports.", ("Machines",)), 0.0)
    told = replace(beside, text="Start it so that it can be reached from other machines. " * 6, ranks=FIRST)
    assert not ask(asked, ranked(told, 9.0), far, evidence=DOUBTFUL).startswith(UNKNOWN), "the only one that fits"
