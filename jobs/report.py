"""Reports on a collection's last days: how fresh it is, what changed, and unanswered questions.

With --send it goes to the recipients in the file's `night.tell` too. Exit codes: 0 done, 1 it reached nobody, 2 bad
input.
"""

from typing import Annotated

from cyclopts import Parameter

from jobs.cli import DONE, FAILED, BadInput, Messages, check_range, finish, main, read_source, say, stored_collection
from jobs.environment import open_store, read_configuration, tell_secrets
from jobs.flags import Json, Source, command
from pipelines.nights.notices.teller import Teller, TellSecrets
from pipelines.nights.weekly import report_notice, report_on


def run(
    source: Source,
    *,
    days: Annotated[float, Parameter(help="report on the last N days")] = 7,
    send: Annotated[bool, Parameter(help="send it by webhook, Slack and e-mail, as configured")] = False,
    as_json: Json = False,
) -> int:
    check_range("--days", days, 0.01, 36_500)
    (collection, _), settings = read_source(source), read_configuration()
    with open_store() as store, Messages() as messages:
        collection = collection or stored_collection(store, source)
        tell = collection.night.tell
        teller = Teller(tell, TellSecrets(**tell_secrets())) if send else None
        if teller is not None and not teller:
            raise BadInput(f"--send: {source} names nobody: give night.tell.webhook, slack or mail in its file")
        report = report_on(store, settings, collection.name, days, tell.questions, messages)
    notice = report_notice(report)
    told, failed = teller.tell(notice) if teller else ([], [])
    for reason in failed:
        say(f"warning: not told by {reason}")
    finish({**report, "told": told}, as_json, f"{notice.title}\n{notice.text}")
    return FAILED if failed and not told else DONE


app = command("report", __doc__, run)


if __name__ == "__main__":
    main(app)
