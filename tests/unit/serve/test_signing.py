"""Messages between machines are signed in the common format, and a signature expires."""

import pytest

from pipelines.signing import WINDOW_S, is_signed, sign

BODY, AT = b'{"changed":[]}', 1_700_000_000
# printf '1700000000.{"changed":[]}' | openssl dgst -sha256 -hmac secret
BY_OPENSSL = "sha256=84f25b9609e946b8ccd348250b51444724cc9f7d3838f9c724fe6214a62ce823"


def test_signature_equals_the_one_of_openssl():
    assert sign("secret", AT, BODY) == BY_OPENSSL
    assert is_signed("secret", str(AT), BODY, BY_OPENSSL, AT + WINDOW_S)


@pytest.mark.parametrize(
    ("secret", "timestamp", "body", "signature", "now"),
    [
        ("other", str(AT), BODY, BY_OPENSSL, AT),
        ("secret", str(AT + 1), BODY, BY_OPENSSL, AT),
        ("secret", str(AT), BODY + b" ", BY_OPENSSL, AT),
        ("secret", str(AT), BODY, BY_OPENSSL.removeprefix("sha256="), AT),
        ("secret", str(AT), BODY, "", AT),
        ("secret", str(AT), BODY, "sha256=ü", AT),
        ("secret", str(AT), BODY, BY_OPENSSL, AT + WINDOW_S + 1),
        ("secret", str(AT), BODY, BY_OPENSSL, AT - WINDOW_S - 1),
        ("secret", "", BODY, BY_OPENSSL, AT),
        ("secret", "-1", BODY, BY_OPENSSL, AT),
        ("secret", "9" * 40, BODY, BY_OPENSSL, AT),
    ],
)
def test_signature_of_anything_else_is_refused(secret, timestamp, body, signature, now):
    assert not is_signed(secret, timestamp, body, signature, now)
