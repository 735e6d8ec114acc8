"""Simulates a hostile site's Internet in the process of a crawler.

Names resolve to the addresses that a test sets, a public address leads to the test's site, and every address to which
the process opens a socket is recorded.
"""

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

from tests.kit.page_ledger import FileLedger

PUBLIC = "93.184.215.14"
LEDGER = "tests.kit.hostile_network:HostileLedger"


def write_network(ledger: Path, names: dict[str, list[str]], port: int) -> None:
    """Make `names` resolve to these addresses, one per look-up (then always the last), and route PUBLIC to `port`."""
    Path(f"{ledger}.network").write_text(json.dumps({"names": names, "port": port}))


def opened(ledger: Path) -> Counter[str]:
    """Return the number of sockets that the crawler opened to each address."""
    noted = Path(f"{ledger}.sockets")
    return Counter(noted.read_text().split()) if noted.exists() else Counter()


class HostileLedger(FileLedger):
    """A ledger in a file that replaces the crawler's network with that of `write_network`."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        network = json.loads(Path(f"{path}.network").read_text())
        answers = {name: iter(addresses) for name, addresses in network["names"].items()}
        last = {name: addresses[-1] for name, addresses in network["names"].items()}
        real = socket.getaddrinfo

        def getaddrinfo(host: bytes, port: Any, *args: Any, **more: Any) -> Any:
            name = host.decode().rstrip(".").lower()
            return real(next(answers[name], last[name]) if name in answers else host, port, *args, **more)

        class Routed(socket.socket):
            def connect_ex(self, address: Any) -> int:
                with Path(f"{path}.sockets").open("a") as file:
                    file.write(f"{address[0]}\n")
                return super().connect_ex(("127.0.0.1", network["port"]) if address[0] == PUBLIC else address)

            def connect(self, address: Any) -> None:
                if error := self.connect_ex(address):
                    raise OSError(error, "connect")

        socket.getaddrinfo, socket.socket = getaddrinfo, Routed  # type: ignore[assignment, misc]
        from scrapy.extensions.throttle import AutoThrottle

        def started_at_once(crawler: Any) -> AutoThrottle:
            crawler.settings.set("AUTOTHROTTLE_START_DELAY", 0.0, "cmdline")  # by default a second
            return AutoThrottle(crawler)

        AutoThrottle.from_crawler = started_at_once  # type: ignore[method-assign]
