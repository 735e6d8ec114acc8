"""Prints the help of a command in two columns that fit the terminal: names and meanings."""

import shutil
import textwrap
from collections.abc import Iterator
from typing import Any

from cyclopts.help import HelpEntry, HelpPanel

from jobs.terminal import is_styled

INDENT, NAMES, MOST = 2, 26, 100  # characters: before a name, of the column of names, of a line
LONGEST = 10_000  # characters of one text
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


class Columns:
    """A formatter of cyclopts; titles and names are bold on a terminal."""

    def __init__(self) -> None:
        self._bold, self._plain = (BOLD, PLAIN) if is_styled() else ("", "")
        self._width = min(shutil.get_terminal_size().columns, MOST)

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
        """Print a group of flags, words or actions."""
        if panel.entries:
            print(f"\n{self._bold}{panel.title}{self._plain}")
            print("\n".join(line for entry in panel.entries for line in self._entry(entry, console)))

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print the line that shows how the command is called."""
        said = plain(usage, console).removeprefix("Usage: ")
        print(textwrap.fill(f"usage: {said}", self._width, subsequent_indent="       "))

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print the description of the command."""
        print(textwrap.fill(plain(description, console), self._width))

    def _entry(self, entry: HelpEntry, console: Any) -> Iterator[str]:
        """Yield the lines of a flag: its name, then its meaning, on the same line if there is room."""
        name = ", ".join(entry.display_labels_with_metavar)
        lines = textwrap.wrap(meaning(entry, console), self._width - INDENT - NAMES)
        room = NAMES - len(name)
        first = f"{' ' * room}{lines.pop(0)}" if room >= 2 and lines else ""
        yield f"{' ' * INDENT}{self._bold}{name}{self._plain}{first}"
        yield from (f"{' ' * (INDENT + NAMES)}{line}" for line in lines)


def meaning(entry: HelpEntry, console: Any) -> str:
    """Return the meaning of a flag, its choices and its default."""
    choices = f"({', '.join(entry.choices)})" if entry.choices else ""
    default = f"(default: {entry.default})" if entry.default is not None else ""
    needed = "(required)" if entry.required else ""
    return " ".join(filter(None, [plain(entry.description, console), choices, default, needed]))


def plain(shown: Any, console: Any) -> str:
    """Return the text of a rich renderable on one line, without styles."""
    wide = console.options.update(width=LONGEST)
    return "" if shown is None else " ".join("".join(part.text for part in console.render(shown, wide)).split())
