"""The embedded Postgres's settings follow the machine and the data."""

import pytest

from pipelines.keeper import memory_within, size_log, size_of, size_server
from pipelines.store.publish import LEAST_LIMIT, _memory_of_build

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("memory", "data", "buffers"),
    [
        pytest.param(24 * GIB, 0, "256MB", id="no data yet"),
        pytest.param(24 * GIB, 3 * GIB, "3072MB", id="all of the data"),
        pytest.param(24 * GIB, 90 * GIB, "6144MB", id="a quarter of the memory"),
        pytest.param(512 * MIB, 90 * GIB, "256MB", id="a small machine"),
    ],
)
def test_server_keeps_its_data_in_a_share_of_memory(memory, data, buffers):
    assert size_server(memory, 64 * GIB, data, 2)["shared_buffers"] == buffers


def test_build_uses_at_most_the_available_shared_memory():
    assert size_server(24 * GIB, 64 * GIB, 0, 2)["maintenance_work_mem"] == "6144MB"
    assert size_server(24 * GIB, 2 * GIB, 0, 2)["maintenance_work_mem"] == "1536MB"
    container = size_server(24 * GIB, 64 * MIB, 0, 2)
    assert container["maintenance_work_mem"] == "6144MB"  # in files, not in the container's shared memory
    assert container["dynamic_shared_memory_type"] == "mmap"


def test_write_ahead_log_leaves_a_small_disk_to_the_data():
    assert [size_log(room)["max_wal_size"] for room in (GIB // 4, 5 * GIB, 90 * GIB)] == ["64MB", "512MB", "4096MB"]


def test_every_cpu_can_build():
    workers = [size_server(GIB, GIB, 0, cpus)["max_parallel_maintenance_workers"] for cpus in (1, 2, 64)]
    assert workers == ["1", "1", "63"]
    assert int(size_server(GIB, GIB, 0, 64)["max_parallel_workers"]) >= 63


def test_folder_size_counts_files_at_any_depth(tmp_path):
    assert size_of(tmp_path / "absent") == 0
    (tmp_path / "base" / "1").mkdir(parents=True)
    (tmp_path / "base" / "1" / "2600").write_bytes(bytes(1000))
    (tmp_path / "top").write_bytes(bytes(24))
    assert size_of(tmp_path) == 1024


def test_build_keeps_to_the_limit_of_a_small_machine():
    """A database of the user's own has Postgres's 64 MB; the keeper's limit is a share of the machine's memory."""
    chunks = {"chunks": 10**6, "vector_bytes": 1544}
    assert _memory_of_build(**chunks, allowed=64 * MIB, strict=False) == f"{LEAST_LIMIT >> 10}kB"
    assert _memory_of_build(**chunks, allowed=4 * GIB, strict=False) == "2452254kB"
    assert _memory_of_build(**chunks, allowed=256 * MIB, strict=True) == f"{256 << 10}kB"


def test_container_memory_is_its_limit_in_either_version_of_cgroups(tmp_path):
    second, first = tmp_path / "memory.max", tmp_path / "memory" / "memory.limit_in_bytes"
    first.parent.mkdir()
    whole = memory_within(tmp_path)
    assert whole > 64 * MIB
    second.write_text("max\n")
    first.write_text("9223372036854771712\n")  # version 1 writes this for no limit
    assert memory_within(tmp_path) == whole
    first.write_text(f"{64 * MIB}\n")
    assert memory_within(tmp_path) == 64 * MIB
    second.write_text(f"{32 * MIB}\n")
    assert memory_within(tmp_path) == 32 * MIB
