"""Answers in Slack, in the thread of each mention and direct message, until Ctrl-C.

Runs `python -m serve.slack` in this process; its flags become the settings RAYDEX_SERVICE and so on. It asks a service
over HTTP, so it runs on any machine that can reach Slack and the service.
"""

from typing import Annotated

from cyclopts import Parameter

from jobs.cli import main, run_service
from jobs.flags import at_most_one, command

NOTE = "Tokens come from SLACK_BOT_TOKEN and SLACK_APP_TOKEN, the service's API key from RAYDEX_KEY: see docs/slack.md."


def run(
    *,
    service: Annotated[
        str | None, Parameter(help="URL of the service to ask (default: the one of RAYDEX_HOME, else port 8000)")
    ] = None,
    workspaces: Annotated[
        str | None, Parameter(help="YAML file: workspaces with their tokens, collections of channels")
    ] = None,
    collection: Annotated[
        str | None, Parameter(help="collection to ask if the file names none (default: the service chooses)")
    ] = None,
    check: Annotated[bool, Parameter(help="check tokens, workspaces and service, then end")] = False,
    manifest: Annotated[bool, Parameter(help="print the manifest for creating the Slack app, then end")] = False,
) -> int:
    at_most_one(check=check, manifest=manifest)
    words = [word for word, given in (("check", check), ("manifest", manifest)) if given]
    settings = {"service": service, "slack_workspaces": workspaces, "collection": collection}
    return run_service("serve.slack", {name: value or None for name, value in settings.items()}, *words)


app = command("slack", __doc__, run, note=NOTE)


if __name__ == "__main__":
    main(app)
