"""Creates, lists and revokes the API keys of the service.

A key is printed once; the database stores only its hash.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Literal

from cyclopts import Parameter

from jobs.cli import DONE, finish, main, say
from jobs.environment import open_store
from jobs.flags import Json, command
from pipelines.store import CHANGES, BadKey, Key
from pipelines.text.sheets import Grid, Sheet

app = command("keys", __doc__)

HEAD = ("key", "state", "allows", "collections", "rate", "expires", "last used")
SECRET = (
    "Send it as `Authorization: Bearer rdx_…`, and keep it secret: a website needs another kind, made with "
    "`raydex keys create NAME --publishable --origin URL`"
)
NO_KEYS = "no keys yet: create one with `raydex keys create NAME`"

ALLOWS = "what the key allows (default: query; admin includes it)"
ORIGIN = "an origin of the pages that may use the key, such as https://docs.example.com"
ASKS = "a collection that a publishable key may ask (default: all), or whose changes the key may announce"


@app.command
def create(
    name: Annotated[str, Parameter(help="unique name, used in lists and records and to revoke the key")],
    /,
    *,
    scope: Annotated[tuple[Literal["query", "changes", "admin"], ...], Parameter(help=ALLOWS)] = (),
    publishable: Annotated[
        bool, Parameter(help="a key for web pages, where everyone can read it: it can only ask")
    ] = False,
    origin: Annotated[tuple[str, ...], Parameter(help=ORIGIN)] = (),
    collection: Annotated[tuple[str, ...], Parameter(help=ASKS)] = (),
    rate: Annotated[int | None, Parameter(help="requests per minute, 0: no limit (default: the service's)")] = None,
    expires_days: Annotated[float | None, Parameter(help="days until the key expires (default: never)")] = None,
    as_json: Json = False,
) -> int:
    """Create a key and print it; it can't be shown again."""
    with open_store() as store:
        check_flags(publishable, origin, scope)
        scopes = scope or ["query"]
        key, token = store.create_key(name, scopes, rate, expires_days, origins=origin, collections=collection)
        print_new(key, token, as_json=as_json)
        note_missing(key, [row["name"] for row in store.collections()])
    return DONE


@app.command(name="list")
def list_keys(*, as_json: Json = False) -> int:
    """List all keys, without their secrets."""
    with open_store() as store:
        keys = store.list_keys()
    shown = Sheet("", [Grid(HEAD, list(map(row_of, keys)), "<") if keys else NO_KEYS])
    finish({"keys": [{**_fields(key), "state": state(key)} for key in keys]}, as_json, shown)
    return DONE


@app.command
def secret(
    name: Annotated[str, Parameter(help="name of the collection; its previous secret becomes invalid")],
    /,
    *,
    as_json: Json = False,
) -> int:
    """Create and print the secret that signs announced changes of a collection."""
    with open_store() as store:
        store.find_collection(name)
        made = store.make_announcing_secret(name)
    finish({"collection": name, "secret": made}, as_json, str(made))
    say("This is the only time the secret is shown; docs/freshness.md says how to sign with it.")
    return DONE


@app.command
def revoke(name: Annotated[str, Parameter(help="name of the key")], /, *, as_json: Json = False) -> int:
    """Revoke a key; the service refuses it within a few seconds."""
    with open_store() as store:
        key = store.revoke_key(name)
    finish(_fields(key), as_json, summary_of_key(key))
    return DONE


def check_flags(publishable: bool, origins: Sequence[str], scopes: Sequence[str]) -> None:
    """Raise BadKey for flags that conflict."""
    if publishable and not origins:
        raise BadKey(
            "--publishable needs --origin, the site whose pages may use the key, such as https://docs.example.com"
        )
    if origins and not publishable:
        raise BadKey(f"--origin is {origins[0]!r}, which binds a publishable key: add --publishable")
    if publishable and scopes:
        raise BadKey(f"--scope is {' '.join(scopes)}, but a publishable key can only ask: leave it out")


def print_new(key: Key, token: str, *, as_json: bool) -> None:
    """Print a new key; standard output contains only the key."""
    finish({**_fields(key), "key": token}, as_json, token)
    use = "Give it to the widget as `data-key`" if key.publishable else SECRET
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


def state(key: Key) -> str:
    """Return whether a key is valid, and if not, why."""
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires and key.expires <= datetime.now(UTC) else "valid"


def row_of(key: Key) -> tuple[str, ...]:
    """Return the cells of a key, in the order of HEAD."""
    kind = "publishable" if key.publishable else " ".join(key.scopes)
    asks = " ".join(key.collections) or "all"
    where = f"{asks} from {' '.join(key.origins)}" if key.publishable else asks
    used = f"{key.last_used.astimezone():%Y-%m-%d %H:%M}" if key.last_used else "never"
    rate = {None: "default", 0: "no limit"}.get(key.rate_per_minute, f"{key.rate_per_minute} a minute")
    return key.name, state(key), kind, where, rate, f"{key.expires:%Y-%m-%d}" if key.expires else "never", used


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
    main(app)
