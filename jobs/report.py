"""Reports on a collection's last days: how fresh it is, what changed, and unanswered questions.

With --send it goes to the recipients in the file's `night.tell` too. Exit codes: 0 done, 1 it reached nobody, 2 bad
input.
"""

import argparse

from jobs.cli import (
    DONE,
    FAILED,
    BadInput,
    Messages,
    add_json,
    add_source,
    check_range,
    command,
    finish,
    main,
    read_source,
    say,
    stored_collection,
)
from jobs.environment import open_store, read_configuration, tell_secrets
from pipelines.nights.notices.teller import Teller, TellSecrets
from pipelines.nights.weekly import report_notice, report_on


def arguments() -> argparse.ArgumentParser:
    parser = command("report", __doc__)
    add_source(parser)
    parser.add_argument("--days", type=float, default=7, metavar="N", help="of the last N days (default %(default)g)")
    parser.add_argument("--send", action="store_true", help="send it by webhook, Slack and e-mail, as configured")
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    check_range("--days", args.days, 0.01, 36_500)
    (collection, _), settings = read_source(args.collection), read_configuration()
    with open_store() as store, Messages() as messages:
        collection = collection or stored_collection(store, args.collection)
        tell = collection.night.tell
        teller = Teller(tell, TellSecrets(**tell_secrets())) if args.send else None
        if teller is not None and not teller:
            raise BadInput(
                f"--send: {args.collection} names nobody: give night.tell.webhook, slack or mail in its file"
            )
        report = report_on(store, settings, collection.name, args.days, tell.questions, messages)
    notice = report_notice(report)
    told, failed = teller.tell(notice) if teller else ([], [])
    for reason in failed:
        say(f"warning: not told by {reason}")
    finish({**report, "told": told}, args.json, f"{notice.title}\n{notice.text}")
    return FAILED if failed and not told else DONE


if __name__ == "__main__":
    main(arguments(), run)
