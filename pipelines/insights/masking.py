"""Masks personal data and secrets in text: addresses, numbers, keys, passwords.

Knows only the patterns of masking.yaml: a person's name in a sentence stays. `Store.named_question` uses these masks
for any text.
"""

import ipaddress
import re

from pipelines.text.cleaning import clean_for_storage
from pipelines.text.phrases import read_phrases

_PHRASES = read_phrases(__name__)


def mask(text: str) -> str:
    """Return `text` with e-mail addresses, public IP addresses, phone numbers, user folders and secrets masked."""
    text = _PHRASES["private_key"].sub("[private key]", clean_for_storage(text))
    text = _PHRASES["login"].sub(r"\1[login]@", text)
    text = _PHRASES["bearer"].sub(r"\1 [secret]", _PHRASES["key"].sub("[key]", text))
    text = _PHRASES["named"].sub(_mask_value, text)
    text = _PHRASES["phone"].sub("[phone]", _PHRASES["email"].sub("[e-mail]", text))
    text = _PHRASES["opaque"].sub("[key]", _PHRASES["user_folder"].sub(r"\1[user]", text))
    return _PHRASES["address"].sub(_mask_address, text)


def _mask_value(found: re.Match[str]) -> str:
    return found[0] if _PHRASES["harmless"].match(found[2]) else f"{found[1]}[secret]"


def _mask_address(found: re.Match[str]) -> str:
    """Mask a public IP address; private and loopback ones (10.…, 127.0.0.1) reveal nothing."""
    try:
        return "[address]" if ipaddress.ip_address(found[0]).is_global else found[0]
    except ValueError:
        return found[0]
