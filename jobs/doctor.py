"""Checks that everything Raydex needs on this machine works, and says how to fix each failure.

Changes nothing: no migration is applied, nothing is downloaded, no export is written. The embedded Postgres is started
if its data exists, and stopped again. Ray is started in a separate process, and ended. A language model writes two
short answers. Exit code 1 if a check failed.
"""

import contextlib
import platform
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from jobs import environment
from jobs.cli import DONE, FAILED, finish, main
from jobs.flags import Json, command
from jobs.terminal import print_result
from pipelines.diagnosis import Check, Finding, failed, fine, run_check, warning
from pipelines.text.sheets import Grid, Sheet, row_with_lines

if TYPE_CHECKING:
    from pipelines.answering.settings import AnswerSettings
    from pipelines.diagnosis.database import DatabaseCheck
    from pipelines.llm.servers import FoundLLM

QUICK_S, DATABASE_S, MODEL_S, RAY_S, LLM_S = 10.0, 75.0, 120.0, 90.0, 300.0
WIDTHS = (6, 12, 0)  # characters: of states, of the names of most checks, and what is left for findings
NOTE = "A check that takes longer than its limit (10 s to 5 minutes) fails."


def run(*, as_json: Json = False) -> int:
    results: list[dict[str, str]] = []
    with contextlib.ExitStack() as stack:
        for check in list_checks(stack):
            run_check(check, partial(report, results, check.name, as_json))
    states = [result["state"] for result in results]
    counts = {state: states.count(state) for state in ("ok", "warn", "failed")}
    finish({"checks": results, **counts}, as_json, summarise(counts))
    return FAILED if counts["failed"] else DONE


def report(results: list[dict[str, str]], name: str, silent: bool, finding: Finding) -> None:
    """Store a finding, and print it unless everything is printed at the end."""
    results.append({"check": name, "state": finding.state, "found": finding.found, "remedy": finding.remedy})
    if not silent:
        lines = [f"→ {finding.remedy}"] if finding.remedy else []
        rows = row_with_lines([finding.state, name, finding.found], lines)
        print_result(Sheet("", [Grid(["", "", ""], rows, "<", WIDTHS)]))


def summarise(counts: dict[str, int]) -> Sheet:
    """Return the last lines of the report."""
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return Sheet("", ["", f"{told}: {'the failures above need a look' if counts['failed'] else 'Raydex can run'}"])


def list_checks(stack: contextlib.ExitStack) -> Iterator[Check]:
    """Yield the checks; each is created after the previous ones have run, and may use their findings."""
    from pipelines.answering.factory import make_embedder
    from pipelines.diagnosis import cluster, machine
    from pipelines.diagnosis.database import DatabaseCheck
    from pipelines.diagnosis.models import ModelCheck
    from pipelines.files.services import find_services
    from pipelines.records import IndexSettings

    settings, problem = read_settings()
    yield Check("Raydex", lambda: check_settings(problem), QUICK_S)
    yield Check("disk", lambda: machine.check_disk(settings.home), QUICK_S)
    yield Check("memory", machine.check_memory, QUICK_S)
    yield Check("shared mem.", machine.check_shared_memory, QUICK_S)
    database = DatabaseCheck(environment.database_url(), settings.home, stack.enter_context)
    yield Check("database", database.check_database, DATABASE_S)
    yield Check("pgvector", database.check_pgvector, QUICK_S)
    yield Check("schema", database.check_schema, QUICK_S)
    models = ModelCheck(settings.home / "models", lambda model: make_embedder(settings, model))
    for model in sorted({IndexSettings().embedding, *database.models()}, key=str):
        yield Check("model", partial(models.check, model), MODEL_S)
    yield Check("collections", lambda: database.check_collections(models.dimensions), QUICK_S)
    yield Check("Ray", lambda: cluster.check_ray(environment.ray_address(), database.url, RAY_S), RAY_S + QUICK_S)
    yield from list_agents(settings, database)
    services = [service.url for service in find_services(settings.home)]
    yield Check("service", lambda: machine.check_port(environment.service_port(), services), QUICK_S)


def list_agents(settings: "AnswerSettings", database: "DatabaseCheck") -> Iterator[Check]:
    """Yield the checks of the language models: the configured ones, or the one that `raydex serve` would find."""
    from pipelines.answering.forms import describe_forms
    from pipelines.answering.settings import all_agents
    from pipelines.diagnosis.endpoints import check_agent

    chosen = [settings]

    def choose() -> Iterator[Finding]:
        chosen[0], found = environment.find_models(settings)
        yield from describe_choice(found)

    yield Check("answers", choose, QUICK_S * 2)
    agents = all_agents(chosen[0])
    for agent in agents:
        yield Check(f"agent {agent.name}", partial(check_agent, agent), LLM_S)
    if agents:
        yield Check("form", lambda: map(fine, describe_forms(agents, database.trials())), QUICK_S)


def describe_choice(found: "FoundLLM") -> Iterator[Finding]:
    """Yield what answers; a search without a result is not a failure, because nobody asked for a model."""
    for line in found.lines:
        written = line.startswith("answers are") and not found.settings.get("llm_off")
        yield fine(line) if written else warning(line)


def read_settings() -> tuple["AnswerSettings", str]:
    """Return the settings and "", or the defaults and the problem with the environment's settings."""
    from pipelines.answering.settings import AnswerSettings

    try:
        return environment.read_configuration(), ""
    except environment.BadVariable as error:
        return AnswerSettings.model_validate({"home": environment.home()}), str(error)


def check_settings(problem: str) -> Iterator[Finding]:
    """Report the platform, and whether its settings are valid."""
    if problem:
        yield failed(problem, "correct the variable RAYDEX_… of that setting: docs/configuration.md, docs/serving.md")
    yield fine(
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, home {environment.home()}"
    )


app = command("doctor", __doc__, run, note=NOTE)


if __name__ == "__main__":
    main(app)
