"""Failures as the chat page shows them in a real browser; no question is ever lost."""

import json

import pytest
from kit.browser import needs_browser
from kit.chat import LAST, QUESTION, Site

from pipelines.store import StoreUnavailable

pytestmark = [pytest.mark.slow, needs_browser]
BOX = "document.querySelector('[name=question]').value"
AGAIN = ".failure button"


def body(kind: str, error: str = "Words of the service.", **more: object) -> str:
    return json.dumps({"error": error, "kind": kind, **more})


def test_question_stays_in_the_box_if_the_service_is_gone(site: Site) -> None:
    page = site.open()
    site.reply("/query/stream", 0, "")
    site.ask()
    assert "can't be reached" in page.text(".failure") and page.evaluate(BOX) == QUESTION
    site.recover()
    page.click(AGAIN)
    site.browser.wait_for(f"!!{LAST}.querySelector('.thumbs')")
    assert page.count(".turn") == 1 and page.evaluate(BOX) == ""


def test_error_midway_is_shown_and_keeps_the_partial_answer(site: Site) -> None:
    site.engine.holds_at = 0
    site.engine.fails_midway = StoreUnavailable("away")
    page = site.open()
    site.send()
    page.type("[name=question]", "The next one")
    site.engine.gate.set()
    site.await_end()
    assert page.evaluate(BOX) == "The next one" and page.text(".question") == QUESTION
    assert "Call" in page.text(".answer") and "busy or starting" in page.text(".failure")


def test_interrupted_answer_keeps_its_partial_text(site: Site) -> None:
    page = site.open()
    events = 'event: hits\ndata: {"hits": []}\n\nevent: delta\ndata: {"text": "The first half"}\n\n'
    site.reply("/query/stream", 200, events, **{"content-type": "text/event-stream"})
    site.ask()
    assert page.text(".answer") == "The first half" and "broke off" in page.text(".failure")
    assert page.evaluate(BOX) == QUESTION


def test_rate_limit_shows_a_countdown(site: Site) -> None:
    page = site.open()
    site.reply("/query/stream", 429, body("rate", retry_after=2))
    site.ask()
    assert page.evaluate(f"document.querySelector('{AGAIN}').disabled") and "second" in page.text(".wait")
    site.recover()
    page.wait_for(f"!document.querySelector('{AGAIN}').disabled")
    page.click(AGAIN)
    page.wait_for(f"!!{LAST}.querySelector('.thumbs')")


@pytest.mark.parametrize("path", ["/collections", "/query/stream"])
def test_missing_key_is_requested_and_kept_for_the_tab(site: Site, path: str) -> None:
    sent = []
    site.browser.do(lambda page: page.on("request", lambda request: sent.append(request.headers.get("authorization"))))
    site.reply(path, 401, body("no_key"))
    page = site.open()
    if path == "/query/stream":
        site.send()
    page.wait_for("!!document.querySelector('.failure')")
    assert "API key is needed" in page.text(".failure")
    site.recover()
    page.do(lambda page: page.fill(".key input", "rdx_secret"))
    page.press("Enter")
    page.wait_for("!document.querySelector('.failure')")
    if path == "/query/stream":
        page.wait_for(f"!!{LAST}.querySelector('.thumbs')")
    assert "Bearer rdx_secret" in sent
    assert page.evaluate("sessionStorage.getItem('raydex-key')") == "rdx_secret"
    assert "rdx_secret" not in page.evaluate("JSON.stringify(localStorage)")


def test_refused_key_can_be_replaced(site: Site) -> None:
    page = site.open()
    page.evaluate("sessionStorage.setItem('raydex-key', 'rdx_old')")
    page = site.open()
    site.reply("/query/stream", 401, body("bad_key"))
    site.ask()
    assert "not accepted" in page.text(".failure") and page.count(".key input") == 1


def test_page_without_an_index_shows_the_command(site: Site) -> None:
    site.store.live.clear()
    page = site.open()
    page.wait_for("!!document.querySelector('.failure')")
    assert "raydex index" in page.text(".failure code")
    assert page.do(lambda page: page.is_visible("[name=question]"))


def test_refused_field_is_named(site: Site) -> None:
    page = site.open()
    site.reply("/query/stream", 422, body("invalid", "question: it is too long"))
    site.ask()
    assert "Question: it is too long." in page.text(".failure")


@pytest.mark.parametrize(("status", "said", "shown"), [
    (413, body("too_long"), ("Die Frage ist zu lang", "Kürzen Sie sie")),
    (
        500, body("internal", request="r123"),
        ("Etwas ist schiefgegangen", "Im Dienst ist ein Fehler aufgetreten. (r123)"),
    ),
])  # fmt: skip
def test_unexpected_failures_are_explained_in_the_language_of_the_reader(site: Site, status, said, shown) -> None:
    site.browser.accept("de-AT,en")
    page = site.open()
    site.reply("/query/stream", status, said)
    site.ask()
    assert all(text in page.text(".failure") for text in shown) and "Words of" not in page.text(".failure")
    assert page.evaluate(BOX) == QUESTION


def test_undelivered_feedback_is_reported(site: Site) -> None:
    page = site.open_and_ask()
    site.reply("/feedback", 0, "")
    page.click("[aria-label='Good answer']")
    page.wait_for("document.querySelector('.feedback').textContent.includes('Not sent')")


def test_page_works_if_storage_is_blocked(site: Site) -> None:
    forbid = "Object.defineProperty(window, '{}', {{get() {{ throw 1 }}}});"
    forbid_all = "".join(forbid.format(name) for name in ("localStorage", "sessionStorage"))
    site.browser.do(lambda page: page.add_init_script(forbid_all))
    page = site.open_and_ask()
    assert "read_csv" in page.text(".answer")


HALF = 'event: hits\ndata: {"hits": []}\n\nevent: delta\ndata: {"text": "The first half"}\n\n'
STREAM = {"content-type": "text/event-stream"}


def test_reload_in_the_middle_of_an_answer_keeps_the_partial_text(site: Site) -> None:
    site.engine.says, site.engine.holds_at = "Call `read_csv` [1], and more.", 15
    page = site.open()
    site.send()
    page.wait_for("document.querySelector('.answer')?.textContent.includes('read_csv')")
    page = site.open()
    assert page.text(".question") == QUESTION and "Call read_csv" in page.text(".answer")
    assert "broke off" in page.text(".failure") and "page was reloaded" in page.text(".failure")
    assert page.count(".answer .number") == page.count(".sources li") == 1
    site.engine.gate.set()
    page.click(AGAIN)
    page.wait_for(f"!!{LAST}.querySelector('.thumbs')")
    assert page.count(".turn") == 1 and "and more" in page.text(".answer")
    assert site.open().count(".failure") == 0


def test_reload_before_the_first_token_keeps_the_question(site: Site) -> None:
    page = site.open_and_ask()
    site.engine.holds_at = 0
    site.send("And parquet?")
    page.wait_for("document.querySelectorAll('.turn').length === 2")
    page = site.open()
    assert page.evaluate(f"{LAST}.querySelector('.question').textContent") == "And parquet?"
    assert page.count(".thumbs") == 1, "the turn before stays"


def test_stopped_answer_is_still_there_after_a_reload(site: Site) -> None:
    site.engine.says, site.engine.holds_at = "Call `read_csv` [1], and more.", 15
    page = site.open()
    site.send()
    page.wait_for("document.querySelector('.answer')?.textContent.includes('read_csv')")
    page.press("Escape")
    page = site.open()
    assert "Call read_csv" in page.text(".answer") and "You stopped" in page.text(".foot")
    assert page.count(".failure") == 0


def test_retry_after_a_broken_stream_keeps_the_old_text_until_complete(site: Site) -> None:
    page = site.open()
    site.reply("/query/stream", 200, HALF, **STREAM)
    site.ask()
    site.recover()
    site.reply("/query/stream", 503, body("unavailable"))
    page.click(AGAIN)
    page.wait_for("document.querySelectorAll('.failure').length === 2")
    assert page.text(".turn:first-child .answer") == "The first half"
    site.recover()
    site.engine.holds_at = 7
    page.click(f".turn:last-child {AGAIN}")
    page.wait_for(f"{LAST}.querySelector('.answer').textContent.includes('Call')")
    assert page.text(".turn:first-child .answer") == "The first half" and page.count(".turn") == 2
    site.engine.gate.set()
    page.wait_for(f"!!{LAST}.querySelector('.thumbs')")
    assert page.count(".turn") == 2, "only the empty turn is replaced: what came before it is not"


@pytest.mark.parametrize("again", ["Ask again", "Edit and ask again"])
def test_regenerated_answer_replaces_the_old_one_only_when_complete(site: Site, again: str) -> None:
    page = site.open_and_ask()
    site.reply("/query/stream", 503, body("unavailable"))
    page.click(f".turn [aria-label='{again}']")
    if again != "Ask again":
        page.click(".editor .primary")
    page.wait_for("!!document.querySelector('.failure')")
    assert "read_csv" in page.text(".turn:first-child .answer") and page.count(".turn") == 2
    assert site.open().count(".turn") == 1, "what did not come is not kept"


@pytest.mark.parametrize(("status", "kind"), [(413, "too_long"), (422, "invalid"), (403, "forbidden")])
def test_no_retry_is_offered_if_it_can_only_fail(site: Site, status: int, kind: str) -> None:
    page = site.open()
    site.reply("/query/stream", status, body(kind, **({"limit": 2000} if kind == "too_long" else {})))
    site.ask()
    assert page.count(AGAIN) == 0 and page.evaluate(BOX) == QUESTION
    assert kind != "too_long" or "at most 2,000 characters. Shorten it" in page.text(".failure")
