"""Signs messages between machines, so that the receiver knows who sent them, and when.

The signature is HMAC-SHA-256, with a shared secret, over the time, a dot and the body. This module knows no HTTP, and
callers pass the time.
"""

import hmac

SIGNATURE_HEADER, TIMESTAMP_HEADER, DELIVERY_HEADER = "X-Raydex-Signature", "X-Raydex-Timestamp", "X-Raydex-Delivery"
# Older or newer requests are refused, so that nobody can replay one later. Clocks differ by less than this.
WINDOW_S = 300


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature of `body` at `timestamp` (Unix time)."""
    return "sha256=" + hmac.new(secret.encode(), b"%d." % timestamp + body, "sha256").hexdigest()


def is_signed(secret: str, timestamp: str, body: bytes, signature: str, now: float) -> bool:
    """Return whether `signature` fits `body` and `timestamp`, and the timestamp is within the window around `now`."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 20):
        return False
    right = sign(secret, int(timestamp), body)
    return abs(now - int(timestamp)) <= WINDOW_S and hmac.compare_digest(right.encode(), signature.encode())
