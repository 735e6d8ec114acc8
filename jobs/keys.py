"""Creates, lists and revokes the API keys of the service.

A key is printed once; the database keeps its hash.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from jobs.cli import DONE, add_json, command, finish, main, say
from jobs.environment import open_store
from pipelines.store import SCOPES, Key, Store


def arguments() -> argparse.ArgumentParser:
    parser = command("keys", __doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="create a key and print it; it can't be shown again")
    create.add_argument("name", help="unique name, used in lists and records and to revoke the key")
    create.add_argument(
        "--scope", action="append", choices=SCOPES, help="what the key allows (default query; admin includes it)"
    )
    create.add_argument("--rate", type=int, help="requests per minute, 0 for no limit (default: the service's)")
    create.add_argument("--expires-days", type=float, help="days until the key expires (default: never)")
    add_json(create)
    add_json(actions.add_parser("list", help="list all keys, without their secrets"))
    revoke = actions.add_parser("revoke", help="revoke a key; the service refuses it within a few seconds")
    revoke.add_argument("name", help="name of the key")
    add_json(revoke)
    return parser


def work(args: argparse.Namespace) -> int:
    with open_store() as store:
        if args.action == "create":
            create_key(store, args.name, args.scope or ["query"], args.rate, args.expires_days, as_json=args.json)
        elif args.action == "revoke":
            key = store.revoke_key(args.name)
            finish(asdict(key), args.json, describe(key))
        else:
            list_keys(store, as_json=args.json)
    return DONE


def create_key(
    store: Store, name: str, scopes: Sequence[str], rate: int | None, expires_days: float | None, *, as_json: bool
) -> None:
    """Create a key and print it; standard output is the key alone."""
    key, token = store.create_key(name, scopes, rate, expires_days)
    finish({**asdict(key), "key": token}, as_json, token)
    say(f"{describe(key)}\nThis is the only time the key is shown. Send it as `Authorization: Bearer rdx_…`.")


def list_keys(store: Store, *, as_json: bool) -> None:
    """Print all keys."""
    keys = store.list_keys()
    text = "\n".join(map(describe, keys)) or "no keys yet: create one with `raydex keys create NAME`"
    finish({"keys": [{**asdict(key), "state": state(key)} for key in keys]}, as_json, text)


def state(key: Key) -> str:
    """Return whether a key is valid, and if not, why."""
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires and key.expires <= datetime.now(UTC) else "valid"


def describe(key: Key) -> str:
    """Return one line about a key for a person."""
    rate = {None: "the service's rate", 0: "no rate limit"}.get(key.rate_per_minute, f"{key.rate_per_minute} a minute")
    ends = f", expires {key.expires:%Y-%m-%d}" if key.expires else ""
    used = f"last used {key.last_used:%Y-%m-%d %H:%M}" if key.last_used else "never used"
    return f"{key.name}: {state(key)}, {' '.join(key.scopes)}, {rate}{ends}, {used}"


if __name__ == "__main__":
    main(arguments(), work)
