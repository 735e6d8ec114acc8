"""Serves the page to ask at, the API and the OpenAI-compatible API until Ctrl-C.

Runs `python -m serve` in this process; its flags become the settings RAYDEX_HOST, RAYDEX_PORT and so on.
"""

import argparse
import runpy
import sys

from jobs.cli import DONE, command, main, say
from jobs.environment import database_url, ended_by_sigterm, set_variables
from pipelines.store import wait_for_database

EPILOG = "Every other setting of the service is an environment variable RAYDEX_…: see docs/serving.md."


def arguments() -> argparse.ArgumentParser:
    parser = command("serve", __doc__)
    parser.epilog = EPILOG
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1); any other requires API keys")
    parser.add_argument("--port", type=int, help="port to listen on (default 8000)")
    parser.add_argument("--collection", help="collection to answer from (default: the only one)")
    parser.add_argument(
        "--no-llm", dest="llm_off", action="store_true", default=None, help="quote, without any language model"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    set_variables({f"RAYDEX_{name.upper()}": str(value) for name, value in vars(args).items() if value is not None})
    if url := database_url():
        with ended_by_sigterm():
            wait_for_database(url, lambda message: say(f"raydex serve: {message}"))
    sys.argv[1:] = []  # the service reads the environment alone
    runpy.run_module("serve", run_name="__main__", alter_sys=True)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
