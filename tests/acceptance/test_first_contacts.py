"""The demo works on the first try on other machines: other accounts, folders, disks, networks and Pythons.

Each row starts with a fresh clone and an empty HOME, continues to a cited answer without a language model, and ends
with Ctrl-C. A row that this machine or account cannot create is skipped, with the reason.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from kit.newcomers import Ground, ground, hindered_demo, try_demo

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

# An account on every Unix that does not run root's embedded Postgres.
ORDINARY = "daemon"
IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root makes such a place")


@pytest.fixture(scope="module")
def land() -> Iterator[Ground]:
    with ground() as land:
        yield land


def within(script: str) -> list[str]:
    """Return a command prefix that runs a command after `script` in the same process."""
    return ["bash", "-c", f'{script} && exec "$@"', "bash"]


def own_mounts(*mounts: str) -> list[str]:
    """Return a command prefix that runs a command with private `mounts`. Skips if that is impossible."""
    words = ["unshare", "--mount", *within(" && ".join(mounts))]
    done = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no mounts of its own: {done.stderr.strip()}")
    return words


@as_root
def test_demo_works_for_root_in_a_folder_that_only_root_can_enter(land):
    closed = land.folder / "root"
    closed.mkdir(mode=0o700)
    try_demo(land.settle("root/raydex"))
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("umask", ["022", "077"])
def test_demo_works_for_an_ordinary_account_and_keeps_its_data_private(land, umask):
    place = land.settle(f"umask {umask}/raydex", ORDINARY if IS_ROOT else None, int(umask, 8))
    place.within = within(f"umask {umask}")
    try_demo(place)
    assert (place.home / ".local/share/raydex").stat().st_mode & 0o077 == 0


def test_demo_works_in_a_path_with_spaces_and_non_latin_letters(land):
    """In an ASCII locale, Python 3.11 itself cannot read the path of an editable install."""
    place = land.settle("Große Übersicht (neu)/мой raydex")
    place.environment = {"LANG": "C.UTF-8"}
    try_demo(place)


@as_root
def test_demo_works_with_half_of_a_containers_shared_memory(land):
    """Uses half of a container's default."""
    place = land.settle("shm/raydex")
    place.within = own_mounts("mount -t tmpfs -o size=32m tmpfs /dev/shm")
    try_demo(place)


@as_root
def test_demo_works_on_a_disk_with_just_enough_room(land):
    place = land.settle("little/raydex")
    place.within = own_mounts(f"mount -t tmpfs -o size=400m tmpfs '{place.home}'")
    try_demo(place)


@as_root
@pytest.mark.parametrize(("room", "works"), [("8m", False), ("64m", True), ("110m", True)])
def test_full_disk_is_reported_by_name(land, room, works):
    """The disk is too full for the database, or for an export of the model, without which embedding is slower."""
    place = land.settle(f"full {room}/raydex")
    place.within = own_mounts(f"mount -t tmpfs -o size={room} tmpfs '{place.home}'")
    worked, said = hindered_demo(place)
    assert re.search("free space|No space left", said), said
    assert worked == works, said


@as_root
def test_demo_works_without_a_network_after_the_install(land):
    if shutil.which("ip") is None:
        pytest.skip("no iproute2")
    place = land.settle("offline/raydex")
    place.within = ["unshare", "--net", *within("ip link set lo up")]
    try_demo(place)


@pytest.mark.parametrize("minor", [12, 13, 14])
def test_make_install_works_on_every_newer_python(land, minor):
    """Tests the install itself, from a package index, without a compiler in the environment."""
    python = shutil.which(f"python3.{minor}")
    runs = (
        python is not None and subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0
    )
    if not runs:  # a version manager's stand-in for a Python that is not selected exists, but doesn't run
        pytest.skip(f"no python3.{minor} that runs")
    place = land.clone(f"python3.{minor}/raydex")
    command = ["make", "--silent", "install", "EXTRAS=", f"PYTHON={python}"]
    done = subprocess.run(command, cwd=place.folder, env=place.variables(), capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr or "Could not find" in done.stderr or "Connection" in done.stderr:
        pytest.skip(f"no package index, or none with all packages: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    try_demo(place)
