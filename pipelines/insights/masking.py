"""Masks in a text what names a person or opens a door: addresses, numbers, keys, passwords.

Knows patterns only: a name in a sentence stays. `Store.named_question` takes the masks for any text.
"""

import ipaddress
import re

from pipelines.text.cleaning import clean_for_storage

# Every repetition has an upper bound, so that no text takes long.
EMAIL = re.compile(r"[\w.+'-]{1,64}(?:@|%40)[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
PHONE = re.compile(r"(?<![\w.+-])\+\d{1,3}[ ./-]?\(?\d(?:[ ()./-]?\d){6,13}(?![\w-])")
ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4})(?![\w:]|\.\d)")
USER_FOLDER = re.compile(r"((?:/home/|/Users/|\b[A-Za-z]:\\{1,2}Users\\{1,2}))[^\s/\\:\"'<>|]{1,64}")
# Keys that say what they are, by the prefixes that their services document; JSON web tokens; private keys.
KEY = re.compile(
    r"\b(?:(?:sk|pk|rk)[-_][\w-]{12,200}|(?:rdx|rds)_[\w-]{12,200}"
    r"|(?:gh[oprsu]|glpat|xox[a-z]|hf|npm|pypi|dop_v1|shpat)[-_][\w-]{12,200}|github_pat_\w{20,200}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,60}|ya29\.[\w-]{20,500}|SG\.[\w-]{16,64}\.[\w-]{16,64}"
    r"|eyJ[\w-]{8,1000}\.[\w-]{8,2000}(?:\.[\w-]{0,1000})?)"
)
PEM = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)", re.DOTALL)
# A value after a word that says that it is secret, and the user's part of a URL.
NAMED = re.compile(
    r"(?i)((?<![\w-])[\w-]{0,40}?"
    r"(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
    r"[\w-]{0,20}[\"']?\s{0,3}(?:=|:(?!:)|\bis\b)\s{0,3})(\"[^\"\n]{3,200}\"|'[^'\n]{3,200}'|[^\s\"',;&)]{3,200})"
)
BEARER = re.compile(r"(?i)\b(bearer|basic)\s{1,3}[\w.~+/=-]{8,2000}")
LOGIN = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^\s/@]{1,200}@")
# What is long, has digits and letters and no word: a hash of a commit is one too, and is no loss here.
OPAQUE = re.compile(
    r"(?<![\w/.-])(?=[\w+/=-]{0,200}\d)(?=[\w+/=-]{0,200}[A-Za-z])"
    r"(?:[0-9a-fA-F]{32,200}|[A-Za-z0-9_+/-]{40,200}={0,2})(?![\w/.-])"
)
# A value that documentation gives as an example, or code that is no value.
HARMLESS = re.compile(
    r"(?i)[\"']?(?:none|null|true|false|not|an?|the|required|missing|invalid|wrong|expired|optional|refused|str|string|your)\b"
    r"|[\"']?(?:os\.|get|[${<]|\.\.\.|xxx)"
)


def mask(text: str) -> str:
    """Return `text` with e-mail addresses, public IP addresses, phone numbers, users' folders and secrets masked."""
    text = PEM.sub("[private key]", clean_for_storage(text))
    text = LOGIN.sub(r"\1[login]@", text)
    text = BEARER.sub(r"\1 [secret]", KEY.sub("[key]", text))
    text = NAMED.sub(lambda found: found[0] if HARMLESS.match(found[2]) else f"{found[1]}[secret]", text)
    text = EMAIL.sub("[e-mail]", text)
    text = OPAQUE.sub("[key]", USER_FOLDER.sub(r"\1[user]", PHONE.sub("[phone]", text)))
    return ADDRESS.sub(_mask_address, text)


def _mask_address(found: re.Match[str]) -> str:
    """Mask an address that leads to one machine of the world; those of every network (10.…, 127.0.0.1) say nothing."""
    try:
        return "[address]" if ipaddress.ip_address(found[0]).is_global else found[0]
    except ValueError:
        return found[0]
