"""`python -m jobs.keys`: create, list and revoke the API keys of the service. A key is shown once; its hash is kept."""

import argparse
from dataclasses import asdict
from datetime import UTC, datetime

from jobs.cli import finish, main, say
from jobs.environment import open_store
from pipelines.store import SCOPES, Key


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.keys", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    create = verbs.add_parser("create", help="make a key and print it, this once")
    create.add_argument("name", help="what it is listed, revoked and recorded by; never used twice")
    create.add_argument(
        "--scope", action="append", choices=SCOPES, help="what it opens (default query; admin implies it); repeatable"
    )
    create.add_argument(
        "--rate", type=int, help="requests a minute, 0 for as many as it likes (default: the service's)"
    )
    create.add_argument("--expires-days", type=float, help="the key ends in so many days (default: never)")
    listing = verbs.add_parser("list", help="all keys, without their secrets")
    revoke = verbs.add_parser("revoke", help="let a key open nothing any more, within a few seconds")
    revoke.add_argument("name")
    for verb in (create, listing, revoke):
        verb.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    return {"create": create, "list": show, "revoke": revoke}[args.verb](args)


def create(args: argparse.Namespace) -> int:
    """Make a key; standard output is the key alone."""
    with open_store() as store:
        key, token = store.create_key(args.name, args.scope or ["query"], args.rate, args.expires_days)
    finish({**asdict(key), "key": token}, args.json, token)
    say(f"{describe(key)}\nThis is the only time the key is shown. Send it as «Authorization: Bearer rdx_…».")
    return 0


def show(args: argparse.Namespace) -> int:
    """List all keys."""
    with open_store() as store:
        keys = store.list_keys()
    text = "\n".join(map(describe, keys)) or "no key yet: python -m jobs.keys create NAME"
    finish({"keys": [{**asdict(key), "state": state(key)} for key in keys]}, args.json, text)
    return 0


def revoke(args: argparse.Namespace) -> int:
    """Revoke one key."""
    with open_store() as store:
        key = store.revoke_key(args.name)
    finish(asdict(key), args.json, describe(key))
    return 0


def state(key: Key) -> str:
    """Whether a key opens anything, and if not, why."""
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires and key.expires <= datetime.now(UTC) else "valid"


def describe(key: Key) -> str:
    """One line on a key for a person."""
    rate = {None: "the service's rate", 0: "no rate limit"}.get(key.rate_per_minute, f"{key.rate_per_minute} a minute")
    ends = f", expires {key.expires:%Y-%m-%d}" if key.expires else ""
    used = f"last used {key.last_used:%Y-%m-%d %H:%M}" if key.last_used else "never used"
    return f"{key.name}: {state(key)}, {' '.join(key.scopes)}, {rate}{ends}, {used}"


if __name__ == "__main__":
    main(arguments(), work)
