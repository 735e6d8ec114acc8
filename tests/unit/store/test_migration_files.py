"""The schema's files are numbered without a gap, each number once."""

import pytest

from pipelines.store.migrations.migrate import read_migrations


def test_migrations_are_numbered_from_one_without_a_gap():
    migrations = read_migrations()
    assert migrations[0].name == "schema"
    assert [migration.number for migration in migrations] == list(range(1, len(migrations) + 1))


def test_two_migrations_with_one_number_are_refused(tmp_path):
    for name in ("001_one.sql", "001_other.sql", "notes.sql"):
        (tmp_path / name).write_text("select")
    with pytest.raises(ValueError, match=r"001_one and 001_other .* renumber"):
        read_migrations(tmp_path)
