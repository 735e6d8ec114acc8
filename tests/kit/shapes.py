"""Fills the shapes of keys and other strings in tests/data/masking with random characters, the same ones each time."""

import random
import re
import string
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[1] / "data" / "masking"
LETTERS, DIGITS, HEX = string.ascii_letters, string.digits, "0123456789abcdef"
ALPHABETS = {
    "a": LETTERS + DIGITS,
    "b": LETTERS + DIGITS + "+/",
    "c": string.ascii_lowercase,
    "d": DIGITS,
    "h": HEX,
    "l": string.ascii_lowercase + DIGITS,
    "u": string.ascii_uppercase + DIGITS,
    "x": string.ascii_uppercase + "234567",
    "w": LETTERS + DIGITS + "-_",
}
LEAST_LEFT = 5  # characters of a secret that show nothing


@dataclass(frozen=True)
class Filled:
    """A text with the parts that must be masked in it."""

    kind: str
    text: str
    secrets: tuple[str, ...]

    def leaks(self, masked: str) -> bool:
        """Return whether a masked text still has half of a secret, or more than LEAST_LEFT characters in a row."""
        return any(_leaks(secret, masked) for secret in self.secrets)


def read_shapes(name: str, seed: int = 0) -> list[Filled]:
    """Return the texts of one file, with their shapes filled."""
    rows = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return [_fill(kind, shape, random.Random(f"{seed} {shape}")) for kind, shapes in rows.items() for shape in shapes]


def _fill(kind: str, shape: str, chance: random.Random) -> Filled:
    def characters(found: re.Match[str]) -> str:
        alphabet, count = ALPHABETS[found[1]], int(found[2])
        drawn = "".join(chance.choices(alphabet, k=count))
        # A key of some length has digits and letters; without this, a short one may have none.
        if set(alphabet) >= {"a", "1"} and count >= 6 and (drawn.isalpha() or drawn.isdigit()):
            drawn = drawn[: count // 2] + "7f" + drawn[count // 2 + 2 :]
        return drawn

    text = re.sub(r"\{([abcdhluwx])(\d+)\}", characters, shape)
    secrets = tuple(re.findall(r"«(.*?)»", text, re.DOTALL))
    return Filled(kind, re.sub("[«»]", "", text), secrets)


def _leaks(secret: str, masked: str) -> bool:
    span = min(len(secret), max(LEAST_LEFT + 1, len(secret) // 2))
    return any(secret[at : at + span] in masked for at in range(len(secret) - span + 1))
