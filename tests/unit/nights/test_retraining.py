"""A night's retraining: each training is a separate step."""

from unittest.mock import Mock

from pipelines.nights.retraining import Retraining
from pipelines.records.night_choices import TrainChoices


def test_two_trainings_of_one_kind_are_two_steps(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "Why?", "source": "https://x.test/a#b"}\n')
    choices = [TrainChoices(kind="reranker", dataset="rows.jsonl", output=name) for name in ("small", "large")]
    steps = Retraining(Mock(), "docs", choices, tmp_path, "", Mock()).steps()
    assert [*steps] == ["train small", "train large"]
