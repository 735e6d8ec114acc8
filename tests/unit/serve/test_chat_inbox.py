"""A message is taken once by all processes of a folder, and unfinished messages of a process are found."""

import json
import os

import pytest

from serve.chat.inbox import KEEP_S, Inbox
from serve.chat.question import Asked

ASKED = Asked("T1", "C1", "1.0", "1.1", "How?")


def texts(folder):
    return [path.read_text() for path in folder.glob("*.json")]


@pytest.mark.parametrize("has_folder", [True, False])
def test_message_is_taken_once(tmp_path, has_folder):
    inbox = Inbox(tmp_path if has_folder else None)
    assert inbox.take(ASKED).first == ""
    assert inbox.take(ASKED) is None
    inbox.close(ASKED)
    assert inbox.take(ASKED) is None


def test_one_of_two_processes_takes_a_message_and_it_stays_answered(tmp_path):
    one, other = Inbox(tmp_path), Inbox(tmp_path)
    assert one.take(ASKED)
    assert other.take(ASKED) is None and list(other.left_over()) == []
    one.close(ASKED)
    assert Inbox(tmp_path).take(ASKED) is None and list(Inbox(tmp_path).left_over()) == []
    assert texts(tmp_path) == ["{}"]


@pytest.mark.parametrize("how", ["delivered again", "looked for"])
def test_unfinished_messages_of_a_process_are_taken_over(tmp_path, how):
    ended = Inbox(tmp_path)
    ended.take(ASKED)
    ended.note(ASKED, "1.2")
    ended.release()
    following = Inbox(tmp_path)
    taken = following.take(ASKED) if how == "delivered again" else next(following.left_over())
    assert (taken.asked, taken.first) == (ASKED, "1.2") and taken.age_s < 60
    assert list(following.left_over()) == [] and Inbox(tmp_path).take(ASKED) is None


def test_foreign_file_is_left_alone(tmp_path):
    (tmp_path / "x.json").write_text("what?")
    (tmp_path / "y.json").write_text(json.dumps({"asked": {"team": 1}, "first": ""}))
    assert list(Inbox(tmp_path).left_over()) == []


def test_old_files_are_deleted(tmp_path):
    old = tmp_path / "old.json"
    old.write_text("{}")
    os.utime(old, (old.stat().st_mtime - KEEP_S - 60,) * 2)
    Inbox(tmp_path).take(ASKED)
    assert len(list(tmp_path.iterdir())) == 1 and not old.exists()


def test_impossible_folder_only_loses_the_memory_across_restarts(tmp_path):
    (tmp_path / "file").write_text("")
    inbox = Inbox(tmp_path / "file" / "slack")
    assert inbox.take(ASKED) and inbox.take(ASKED) is None
    inbox.note(ASKED, "1.2")
    inbox.close(ASKED)


def test_full_disk_costs_no_answer(tmp_path):
    inbox = Inbox(tmp_path / "slack")
    (tmp_path / "slack").rmdir()
    assert inbox.take(ASKED)
    inbox.close(ASKED)


def test_file_that_another_process_has_just_deleted_is_no_error(tmp_path):
    (tmp_path / "deleted.json").symlink_to(tmp_path / "nothing here")  # listed, but has no state
    assert Inbox(tmp_path).take(ASKED)
