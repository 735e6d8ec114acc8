"""Ray's token allows running code, so only its own account can read it before Ray starts."""

import os
import stat
from pathlib import Path

import pytest

from pipelines.cluster import keep_token_private


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_new_account_gets_a_private_token(home: Path) -> None:
    before = os.umask(0)
    try:
        keep_token_private()
    finally:
        os.umask(before)
    token = home / ".ray" / "auth_token"
    assert rights(token) == 0o600 and rights(token.parent) == 0o700 and len(token.read_text()) == 64
    keep_token_private()
    assert [path.name for path in token.parent.iterdir()] == ["auth_token"]


def test_world_readable_token_is_made_private_and_kept(home: Path) -> None:
    token = home / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("mine")
    token.parent.chmod(0o755)
    token.chmod(0o644)
    keep_token_private()
    assert (rights(token), rights(token.parent), token.read_text()) == (0o600, 0o700, "mine")


def test_token_in_another_place_is_made_private_and_not_duplicated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = home / "token"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(elsewhere))
    keep_token_private()
    assert not elsewhere.exists() and not (home / ".ray" / "auth_token").exists()
    elsewhere.write_text("given")
    elsewhere.chmod(0o644)
    keep_token_private()
    assert rights(elsewhere) == 0o600
