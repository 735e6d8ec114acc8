"""Turns any value into JSON that Postgres accepts."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from pipelines.text.cleaning import clean_for_storage


def to_jsonb(value: Any) -> Jsonb:
    """Return `value` as a parameter of type jsonb.

    Strings are cleaned for storage, NaN and infinities become null, times become ISO 8601, and numpy numbers plain
    numbers.
    """
    return Jsonb(_storable(value), dumps=_to_json)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return clean_for_storage(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean_for_storage(str(name)): _storable(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(inner) for inner in value]
    return value


def _to_json(value: Any) -> str:
    return json.dumps(value, default=lambda v: v.isoformat() if isinstance(v, datetime) else _storable(float(v)))
