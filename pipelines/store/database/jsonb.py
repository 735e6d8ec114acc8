"""Turns any value into JSON that Postgres accepts."""

import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from pipelines.text.cleaning import clean_for_storage


def to_jsonb(value: Any) -> Jsonb:
    """Return `value` as a parameter of type jsonb.

    Strings are cleaned for storage, NaN and infinities become null, times become ISO 8601, and numpy values plain
    values: integers, floats, booleans, strings and lists.
    """
    return Jsonb(_storable(value), dumps=json.dumps)


def _storable(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, str):
        return clean_for_storage(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean_for_storage(str(name)): _storable(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(inner) for inner in value]
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value if value is None or isinstance(value, int) else _storable(float(value))
