"""Servers on this machine and its network are reached directly, all others by the environment's proxy settings."""

import pytest

from pipelines.proxies import direct_mounts, is_near


@pytest.mark.parametrize("url", [
    "http://localhost:11434/v1", "http://127.0.0.1", "http://127.9.9.9:80", "http://[::1]:8080/v1", "http://10.0.0.5",
    "http://192.168.1.20:8000", "http://172.16.3.4", "http://[fd00::1]", "http://[fe80::1%25eth0]:1",
    "http://[::ffff:10.0.0.5]/", "http://ollama:11434/v1", "http://gpu.local", "http://vllm.models.svc:8000",
    "http://host.docker.internal:11434", "http://api.localhost", "https://LOCALHOST.",
])  # fmt: skip
def test_this_machine_and_its_network_are_reached_directly(url: str) -> None:
    assert is_near(url) and direct_mounts(url)


@pytest.mark.parametrize("url", [
    "https://api.openai.com/v1", "http://8.8.8.8", "https://[2606:4700::1111]", "http://localhost.example.com",
    "https://internal.example.com", "", "nonsense",
])  # fmt: skip
def test_all_other_hosts_use_the_proxy(url: str) -> None:
    assert not is_near(url) and not direct_mounts(url)
