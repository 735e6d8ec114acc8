"""The tests' browser detects executed scripts, loaded files and policy violations."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from kit.api import run_server
from kit.browser import Browser, needs_browser

pytestmark = [pytest.mark.slow, needs_browser]

PAGE = """<html lang="en"><title>Form</title><body><main><h1>Form</h1>
<label>Name <input></label></main>"""
HOSTILE = "<title>x</title><script>alert(1)</script><img src='//evil.example/x.png'><p style='color:red'>x</p>"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    app = FastAPI()
    app.get("/")(lambda: HTMLResponse(PAGE))
    app.get("/hostile")(lambda: HTMLResponse(HOSTILE))
    strict = {"Content-Security-Policy": "default-src 'none'"}
    app.get("/strict")(lambda: HTMLResponse(HOSTILE, headers=strict))
    with run_server(app) as url:
        yield url


def test_renewed_browser_has_forgotten_stored_data(browser: Browser, url: str) -> None:
    stored = "[localStorage.x, sessionStorage.x, document.cookie]"
    browser.open(url)
    browser.evaluate("localStorage.x = sessionStorage.x = 1; document.cookie = 'x=1'")
    assert browser.evaluate(stored) == ["1", "1", "x=1"]
    browser.renew()
    browser.open(url)
    assert browser.evaluate(stored) == [None, None, ""]


def test_executed_scripts_and_loaded_files_are_detected(browser: Browser, url: str) -> None:
    browser.open(f"{url}/hostile")
    assert [dialog["message"] for dialog in browser.named("Page.javascriptDialogOpening")] == ["1"]
    assert "http://evil.example/x.png" in browser.requests()


def test_policy_violations_are_detected_and_test_scripts_are_not_blocked(browser: Browser, url: str) -> None:
    browser.open(f"{url}/strict")
    assert browser.named("Page.javascriptDialogOpening") == []
    stopped = [entry["entry"]["text"] for entry in browser.named("Log.entryAdded")]
    assert any("inline style" in text for text in stopped) and any("script" in text for text in stopped), stopped
    browser.wait_for("eval('1 + 1') === 2")


def test_size_colors_and_reduced_motion_are_emulated(browser: Browser, url: str) -> None:
    matches = "['(prefers-color-scheme: dark)', '(prefers-reduced-motion)'].map(query => matchMedia(query).matches)"
    browser.open(url, width=390, dark=True, reduced_motion=True)
    assert browser.evaluate(f"[innerWidth, ...{matches}]") == [390, True, True]
    browser.emulate(width=800)
    assert browser.evaluate(f"[innerWidth, ...{matches}]") == [800, False, False]


def test_accessibility_violations_are_found(browser: Browser, url: str) -> None:
    browser.open(url)
    assert browser.violations() == []
    browser.evaluate("document.querySelector('label').replaceWith(document.querySelector('input'))")
    (found,) = browser.violations()
    assert found.startswith("label: ")
