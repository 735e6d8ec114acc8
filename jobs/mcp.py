"""Lets a coding agent look things up: speaks the Model Context Protocol on standard input and output.

The agent's program starts it (docs/mcp.md). It runs `python -m serve.mcp` in this process; its flags become the
settings RAYDEX_SERVICE, RAYDEX_KEY, RAYDEX_COLLECTION and RAYDEX_LLM_OFF.
"""

import argparse
import runpy
import sys

from jobs.cli import DONE, command, main
from jobs.environment import set_variables

EPILOG = "Without --service it answers from this machine's RAYDEX_HOME; no service needs to run. See docs/mcp.md."


def arguments() -> argparse.ArgumentParser:
    parser = command("mcp", __doc__)
    parser.epilog = EPILOG
    parser.add_argument("--service", metavar="URL", help="ask the service at this address instead")
    parser.add_argument("--key", help="API key of the service (default: RAYDEX_KEY)")
    parser.add_argument("--collection", help="collection to answer from (default: the only one)")
    parser.add_argument(
        "--no-llm", dest="llm_off", action="store_true", default=None, help="quote, without any language model"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    set_variables({f"RAYDEX_{name.upper()}": str(value) for name, value in vars(args).items() if value is not None})
    sys.argv[1:] = []  # it reads the environment alone
    runpy.run_module("serve.mcp", run_name="__main__", alter_sys=True)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
