"""Simulates a slow cable between a bridge and a network namespace in a process that delays each frame.

    python slow_link.py LINK NAMESPACE DELAY_S BITS_PER_S

Does the work of `tc netem delay … rate …` in each direction, on kernels without it. Prints "ready" once the devices
exist: LINK for the bridge and eth0 in the namespace. They disappear with the process.
"""

import contextlib
import fcntl
import itertools
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
FRAME_BYTES = 1518
QUEUED_FRAMES = 1_000  # netem's own default


def _tap(name: str) -> int:
    """Create a TAP device whose cable is this process, and return its file."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def _carry(source: int, target: int, delay_s: float, bits_per_s: float) -> None:
    """Carry frames like a link: sending takes time, delivery is delayed, and frames beyond the queue are lost."""
    waiting: deque[tuple[float, bytes]] = deque()
    arrived = threading.Semaphore(0)

    def deliver() -> None:
        while True:
            arrived.acquire()
            at, frame = waiting.popleft()
            time.sleep(max(0.0, at - time.monotonic()))
            with contextlib.suppress(OSError):  # the device is down
                os.write(target, frame)

    threading.Thread(target=deliver, daemon=True).start()
    free_at = time.monotonic()
    while True:
        frame = os.read(source, FRAME_BYTES + 4)
        now = time.monotonic()
        free_at = max(free_at, now) + len(frame) * 8 / bits_per_s
        if (free_at - now) * bits_per_s < QUEUED_FRAMES * FRAME_BYTES * 8:
            waiting.append((free_at + delay_s, frame))
            arrived.release()
        else:
            free_at -= len(frame) * 8 / bits_per_s


def main(link: str, namespace: str, delay_s: float, bits_per_s: float) -> None:
    """Connect the bridge's `link` with eth0 of a namespace until killed."""
    ends = [_tap(link), _tap(f"{link}e")]
    subprocess.run(["ip", "link", "set", f"{link}e", "netns", namespace, "name", "eth0"], check=True)
    for source, target in itertools.permutations(ends):
        threading.Thread(target=_carry, args=(source, target, delay_s, bits_per_s), daemon=True).start()
    print("ready", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
