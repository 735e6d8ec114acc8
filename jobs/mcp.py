"""Gives a coding agent access to the documentation over the Model Context Protocol on stdio.

The agent's program starts it (docs/mcp.md). It runs `python -m serve.mcp` in this process; its flags become the
settings RAYDEX_SERVICE, RAYDEX_KEY, RAYDEX_COLLECTION and RAYDEX_LLM_OFF.
"""

import argparse

from jobs.cli import BadInput, add_no_llm, command, main, run_service, say
from jobs.environment import database_url, ended_by_sigterm
from pipelines import store

EPILOG = "Without --service it answers from this machine's RAYDEX_HOME; no service needs to run. See docs/mcp.md."


def arguments() -> argparse.ArgumentParser:
    parser = command("mcp", __doc__)
    parser.epilog = EPILOG
    parser.add_argument("--service", metavar="URL", help="ask the service at this URL instead")
    parser.add_argument("--key", help="API key of the service (default: RAYDEX_KEY)")
    parser.add_argument("--collection", help="collection to answer from (default: the only one)")
    add_no_llm(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    if args.service and (args.collection or args.llm_off):
        raise BadInput("--service: leave out --collection and --no-llm, which that service decides")
    if not args.service and (url := database_url()):
        with ended_by_sigterm():
            store.wait_for_database(url, lambda message: say(f"raydex mcp: {message}"), store.DATABASE_PATIENCE_S)
    return run_service("serve.mcp", vars(args))


if __name__ == "__main__":
    main(arguments(), run)
