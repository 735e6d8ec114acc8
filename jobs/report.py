"""Reports on a collection's last days: how fresh it is, what changed, and unanswered questions.

With --send it goes to the recipients in the file's `night.tell` too; with --test they get a short test notice instead.
Exit codes: 0 done, 1 the report reached nobody or the test not everybody, 2 bad input.
"""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jobs.cli import DONE, FAILED, BadInput, Messages, check_range, finish, main, read_source, say, stored_collection
from jobs.environment import open_store, read_configuration, tell_secrets
from jobs.flags import Json, Source, command
from pipelines.nights.notices.notice import Notice
from pipelines.nights.notices.teller import Teller, TellSecrets
from pipelines.nights.telling import trial_notice
from pipelines.nights.weekly import describe_report, report_notice, report_on

if TYPE_CHECKING:
    from pipelines.records.night_choices import TellChoices


def run(
    source: Source,
    *,
    days: Annotated[float, Parameter(help="report on the last N days")] = 7,
    send: Annotated[bool, Parameter(help="send it to everybody in night.tell of the collection file")] = False,
    test: Annotated[bool, Parameter(help="send only a test notice to everybody in night.tell")] = False,
    as_json: Json = False,
) -> int:
    check_range("--days", days, 0.01, 36_500)
    (collection, _), settings = read_source(source), read_configuration()
    if test and collection:
        return send_test(source, collection.name, collection.night.tell, as_json)
    with open_store() as store, Messages() as messages:
        collection = collection or stored_collection(store, source)
        tell = collection.night.tell
        if test:
            return send_test(source, collection.name, tell, as_json)
        teller = make_teller("--send", source, tell) if send else None
        report = report_on(store, settings, collection.name, days, tell.questions, messages)
    told, failed = send_notice(teller, report_notice(report)) if teller else ([], [])
    finish({**report, "told": told}, as_json, describe_report(report))
    return FAILED if failed and not told else DONE


def send_test(source: str, collection: str, tell: "TellChoices", as_json: bool) -> int:
    """Send a test notice over every channel; fail if one of them fails."""
    told, failed = send_notice(make_teller("--test", source, tell), trial_notice(collection))
    finish({"told": told, "failed": failed}, as_json, f"sent by {', '.join(told) or 'nothing'}")
    return FAILED if failed else DONE


def make_teller(flag: str, source: str, tell: "TellChoices") -> Teller:
    """Return what sends notices. Raises BadInput if the file names nobody, MissingSecret and BadServiceUrl."""
    teller = Teller(tell, TellSecrets(**tell_secrets()))
    if not teller:
        raise BadInput(f"{flag}: {source} names nobody: give night.tell.webhook, slack, mail or services in its file")
    return teller


def send_notice(teller: Teller, notice: Notice) -> tuple[list[str], list[str]]:
    """Send a notice and warn about each channel that failed; return those that worked, and the reasons."""
    told, failed = teller.tell(notice)
    for reason in failed:
        say(f"warning: not sent by {reason}")
    return told, failed


app = command("report", __doc__, run)


if __name__ == "__main__":
    main(app)
