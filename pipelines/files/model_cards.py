"""Reads and writes card.json, which decides whether a trained model may be used.

It is next to the weights. Training writes it, and loading a model starts by reading it. This module knows no kind of
model.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.files.atomic_files import whole_file
from pipelines.text.parsing import parse_json

CARD_FILE = "card.json"
VERSION = 1


class BadCard(ValueError):
    """A folder has no card, a damaged one, or one of another kind or version."""


def read_card(folder: Path, kind: str) -> dict[str, Any]:
    """Return the card of a model of that `kind`, accepted or not. Raises BadCard."""
    try:
        card = parse_json((folder / CARD_FILE).read_text("utf-8"))
    except FileNotFoundError as error:
        raise BadCard(f"there is no {CARD_FILE}, so there is no trained model here") from error
    except (OSError, ValueError) as error:
        raise BadCard(f"{CARD_FILE} cannot be read ({error})") from error
    if not isinstance(card, dict):
        raise BadCard(f"{CARD_FILE} does not contain an object")
    if card.get("kind") != kind:
        raise BadCard(f"{CARD_FILE} is of kind {card.get('kind')!r}, and {kind!r} is needed")
    if card.get("version") != VERSION:
        raise BadCard(f"{CARD_FILE} is of version {card.get('version')!r}; this program reads version {VERSION}")
    return card


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write the card, the last file of a model's folder: a folder without a card is incomplete."""
    with whole_file(folder / CARD_FILE) as making:
        making.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def may_be_used(folder: Path) -> bool:
    """Return whether a model folder has a card that accepts it, or none because it was not trained here."""
    path = folder / CARD_FILE
    try:
        card = parse_json(path.read_text("utf-8")) if path.is_file() else {"accepted": True}
    except (OSError, ValueError):
        return False
    return isinstance(card, dict) and card.get("accepted") is True
