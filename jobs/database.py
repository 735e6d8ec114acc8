"""`python -m jobs.database`: run the embedded Postgres until Ctrl-C and print its DATABASE_URL.

Other commands on this machine find it by themselves; a Ray cluster's jobs need the URL.
"""

import argparse
import signal
from types import FrameType

from jobs.cli import main, say
from jobs.environment import home
from pipelines import embedded


def arguments() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog="python -m jobs.database", description=__doc__)


def work(_args: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with embedded.running(home()) as url:
            say(f"the embedded Postgres of {home()} answers on this machine; Ctrl-C ends it with its last user")
            print(f"export DATABASE_URL={url}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        say("stopped using it")
    return 0


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(arguments(), work)
