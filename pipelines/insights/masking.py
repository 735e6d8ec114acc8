"""Masks personal data and secrets in text: addresses, numbers, keys, passwords.

Knows only the patterns of masking.yaml: a person's name in a sentence stays. `Store.named_question` uses these masks
for any text.
"""

import ipaddress
import re

from pipelines.text.cleaning import clean_for_storage
from pipelines.text.phrases import read_phrases

_PHRASES = read_phrases(__name__)
# A random part of a key is at least this long, and one in LEAST_DIGITS of its characters is a digit. Of 62 characters,
# 10 are digits: of 1,000 random strings of 12 characters, 877 have one; identifiers have one in 20 at most.
RANDOM_LENGTH, LEAST_DIGITS = 12, 20
LEAST_MIXED = 2  # capital letters, small letters and digits, each, in a key whose - and _ leave only short parts
NEAR = 40  # characters before a hash in which a word says what it is


def mask(text: str) -> str:
    """Return `text` with e-mail addresses, public IP addresses, phone numbers, user folders and secrets masked."""
    text = _PHRASES["private_key"].sub("[private key]", clean_for_storage(text))
    text = _PHRASES["login"].sub(lambda found: f"{found[found.lastindex or 0]}[login]@", text)
    for pattern in (_PHRASES["header"], _PHRASES["login_flag"], _PHRASES["secret_path"]):
        text = pattern.sub(lambda found: f"{found[found.lastindex or 0]}[secret]", text)
    text = _PHRASES["prefixed"].sub(_mask_key, _PHRASES["key"].sub("[key]", text))
    text = _PHRASES["told"].sub(_mask_mixed, _PHRASES["named"].sub(_mask_value, text))
    text = _PHRASES["told_key"].sub(_mask_key, text)
    text = _PHRASES["phone"].sub("[phone]", _PHRASES["email"].sub("[e-mail]", text))
    text = _PHRASES["phone_named"].sub(r"\1[phone]", text)
    text = _PHRASES["opaque"].sub(_mask_opaque, _PHRASES["user_folder"].sub(r"\1[user]", text))
    return _PHRASES["address"].sub(_mask_address, text)


def _is_random(text: str) -> bool:
    """Return whether a part of a string looks random: long, of letters and digits."""
    parts = re.split(r"[^A-Za-z0-9]", text)
    return any(
        len(part) >= RANDOM_LENGTH and not part.isdigit() and sum(map(str.isdigit, part)) * LEAST_DIGITS >= len(part)
        for part in parts
    )


def _last_group(found: re.Match[str]) -> tuple[str, str]:
    """Return a match in two parts: up to its last group, and from there. Without groups, the first part is empty."""
    start = found.start(found.lastindex or 0) - found.start()
    return found[0][:start], found[0][start:]


def _mask_key(found: re.Match[str]) -> str:
    """Mask the last group of a match, or all of it, if it looks random or mixes kinds of characters."""
    before, value = _last_group(found)
    kinds = (str.isupper, str.islower, str.isdigit)
    mixed = all(sum(map(kind, value)) >= LEAST_MIXED for kind in kinds)
    return f"{before}[key]" if mixed or _is_random(value) else found[0]


def _mask_value(found: re.Match[str]) -> str:
    """Mask the last group of a match, a value, unless it is harmless."""
    before, value = _last_group(found)
    return found[0] if _PHRASES["harmless"].match(value) else f"{before}[secret]"


def _mask_mixed(found: re.Match[str]) -> str:
    """Mask a value that follows its name without a sign, if it has letters and digits: `password hunter22`."""
    value = found[found.lastindex or 0]
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not re.match(r"v?\d+\.\d", value)
    return _mask_value(found) if mixed else found[0]


def _mask_opaque(found: re.Match[str]) -> str:
    """Mask a long random string, unless it is a mangled C++ name, or a word before it says that it is a public hash."""
    before = found.string[max(0, found.start() - NEAR) : found.start()]
    public = found[0].startswith("_Z") or _PHRASES["public"].search(f"{before}{found[0].partition('-')[0]}")
    return "[key]" if _is_random(found[0]) and not public else found[0]


def _mask_address(found: re.Match[str]) -> str:
    """Mask a public IP address; private and loopback ones (10.…, 127.0.0.1) reveal nothing."""
    try:
        return "[address]" if ipaddress.ip_address(found[0]).is_global else found[0]
    except ValueError:
        return found[0]
