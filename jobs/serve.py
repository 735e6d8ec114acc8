"""Serves the chat page, the API and the OpenAI-compatible API until Ctrl-C.

Runs `python -m serve` in this process; its flags become the settings RAYDEX_HOST, RAYDEX_PORT and so on.
"""

import argparse

from jobs.cli import add_no_llm, command, main, run_service, say
from jobs.environment import database_url, ended_by_sigterm
from pipelines.store import wait_for_database

EPILOG = "Every other setting of the service is an environment variable RAYDEX_…: see docs/serving.md."


def arguments() -> argparse.ArgumentParser:
    parser = command("serve", __doc__)
    parser.epilog = EPILOG
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1); any other requires API keys")
    parser.add_argument("--port", type=int, help="port to listen on (default 8000)")
    parser.add_argument("--collection", help="collection to answer from (default: the only one)")
    add_no_llm(parser)
    check = "only check this Serve config file, before `serve deploy FILE`: one line for each fault"
    parser.add_argument("--check", metavar="FILE", help=check)
    return parser


def run(args: argparse.Namespace) -> int:
    if args.check:
        return run_service("serve", {}, "check", args.check)
    if url := database_url():
        with ended_by_sigterm():
            wait_for_database(url, lambda message: say(f"raydex serve: {message}"))
    return run_service("serve", {name: value for name, value in vars(args).items() if name != "check"})


if __name__ == "__main__":
    main(arguments(), run)
