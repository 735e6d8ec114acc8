"""Signs what is sent between machines, so that its receiver knows who sent it, and when.

HMAC-SHA-256, with a secret that both know, of the time, a dot and the body. Knows no HTTP and no clock of its own.
"""

import hmac

SIGNATURE_HEADER, TIMESTAMP_HEADER, DELIVERY_HEADER = "X-Raydex-Signature", "X-Raydex-Timestamp", "X-Raydex-Delivery"
# A request that is older or newer is refused: nobody can send it again later. Clocks differ by less.
WINDOW_S = 300


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature of `body` at `timestamp` (Unix time)."""
    return "sha256=" + hmac.new(secret.encode(), b"%d." % timestamp + body, "sha256").hexdigest()


def is_signed(secret: str, timestamp: str, body: bytes, signature: str, now: float) -> bool:
    """Return whether `signature` is that of `body` at `timestamp`, and the time within the window around `now`."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 20):
        return False
    right = sign(secret, int(timestamp), body)
    return abs(now - int(timestamp)) <= WINDOW_S and hmac.compare_digest(right.encode(), signature.encode())
