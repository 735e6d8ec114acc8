"""Prints the script by which a shell completes `raydex`: its verbs, words and flags.

For bash and zsh, add `source <(raydex completion bash)` to the shell's startup file.
"""

import importlib
from typing import Annotated, Literal

from cyclopts import App, Parameter

from jobs.cli import DONE, main
from jobs.flags import command
from jobs.verbs import VERBS


def run(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="the shell")], /) -> int:
    raydex = App(name="raydex", version_flags=())
    for verb, entry in VERBS.items():
        raydex.command(importlib.import_module(entry.module).app, name=verb)
    print(raydex.generate_completion(shell=shell))
    return DONE


app = command("completion", __doc__, run)


if __name__ == "__main__":
    main(app)
