"""Creates, lists and revokes the API keys of the service.

A key is printed once; the database stores only its hash.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from jobs.cli import DONE, add_json, command, finish, main, say
from jobs.environment import open_store
from pipelines.store import CHANGES, SCOPES, BadKey, Key, Store


def arguments() -> argparse.ArgumentParser:
    parser = command("keys", __doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="create a key and print it; it can't be shown again")
    create.add_argument("name", help="unique name, used in lists and records and to revoke the key")
    allows = "what the key allows (default query; admin includes it)"
    create.add_argument("--scope", action="append", choices=SCOPES, help=allows)
    pages = "a key for web pages, where everyone can read it: it can only ask"
    create.add_argument("--publishable", action="store_true", help=pages)
    create.add_argument(
        "--origin", action="append", help="an origin of the pages that may use it, such as https://docs.example.com"
    )
    asks = "a collection that a publishable key may ask (default: all), or whose changes the key may announce"
    create.add_argument("--collection", action="append", help=asks)
    create.add_argument("--rate", type=int, help="requests per minute, 0: no limit (default: the service's)")
    create.add_argument("--expires-days", type=float, help="days until the key expires (default: never)")
    add_json(create)
    add_json(actions.add_parser("list", help="list all keys, without their secrets"))
    secret = actions.add_parser(
        "secret", help="create and print the secret that signs announced changes of a collection"
    )
    secret.add_argument("name", help="name of the collection; its previous secret becomes invalid")
    add_json(secret)
    revoke = actions.add_parser("revoke", help="revoke a key; the service refuses it within a few seconds")
    revoke.add_argument("name", help="name of the key")
    add_json(revoke)
    return parser


def run(args: argparse.Namespace) -> int:
    with open_store() as store:
        if args.action == "create":
            check_flags(args.publishable, args.origin or (), args.scope or ())
            key, token = store.create_key(
                args.name,
                args.scope or ["query"],
                args.rate,
                args.expires_days,
                origins=args.origin or (),
                collections=args.collection or (),
            )
            print_new(key, token, as_json=args.json)
            note_missing(key, [row["name"] for row in store.collections()])
        elif args.action == "secret":
            store.find_collection(args.name)
            made = store.make_announcing_secret(args.name)
            finish({"collection": args.name, "secret": made}, args.json, str(made))
            say("This is the only time the secret is shown; docs/freshness.md says how to sign with it.")
        elif args.action == "revoke":
            key = store.revoke_key(args.name)
            finish(_fields(key), args.json, summary_of_key(key))
        else:
            list_keys(store, as_json=args.json)
    return DONE


def check_flags(publishable: bool, origins: Sequence[str], scopes: Sequence[str]) -> None:
    """Raise BadKey for flags that conflict."""
    if publishable and not origins:
        raise BadKey("--publishable needs --origin, such as https://docs.example.com: whose pages may hold the key")
    if origins and not publishable:
        raise BadKey(f"--origin is {origins[0]!r}, which binds a publishable key: add --publishable")
    if publishable and scopes:
        raise BadKey(f"--scope is {' '.join(scopes)}, but a publishable key can only ask: leave it out")


def print_new(key: Key, token: str, *, as_json: bool) -> None:
    """Print a new key; standard output contains only the key."""
    finish({**_fields(key), "key": token}, as_json, token)
    use = "Give it to the widget as `data-key`" if key.publishable else "Send it as `Authorization: Bearer rdx_…`"
    say(f"{summary_of_key(key)}\nThis is the only time the key is shown. {use}.")


def note_missing(key: Key, existing: Sequence[str]) -> None:
    """Print which collections of a key do not exist yet."""
    may = "announce its changes" if CHANGES in key.scopes else "ask it"
    for name in key.collections:
        if name not in existing:
            say(f"there is no collection {name!r} yet: the key may {may} once `raydex index` has made it")


def _fields(key: Key) -> dict[str, object]:
    """Return the fields of a key, except its session."""
    return {name: value for name, value in asdict(key).items() if name != "session"}


def list_keys(store: Store, *, as_json: bool) -> None:
    """Print all keys."""
    keys = store.list_keys()
    text = "\n".join(map(summary_of_key, keys)) or "no keys yet: create one with `raydex keys create NAME`"
    finish({"keys": [{**_fields(key), "state": state(key)} for key in keys]}, as_json, text)


def state(key: Key) -> str:
    """Return whether a key is valid, and if not, why."""
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires and key.expires <= datetime.now(UTC) else "valid"


def summary_of_key(key: Key) -> str:
    """Return a line that describes a key."""
    of = "answers a minute" if key.publishable else "a minute"
    rate = {None: "the service's rate", 0: "no rate limit"}.get(key.rate_per_minute, f"{key.rate_per_minute} {of}")
    ends = f", expires {key.expires:%Y-%m-%d}" if key.expires else ""
    used = f"last used {key.last_used:%Y-%m-%d %H:%M}" if key.last_used else "never used"
    kind = "publishable" if key.publishable else " ".join(key.scopes)
    where = f", on {' '.join(key.origins)}" if key.publishable else ""
    does = "announces changes of" if CHANGES in key.scopes else "asks"
    asks = f", {does} {' '.join(key.collections)}" if key.collections else ", asks all collections" if where else ""
    return f"{key.name}: {state(key)}, {kind}{where}{asks}, {rate}{ends}, {used}"


if __name__ == "__main__":
    main(arguments(), run)
