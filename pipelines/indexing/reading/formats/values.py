"""Splits lines of comma-separated values, or of values with another delimiter, into cells."""

import csv
from collections.abc import Iterable


def rows_of_values(lines: Iterable[str], delimiter: str) -> list[list[str]]:
    """Return the cells of each row. If the lines can't be split, each is a row of one cell."""
    lines = list(lines)
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    except csv.Error:  # a cell of more than 131,072 characters
        return [[line] for line in lines]
