"""A run refuses things its nodes cannot reach: a database on one machine, and a folder by a relative path."""

import pytest

from jobs.environment import in_ray_job
from pipelines.cluster import UnreachableDatabase, check_reach
from pipelines.indexing.collection import collection_from
from pipelines.indexing.folders.folder import NoSuchFolder

ONE, TWO = {"10.0.0.1"}, {"10.0.0.1", "10.0.0.2"}


@pytest.mark.parametrize("place", ["me:secret@127.0.0.1:5432", "localhost", "me:secret@localhost", "[::1]", ""])
def test_local_database_serves_one_machine_and_hides_its_password(place):
    check_reach(f"postgresql://{place}/docs", ONE)
    with pytest.raises(UnreachableDatabase, match="the cluster has 2 machines") as error:
        check_reach(f"postgresql://{place}/docs", TWO)
    assert "secret" not in str(error.value)


def test_database_server_serves_all_machines():
    check_reach("postgresql://me:secret@db.internal:5432/docs", TWO)


def check(path):
    data = {"name": "docs", "folders": [{"path": path, "base_url": "https://docs.example/"}]}
    [source] = collection_from(data, "test").page_sources()
    source.check(relative_paths=not in_ray_job(), tell=print)


def test_relative_folder_is_refused_only_in_a_ray_job(tmp_path, monkeypatch):
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "a.html").write_text("x")
    monkeypatch.chdir(tmp_path)
    check("html")
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    check(str(tmp_path / "html"))
    check(f"file://{tmp_path}/html")
    with pytest.raises(NoSuchFolder, match="path 'html' is relative"):
        check("html")
