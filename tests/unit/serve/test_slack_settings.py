"""The Slack bot's settings: faults are reported with their location, and the manifest requests its scopes."""

import sys
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr, ValidationError

from serve.slack.installations import HISTORY_SCOPES, SCOPES
from serve.slack.settings import SlackRefused, SlackSettings, check_installed, find_tokens
from serve.slack.workspaces import BadWorkspaces, Workspaces, read_workspaces

ROOT = Path(__file__).parents[3]
MANIFEST = (ROOT / "serve" / "slack" / "manifest.yaml").read_text()
FILE = """
collection: ray
workspaces:
  T0A: {token: TOKEN_A, channels: {C0B: pg}}
  T0B: {collection: docs}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "workspaces.yaml"
    path.write_text(text)
    return str(path)


def test_bot_without_its_package_says_what_to_install(monkeypatch):
    check_installed()
    monkeypatch.setitem(sys.modules, "slack_bolt", None)  # how Python represents a missing package
    with pytest.raises(SlackRefused, match=r"`pip install 'raydex\[slack\]'`"):
        check_installed()


def test_collection_is_set_by_channel_then_workspace_then_file(tmp_path):
    workspaces = read_workspaces(written(tmp_path, FILE), {"TOKEN_A": "xoxb-a"})
    places = {("T0A", "C0B"): "pg", ("T0A", "C0X"): "ray", ("T0B", "C0B"): "docs", ("T0X", "C0B"): "ray"}
    assert {place: workspaces.collection(*place) for place in places} == places
    assert workspaces.tokens == {"T0A": "xoxb-a"} and workspaces.collections == {"ray", "pg", "docs"}
    assert "xoxb-a" not in repr(workspaces)


def test_named_collection_is_used_without_a_file():
    assert read_workspaces("", {}, "ray").collection("T1", "C1") == "ray"
    assert read_workspaces("", {}).collection("T1", "C1") == ""


@pytest.mark.parametrize(("text", "message"), [
    ("workspaces: {acme: {}}", "'acme' is not a workspace ID: an ID starts with T"),
    ("workspaces: {T1: {channels: {'#help': pg}}}", "'#help' is not a channel ID: an ID starts with C"),
    ("workspaces: {T1: {token: xoxb-1-2}}", "T1: token: write the name of the variable that holds it, not the token"),
    ("workspaces: {T1: {token: NOPE}}", "T1: token: the variable NOPE is not set"),
    ("workspaces: {T1: {tokens: A}}", "tokens"),
    ("workspaces: [", "is not valid YAML"),
])  # fmt: skip
def test_unusable_file_is_an_error_with_its_location(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(BadWorkspaces) as refused:
        read_workspaces(path, {})
    assert message in str(refused.value) and path in str(refused.value) and "xoxb-1-2" not in str(refused.value)
    with pytest.raises(BadWorkspaces, match="can't be read: No such file"):
        read_workspaces(f"{path}.gone", {})


@pytest.mark.parametrize(("bot", "app", "message"), [
    ("xoxb-1", "", "SLACK_APP_TOKEN is not set"),
    ("", "xapp-1", "SLACK_BOT_TOKEN is not set"),
    ("xoxb-1", "xoxb-2", "SLACK_APP_TOKEN holds a token of a bot or user"),
    ("xapp-1", "xapp-2", "SLACK_BOT_TOKEN holds a token of another kind"),
    ("xoxp-1", "xapp-2", "SLACK_BOT_TOKEN holds a token of another kind"),
])  # fmt: skip
def test_missing_or_wrong_token_is_reported(bot, app, message):
    settings = SlackSettings(slack_bot_token=SecretStr(bot), slack_app_token=SecretStr(app))
    with pytest.raises(SlackRefused, match=message):
        find_tokens(settings, Workspaces())


@pytest.mark.parametrize("name", ["slack_service", "slack_api_url"])
def test_address_must_be_a_web_address(name):
    with pytest.raises(ValidationError, match="must begin with http"):
        SlackSettings.model_validate({name: "localhost:8000"})


def test_manifest_requests_the_scopes_of_the_bot_and_matches_the_docs():
    manifest = yaml.safe_load(MANIFEST)
    assert manifest["oauth_config"]["scopes"]["bot"] == [*SCOPES, *HISTORY_SCOPES]
    assert manifest["settings"]["socket_mode_enabled"] and manifest["settings"]["interactivity"]["is_enabled"]
    assert set(manifest["settings"]["event_subscriptions"]["bot_events"]) == {"app_mention", "message.im"}
    assert MANIFEST in (ROOT / "docs" / "slack.md").read_text()
