"""`raydex nightly` on a real index: it publishes, refuses with reasons, and resumes where it was stopped."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from kit.nights import BASE, PAGES, Nights
from kit.receivers import MailReceiver, WebhookReceiver
from kit.reindexing import Jobs, write_site
from kit.tiny_model import tiny_model

from jobs.environment import read_configuration
from pipelines.nights.regression import gather_regression_set
from pipelines.records import Answer, Citation, Hit
from pipelines.store import RecordedQuestion, Store


@pytest.fixture
def nights(tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> Nights:
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    return Nights(tmp_path, jobs)


def live(store: Store) -> tuple[int, int]:
    index = store.live_index("docs")
    return index.id, index.revision


def test_first_night_and_small_changes_are_published_larger_ones_judged(nights, store, monkeypatch):
    first = nights()
    assert (first.code, first.summary["verdict"]) == (0, "published"), first.messages
    assert "first index" in first.summary["steps"]["judge"]
    second = nights()
    assert (second.code, second.summary["verdict"]) == (0, "unchanged")
    assert live(store) == (1, 1)
    nights.night["most_unjudged"] = 0.1
    nights.site["p03"]["limits"] = "Now the limits of page 3 are others."
    write_site(nights.pages, nights.site)
    little = nights()
    assert (little.code, little.summary["verdict"]) == (0, "published"), little.messages
    assert little.summary["steps"]["judge"] == "not judged: few pages changed"
    for page in list(nights.site)[:6]:
        nights.site[page]["limits"] += " More is said of it now."
    write_site(nights.pages, nights.site)
    monkeypatch.setattr("pipelines.evaluation.run.FEW", 1)
    monkeypatch.delattr("pipelines.evaluation.distributed.ask_over_ray")
    much = nights("--no-ray")
    assert (much.code, much.summary["verdict"]) == (0, "published"), much.messages
    assert "12 written questions: 0 got worse; passed" in much.summary["steps"]["judge"]
    assert live(store)[0] == much.summary["index"]["index"] != little.summary["index"]["index"]


def test_collection_name_uses_the_settings_of_the_last_run(nights, store):
    nights.night = {}
    first = nights()
    assert (first.code, first.summary["verdict"]) == (0, "published"), first.messages
    for words in (("docs",), ("--collection", "docs")) * 3:
        night = nights.jobs.run("nightly", *words)
        assert (night.code, night.summary["verdict"]) == (0, "unchanged"), night.messages
        assert nights.jobs.run("plan", *words).code == nights.jobs.run("report", *words).code == 0
    plan = nights.jobs.text("plan", "docs")
    assert "not known" not in plan and "as before" in plan and f"{PAGES} pages" in plan
    for verb in ("nightly", "plan", "report"):
        wrong, gone = nights.jobs.run(verb, "dcos"), nights.jobs.run(verb, "dcos.yaml")
        assert wrong.code == 2 and "there is no collection 'dcos'; there are: docs" in wrong.messages
        assert gone.code == 2 and "dcos.yaml" in gone.messages and "there is no collection" not in gone.messages
    nameless = nights.jobs.run("nightly")
    assert nameless.code == 2 and "COLLECTION is missing" in nameless.messages


def test_broken_model_is_refused_with_the_questions_that_got_worse(nights, store, monkeypatch):
    monkeypatch.setenv("RAYDEX_RETRIEVAL__BM25_WEIGHT", "0")  # word search would find what a broken model does not
    monkeypatch.setenv("RAYDEX_RETRIEVAL__RANKING", "fused")
    nights()
    before = live(store)
    nights.model = "hash:1"
    spoiled = nights()
    assert (spoiled.code, spoiled.summary["verdict"]) == (4, "refused"), spoiled.messages
    assert live(store) == before
    candidate = store.candidate_index("docs")
    assert candidate is not None and candidate.settings.model == "hash:1"
    assert "retrieval_score@9" in spoiled.summary["reason"] and "and may by 0.02" in spoiled.summary["reason"]
    worst = spoiled.summary["worse"][0]
    assert worst["sources"][0] == worst["before"][0] != worst["after"][0]
    run = store.status("docs")["runs"][0]
    assert (run["kind"], run["state"]) == ("nightly", "done") and run["error"].startswith("refused: ")
    text = nights.jobs.text("nightly", nights.file)
    assert f"before   *{worst['before'][0]}" in text and "`raydex publish docs`" in text
    assert worst["question"] not in json.dumps(run["counts"])
    again = nights()  # the candidate stays a candidate, even after only small changes
    assert again.code == 4 and live(store) == before and store.candidate_index("docs") == candidate
    assert again.messages.count("12 of 12 questions were asked before") == 2
    shown = nights.jobs.text("status", "docs")
    assert "nightly refused" in shown and "nightly published" in shown and "nightly done" not in shown
    assert "judge: 12 written questions" in shown
    assert shown.index(" index: ") < shown.index(" judge: ") < shown.index(" publish: ")


def test_night_that_lost_half_a_site_is_refused_and_reported_without_texts(nights, store, monkeypatch):
    monkeypatch.setenv("RAYDEX_WEBHOOK_SECRET", "secret")
    with WebhookReceiver() as webhook, MailReceiver() as mails:
        mail = {"to": ["a@x.test"], "sender": "r@x.test", "host": "127.0.0.1", "port": mails.port}
        nights.night["tell"] = {"webhook": webhook.url, "mail": mail}
        nights()
        assert webhook.posts == []  # success is not news
        before = live(store)
        for name in list(nights.site)[: PAGES // 2]:
            (nights.pages / f"{name}.html").unlink()
        nights.site["p11"]["usage"] = "Another text, so that there is something to publish."
        write_site(nights.pages, {"p11": nights.site["p11"]})
        stopped(nights, "tell")
        refused = nights()
        assert (refused.code, refused.summary["verdict"], live(store)) == (4, "refused", before)
        assert "6 of 12 pages have vanished" in refused.summary["reason"]
        assert refused.summary["steps"]["tell"] == "sent by webhook, e-mail"
        shutil.rmtree(nights.pages)
        assert nights().code == 2
    kinds = [post.json["kind"] for post in webhook.posts]
    assert kinds == ["night.refused", "night.failed", "night.refused", "night.failed"]
    first, _, again, failed = webhook.posts
    assert first.headers["Raydex-Id"] == again.headers["Raydex-Id"]
    assert "6 of 12 pages have vanished" in again.json["data"]["reason"]
    assert failed.json["data"]["error"] == "NoSuchFolder"
    assert [one.message["Message-ID"] for one in mails.mails] == [
        f"<{post.json['id']}@raydex>" for post in webhook.posts
    ]


def test_weekly_report_lists_changes_and_is_sent_on_request(nights, store, monkeypatch):
    monkeypatch.setenv("RAYDEX_WEBHOOK_SECRET", "secret")
    nights.night["most_unjudged"] = 0.5
    nights()
    nights.site["p01"]["usage"] = "Another text."
    write_site(nights.pages, nights.site)
    nights()
    disliked = Answer("a", "So.", hits=(Hit("id", f"{BASE}p04.html", ("usage",), text="words"),), known=True)
    store.record_questions([RecordedQuestion("q", "Where is my secret plan?", disliked, "docs")])
    store.record_feedback("q", -1)
    assert "names nobody" in nights.jobs.run("report", nights.file, "--send").messages
    with WebhookReceiver() as webhook:
        nights.night["tell"] = {"webhook": webhook.url}
        report = nights.jobs.run("report", nights.write(), "--send")
    assert report.code == 0 and report.summary["told"] == ["webhook"], report.messages
    (post,) = webhook.posts
    assert post.json["kind"] == "report" and b"secret plan" not in post.body
    data = post.json["data"]
    assert (data["nights"], data["questions"]["down"], data["unanswered"][0]["count"]) == ({"published": 2}, 1, 1)
    assert data["changed"]["pages_changed"] == 1 and data["pages"] == {"ok": 12} and data["updated_s"] > 0
    nights.night["tell"] = {"questions": True}
    assert "Where is my secret plan?: asked 1×" in nights.jobs.text("report", nights.write())


def test_questions_about_removed_pages_are_skipped(nights, store):
    nights()
    nights.night["most_unjudged"] = 0
    (nights.pages / "p00.html").unlink()
    result = nights()
    assert (result.code, result.summary["verdict"]) == (0, "published"), result.summary["reason"]
    assert "12 written questions; 1 left out, as their pages are gone" in result.summary["steps"]["judge"]
    with store.scan_chunks(store.live_index("docs").id) as (_, chunks):
        assert f"{BASE}p00.html" not in {chunk.url for chunk in chunks}


def test_headings_are_asked_and_reported_without_a_regression_set(nights):
    nights.night = {"most_unjudged": 0, "smoke": 5}
    for page in nights.pages.iterdir():
        text = page.read_text().replace("<h2>Usage</h2>", f"<h2>Usage of {page.stem}</h2>")
        page.write_text(
            text.replace("</p>", f" {'And so on and so forth. ' * 8}</p>")
        )  # otherwise too short for a question
    nights()
    page.write_text(page.read_text().replace("This limits", "That limits"))
    result = nights()
    assert result.code == 0 and "no regression set: 5 smoke questions" in result.summary["steps"]["judge"], result


def test_liked_and_verified_questions_are_asked_too(nights, store):
    nights()
    answers = nights.pages.parent / "answer.md"
    answers.write_text("So it is [1].")
    added = nights.jobs.run("answers", "add", "--collection", "docs", "--question", "How far do the limits go?",
                            "--source", f"{BASE}p02.html#limits", "--file", answers)  # fmt: skip
    assert added.code == 0, added.messages
    hit = Hit("id", f"{BASE}p04.html", ("usage",), text="words")
    cited = Answer("a", "What is used?", "It is [1].", hits=(hit,), known=True, citations=(Citation(1, hit.source),))
    store.record_questions([RecordedQuestion("q", "What is used?", cited, "docs")])
    store.record_feedback("q", 1)
    asked = gather_regression_set(store, read_configuration(), "docs", [nights.folder / "rows.jsonl"], 10)
    assert dict(asked.counts) == {"written": 12, "verified": 1, "rated": 1}
    assert asked.examples[-1].sources == (f"{BASE}p04.html#usage",)


STOP = """
create function stop() returns trigger language plpgsql as $$
begin
    if new.steps ? '{step}' then raise exception 'stopped at {step}'; end if;
    return new;
end $$;
create trigger stop before update on run for each row execute function stop();
"""


def stopped(nights: Nights, step: str) -> None:
    """Run a night that an error ends after this step is done but before it is recorded."""
    with psycopg.connect(nights.jobs.url, autocommit=True) as connection:
        connection.execute(STOP.format(step=step))
        result = nights()
        connection.execute("drop trigger stop on run")
    assert result.code == 1 and f"stopped at {step}" in result.messages


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=pytest.mark.exhaustive) for step in ("publish", "index", "judge")]
)
def test_night_killed_between_a_step_and_its_record_resumes_as_planned(nights, store, step):
    nights()
    nights.model = "hash:128"
    stopped(nights, step)
    done = {"index": [], "judge": ["index"], "publish": ["index", "judge"]}[step]
    before, plan = store.status("docs"), nights.jobs.text("plan", nights.file)
    assert (f"continue   the last night, after: {', '.join(done)}\n" in plan) == bool(done)
    assert "about 12 pages new, changed or deleted, as before" in plan and "12 pages (0 new)" in plan
    assert "by 12 written questions" in plan and "may fall: retrieval_score@9 0.02" in plan
    assert store.status("docs") == before  # a plan writes nothing
    nights.site["p05"]["limits"] = "Written after the night had stopped."
    write_site(nights.pages, nights.site)
    result = nights()
    assert (result.code, result.summary["verdict"]) == (0, "published"), result.messages
    assert [name for name in ("index", "judge", "publish") if f"step {name}" not in result.messages] == done
    assert store.live_index("docs").settings.model == "hash:128" and store.candidate_index("docs") is None
    indexes = store.status("docs")["indexes"]
    assert sorted(one["state"] for one in indexes) == ["live", "retired"]
    assert ("after the night" in nights.jobs.texts()["p05.html#limits"]) == (step == "index")  # read again, or not


def test_stopped_night_is_not_resumed_if_the_file_changed(nights):
    nights()
    nights.model = "hash:128"
    stopped(nights, "judge")
    assert "continue   the last night" in nights.jobs.text("plan", nights.file)
    nights.model = "hash:64"
    assert "continue   the last night" not in nights.jobs.text("plan", nights.write())
    assert "step index" in nights().messages


@pytest.mark.exhaustive
def test_night_stopped_long_ago_is_not_resumed(nights):
    nights()
    nights.model = "hash:128"
    stopped(nights, "judge")
    with psycopg.connect(nights.jobs.url) as connection:
        connection.execute("update run set started = started - interval '13 hours'")
    assert "goes on" not in nights.jobs.text("plan", nights.file)
    assert "step index" in nights().messages


WRONG = [
    ({"may_fall": {"recal@9": 0.1}}, "night.may_fall: there is no measure 'recal@9'; there are: retrieval_score@9"),
    ({"may_fall": {"mrr": 2}}, "night.may_fall.mrr"),
    ({"nightly": 1}, "night.nightly"),
    ({"questions": ["none.jsonl"]}, "none.jsonl"),
    ({"train": [{"kind": "reranker", "dataset": "none.jsonl", "output": "x"}]}, "none.jsonl"),
    (
        {"train": [{"kind": "reranker", "dataset": "rows.jsonl", "output": "x", "plan": {"fold": 2}}]},
        "night.train: reranker: plan: fold is unknown",
    ),
]


def test_errors_in_the_file_are_reported_before_any_step(nights):
    for nights.night, said in WRONG:
        result = nights()
        assert result.code == 2 and said in result.messages, said


def test_follow_up_tasks_in_the_file_run_after_the_night(nights, store):
    """test_bucket_dumps.py covers the trial restore of a dump."""
    dumps = nights.folder / "dumps"
    nights.night |= {"prune": 0, "retention_days": 30, "vacuum": True,
                     "dump": {"folder": dumps.as_uri(), "keep": 2, "try_restore": False}}  # fmt: skip
    assert "night.dump.folder" in nights().messages
    dumps.mkdir()
    (dumps / "docs-api-2026-01-01-run1.dump").touch()
    old = datetime.now(UTC) - timedelta(days=40)
    asked = [RecordedQuestion("old", "How was it?", collection="docs", asked_at=old),
             RecordedQuestion("other", "How was it there?", collection="api", asked_at=old),
             RecordedQuestion("new", "How is it?", collection="docs")]  # fmt: skip
    for model in ("hash:256", "hash:128", "hash:64"):
        nights.model = model
        store.record_questions(asked)
        result = nights()
        assert result.code == 0, result.messages
        assert result.summary["steps"]["forget"] == "1 question older than 30 days"
    assert result.summary["steps"]["prune"] == "retired indexes 2"
    assert result.summary["steps"]["tidy"].startswith("2 evaluations of earlier nights")
    names = sorted(path.name.partition("-run")[2] for path in dumps.iterdir())
    assert names == ["1.dump", "2.dump", "3.dump"]  # the first belongs to another collection
    plan = nights.jobs.text("plan", nights.write())
    assert "which keeps 2; there are 2" in plan and "retired indexes none yet; the newest 0 stay" in plan


@pytest.mark.slow
def test_reranker_is_retrained_and_kept_only_if_no_question_gets_worse(nights):
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    plan = {"model": str(tiny_model(nights.folder)), "device": "cpu", "questions": 6, "held_out": 4, "negatives": 2,
            "depth": 5, "k": 2, "max_tokens": 32}  # fmt: skip
    train = {"kind": "reranker", "dataset": "rows.jsonl", "output": "models/mine", "plan": plan, "accept": True}
    nights.night |= {"train": [train], "may_fall": {"mrr": 0}}
    assert "reranker into models/mine once it is 7 days old" in nights.jobs.text("plan", nights.write())
    folder = nights.folder / "models" / "mine"
    worse = nights()
    assert worse.code == 0 and worse.summary["verdict"] == "published", worse.messages
    said = worse.summary["steps"]["train models/mine"]
    assert said.endswith(f"got worse; {folder} stays as it was") and not list(folder.parent.iterdir())
    again = nights()
    assert "was not kept, and is not 7 days old" in again.summary["steps"]["train models/mine"], again.messages
    assert "questions mined" in worse.messages and "questions mined" not in again.messages
    nights.night["may_fall"] = {"mrr": 1}
    kept = nights()
    assert kept.summary["steps"]["train models/mine"].endswith(f"got worse; {folder} is new"), kept.messages
    assert [path.name for path in folder.parent.iterdir()] == ["mine"] and (folder / "card.json").is_file()
    folder.rename(folder.with_name(".mine.old"))  # the state left by a night killed between two renames
    assert "not 7 days old" in nights().summary["steps"]["train models/mine"]
    assert [path.name for path in folder.parent.iterdir()] == ["mine"]
