"""Gives a coding agent access to the documentation over the Model Context Protocol on stdio.

The agent's program starts it (docs/mcp.md). It runs `python -m serve.mcp` in this process; its flags become the
settings RAYDEX_SERVICE, RAYDEX_KEY, RAYDEX_COLLECTION and RAYDEX_LLM_OFF.
"""

from typing import Annotated

from cyclopts import Parameter

from jobs.cli import BadInput, main, run_service, say
from jobs.environment import database_url, ended_by_sigterm
from jobs.flags import OR_DEFAULT, NoLLM, command
from pipelines import store

NOTE = "Without --service it answers from this machine's RAYDEX_HOME; no service needs to run. See docs/mcp.md."


def run(
    *,
    service: Annotated[str | None, Parameter(help="ask the service at this URL instead")] = None,
    key: Annotated[str | None, Parameter(help="API key of the service (default: RAYDEX_KEY)")] = None,
    collection: Annotated[str | None, Parameter(help=f"collection to answer from {OR_DEFAULT}")] = None,
    llm_off: NoLLM = None,
) -> int:
    if service and (collection or llm_off):
        raise BadInput("--service: leave out --collection and --no-llm, which that service decides")
    if not service and (url := database_url()):
        with ended_by_sigterm():
            store.wait_for_database(url, lambda message: say(f"raydex mcp: {message}"), store.DATABASE_PATIENCE_S)
    settings = {"service": service, "key": key, "collection": collection, "llm_off": llm_off}
    return run_service("serve.mcp", settings)


app = command("mcp", __doc__, run, note=NOTE)


if __name__ == "__main__":
    main(app)
