"""Runs clusters that start and stop nodes themselves, with Ray's autoscaler and its provider of local nodes."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from kit.nodes import RayNodes, cluster, loopback_host

IDLE_S = 6.0
PORT = 6379
NOTHING_TO_DO = (
    "head_start_ray_commands", "worker_start_ray_commands", "initialization_commands", "setup_commands",
    "head_setup_commands", "worker_setup_commands", "cluster_synced_files", "rsync_exclude", "rsync_filter",
)  # fmt: skip
HEAD_ID = "f" * 51 + "00000"  # the name of the head in Ray's provider


@contextlib.contextmanager
def scaling_cluster(folder: Path, cpus: float, most: int, head_cpus: float) -> Iterator[RayNodes]:
    """Start a head that starts up to `most` nodes with `cpus` while work waits, and stops nodes idle for 6 s."""
    host = loopback_host()
    worker = {"resources": {"CPU": cpus, "object_store_memory": 100_000_000}, "node_config": {}}
    config = {
        "cluster_name": "scaling",
        "max_workers": most,
        "idle_timeout_minutes": IDLE_S / 60,
        "upscaling_speed": 4.0,
        "provider": {
            "type": "external",  # under its own name, Ray looks for a file that its wheel lacks
            "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
            "gcs_address": f"{host.address}:{PORT}",
            "head_node_id": HEAD_ID,
            "launch_multiple": True,
        },
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": head_cpus}, "node_config": {}, "max_workers": 0},
            "worker": worker | {"min_workers": 0, "max_workers": most},
        },
        "head_node_type": "ray.head.default",
        "file_mounts_sync_continuously": False,
        "auth": {},
        "docker": {},
        "file_mounts": {},
        **{name: [] for name in NOTHING_TO_DO},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (file := folder / "autoscaling.json").write_text(json.dumps(config))
    variables = {"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1", "RAY_CLOUD_INSTANCE_ID": HEAD_ID,
                 "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID, "RAY_enable_autoscaler_v2": "1"}  # fmt: skip
    with cluster(folder, head_cpus, host, [f"--autoscaling-config={file}"], PORT, **variables) as nodes:
        yield nodes
