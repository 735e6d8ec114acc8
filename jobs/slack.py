"""Answers in Slack, in the thread of each mention and direct message, until Ctrl-C.

Runs `python -m serve.slack` in this process; its flags become the settings RAYDEX_SERVICE and so on. It asks a
service over HTTP, so it runs wherever Slack and the service can be reached.
"""

import argparse
import runpy
import sys

from jobs.cli import DONE, command, main
from jobs.environment import set_variables

EPILOG = (
    "Tokens come from SLACK_BOT_TOKEN and SLACK_APP_TOKEN, the service's API key from RAYDEX_KEY: see docs/slack.md."
)
VARIABLES = {
    "service": "RAYDEX_SERVICE",
    "workspaces": "RAYDEX_SLACK_WORKSPACES",
    "collection": "RAYDEX_COLLECTION",
}


def arguments() -> argparse.ArgumentParser:
    parser = command("slack", __doc__)
    parser.epilog = EPILOG
    parser.add_argument("--service", help="URL of the service to ask (default: the one of RAYDEX_HOME, else port 8000)")
    parser.add_argument("--workspaces", help="YAML file: workspaces with their tokens, collections of channels")
    parser.add_argument("--collection", help="collection to ask where the file names none (default: the service's)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="check tokens, workspaces and service, then end")
    only.add_argument("--manifest", action="store_true", help="print the manifest to make the Slack app from, then end")
    return parser


def run(args: argparse.Namespace) -> int:
    set_variables({variable: getattr(args, flag) for flag, variable in VARIABLES.items() if getattr(args, flag)})
    sys.argv[1:] = [word for word in ("check", "manifest") if getattr(args, word)]
    runpy.run_module("serve.slack", run_name="__main__", alter_sys=True)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
