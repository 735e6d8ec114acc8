"""Answers in Slack, in the thread of each mention and direct message, until Ctrl-C.

Runs `python -m serve.slack` in this process; its flags become the settings RAYDEX_SERVICE and so on. It asks a service
over HTTP, so it runs on any machine that can reach Slack and the service.
"""

import argparse

from jobs.cli import command, main, run_service

EPILOG = (
    "Tokens come from SLACK_BOT_TOKEN and SLACK_APP_TOKEN, the service's API key from RAYDEX_KEY: see docs/slack.md."
)


def arguments() -> argparse.ArgumentParser:
    parser = command("slack", __doc__)
    parser.epilog = EPILOG
    parser.add_argument("--service", help="URL of the service to ask (default: the one of RAYDEX_HOME, else port 8000)")
    file = "YAML file: workspaces with their tokens, collections of channels"
    parser.add_argument("--workspaces", dest="slack_workspaces", metavar="WORKSPACES", help=file)
    parser.add_argument("--collection", help="collection to ask if the file names none (default: the service's)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="check tokens, workspaces and service, then end")
    only.add_argument("--manifest", action="store_true", help="print the manifest for creating the Slack app, then end")
    return parser


def run(args: argparse.Namespace) -> int:
    flags = vars(args)
    words = [word for word in ("check", "manifest") if flags.pop(word)]
    return run_service("serve.slack", {name: value or None for name, value in flags.items()}, *words)


if __name__ == "__main__":
    main(arguments(), run)
