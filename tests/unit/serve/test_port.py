"""Two services never share a port: the second one names the holder and says what to do."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobs import demo
from pipelines.files.services import announce
from serve.port import AddressUnusable, claim_port, describe_holder, is_of_this_machine

HOST = "127.0.0.1"
LISTENER = """
import socket, sys, time
listening = socket.create_server(("127.0.0.1", 0), reuse_port=True)
print(listening.getsockname()[1], flush=True)
time.sleep(600)
"""


def listen_as_ray_does(port: int = 0) -> socket.socket:
    return socket.create_server((HOST, port), reuse_port=True)


def test_port_of_another_service_is_refused() -> None:
    with listen_as_ray_does() as other:
        port = other.getsockname()[1]
        with pytest.raises(AddressUnusable, match="--port or RAYDEX_PORT") as error, claim_port(HOST, port):
            pass
    assert f"port {port} is taken by" in str(error.value)


def test_claim_excludes_other_claims_but_lets_the_ray_proxy_listen() -> None:
    with claim_port(HOST, 0) as port:
        refuse_another_claim(port)
        with listen_as_ray_does(port):
            refuse_another_claim(port)
        refuse_another_claim(port)
    with claim_port(HOST, port) as again:
        assert again == port


def test_port_can_be_claimed_despite_lingering_connections() -> None:
    with claim_port(HOST, 0) as port, listen_as_ray_does(port) as listening:
        client = socket.create_connection((HOST, port))
        listening.accept()[0].close()  # the side that closes first lingers
        client.close()
    with claim_port(HOST, port):
        pass


def test_suggested_port_is_free() -> None:
    with claim_port(HOST, 0) as port, pytest.raises(AddressUnusable, match="--port ") as error, claim_port(HOST, port):
        pass
    proposed = int(str(error.value).rpartition("--port ")[2].rstrip("`"))
    with claim_port(HOST, proposed):
        assert proposed != port


def test_address_of_another_machine_is_reported() -> None:
    with pytest.raises(AddressUnusable, match=r"192\.0\.2\.1, port 0.*--host"), claim_port("192.0.2.1", 0):
        pass


def test_only_addresses_of_this_machine_are_local() -> None:
    assert is_of_this_machine("127.0.0.1") and is_of_this_machine("localhost")
    assert not is_of_this_machine("192.0.2.1") and not is_of_this_machine("nowhere.invalid")


def test_occupied_port_ends_the_command_early_and_a_demo_says_so(tmp_path: Path) -> None:
    """The flag wins over the variable."""
    variables = home_in(tmp_path) | {"RAYDEX_PORT": "1", "RAY_ADDRESS": "127.0.0.1:1"}  # a cluster on this machine
    with listen_as_ray_does() as other, tempfile.TemporaryFile("w+") as messages:
        port = other.getsockname()[1]
        failed = pytest.raises(demo.DemoFailed, match=f"port {port} is taken by")
        with demo.run_service(variables, port, messages) as service, failed:
            demo.wait_until_ready(service, "http://127.0.0.1:1/", messages)
        messages.seek(0)
        assert service.returncode == 1 and "Traceback" not in messages.read()
    assert list(tmp_path.iterdir()) == []


def test_demo_stops_indexing_if_its_service_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "python"
    endless.write_text("#!/bin/sh\nexec sleep 600\n")
    endless.chmod(0o755)
    with tempfile.TemporaryFile("w+") as messages:
        messages.write("starting\nport 8000 is taken by another process\n")
        with subprocess.Popen([sys.executable, "-c", ""]) as service:
            monkeypatch.setattr(demo.sys, "executable", str(endless))
            with pytest.raises(demo.DemoFailed, match=r"^port 8000 is taken"):
                demo.run_command({}, "index", service=service, messages=messages)


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_signal_stops_a_service_during_startup(number: str) -> None:
    start = f"m.find_llm = lambda _: signal.raise_signal(signal.{number}); raise SystemExit(m.main())"
    words = [sys.executable, "-c", f"import signal, serve.__main__ as m; {start}"]
    ended = subprocess.run(words, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux shows who listens where")


@needs_proc
def test_other_process_is_named_with_its_command(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, env=home_in(tmp_path)) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        assert f"process {other.pid}: {sys.executable} -c" in describe_holder(port)
        with announce(tmp_path, f"http://127.0.0.1:{port}"):  # like the proxy of a service in this home
            described = describe_holder(port)
        assert str(tmp_path) in described and f"process {os.getpid()}" in described
        other.send_signal(signal.SIGKILL)


@needs_proc
def test_invisible_port_holder_is_still_reported() -> None:
    with claim_port(HOST, 0) as port:
        assert "another process" in describe_holder(port)


def home_in(folder: Path) -> dict[str, str]:
    return os.environ | {"RAYDEX_HOME": str(folder)}


def refuse_another_claim(port: int) -> None:
    with pytest.raises(AddressUnusable), claim_port(HOST, port):
        pass
