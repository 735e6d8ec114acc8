"""Serves the chat page, the API and the OpenAI-compatible API until Ctrl-C.

Runs `python -m serve` in this process; its flags become the settings RAYDEX_HOST, RAYDEX_PORT and so on.
"""

from typing import Annotated

from cyclopts import Parameter

from jobs.cli import main, run_service, say
from jobs.environment import database_url, ended_by_sigterm
from jobs.flags import OR_DEFAULT, NoLLM, command
from pipelines.store import wait_for_database

NOTE = "Every other setting of the service is an environment variable RAYDEX_…: see docs/serving.md."


def run(
    *,
    host: Annotated[
        str | None, Parameter(help="address to listen on (default: 127.0.0.1); any other requires API keys")
    ] = None,
    port: Annotated[int | None, Parameter(help="port to listen on (default: 8000)")] = None,
    collection: Annotated[str | None, Parameter(help=f"collection to answer from {OR_DEFAULT}")] = None,
    llm_off: NoLLM = None,
    check: Annotated[
        str | None,
        Parameter(help="only check this Serve config file, before `serve deploy FILE`: one line for each fault"),
    ] = None,
) -> int:
    if check:
        return run_service("serve", {}, "check", check)
    if url := database_url():
        with ended_by_sigterm():
            wait_for_database(url, lambda message: say(f"raydex serve: {message}"))
    return run_service("serve", {"host": host, "port": port, "collection": collection, "llm_off": llm_off})


app = command("serve", __doc__, run, note=NOTE)


if __name__ == "__main__":
    main(app)
