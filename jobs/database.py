"""Keeps the embedded Postgres running until Ctrl-C and prints its DATABASE_URL.

Other commands on this machine find it automatically; the jobs of a Ray cluster need the URL.
"""

import signal

from jobs.cli import DONE, main, say
from jobs.environment import home
from jobs.flags import command
from pipelines import embedded


def run() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with embedded.run_postgres(home()) as url:
            say(f"the embedded Postgres of {home()} is running; after Ctrl-C it stops when nobody else uses it")
            print(f"export DATABASE_URL={url}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        say("released the database")
    return DONE


app = command("database", __doc__, run)


if __name__ == "__main__":
    main(app)
