"""The embedded Postgres: found and shared, restarted after a crash, stopped when unused, with unchanged rights."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
from kit.processes import alive, eventually, keeper, kill_9, postmaster
from kit.reporting import leave_table
from kit.workshop import Workshop, small_site

from pipelines import embedded
from pipelines.embedded import EmbeddedPostgresFailed, run_postgres
from pipelines.keeper import read_url, superuser_url
from pipelines.store import Store, StoreUnavailable, can_connect

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm")]

ROOT = Path(__file__).parents[3]
USER = """
import sys, time
from pathlib import Path
from pipelines.embedded import run_postgres
with run_postgres(Path(sys.argv[1])) as url:
    print(url, flush=True)
    time.sleep(600)
"""


class User:
    """Another process that uses the server of `home` until it is killed."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(home)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    @property
    def url(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __enter__(self) -> "User":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def new_home(tmp_path: Path) -> Iterator[Path]:
    """Return a data folder that does not exist yet. Its server must have stopped by the end of the test."""
    home = tmp_path / "deep" / "deeper" / "home"
    yield home
    eventually(lambda: not (home / "postgres" / "postmaster.pid").exists(), "the server is stopped")


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder whose server has run and stopped."""
    home = tmp_path_factory.mktemp("initialised")
    with run_postgres(home):
        server = postmaster(home)
    eventually(lambda: not alive(server), "the server is stopped")
    return home


@pytest.fixture
def home(new_home: Path, initialised: Path) -> Path:
    """Return a data folder with a database in it, owned as its server left it."""
    new_home.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(initialised), str(new_home)], check=True)
    return new_home


def remember(url: str, word: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table if not exists word (word text)")
        connection.execute("insert into word values (%s)", [word])


def words(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [word for (word,) in connection.execute("select word from word")]


def assert_private(home: Path) -> None:
    """Assert that all six exist and are private while the server is running."""
    parts = [home, *(home / f"postgres{end}" for end in ("", ".json", ".password", ".owner", ".log"))]
    assert [path for path in parts if path.stat().st_mode & 0o077] == []


def test_second_process_finds_and_shares_the_server(home):
    with User(home) as user:
        url = user.url
        with run_postgres(home) as mine, run_postgres(home) as again:
            assert mine == again == url
            server = postmaster(home)
            user.process.kill()
            user.process.wait()
            time.sleep(0.6)  # longer than the keeper needs to notice that nobody is left
            assert postmaster(home) == server
            remember(mine, "still there")


def test_processes_started_at_once_without_a_home_share_one_server(new_home):
    """The home folder is private. Folders above it keep their rights, and a missing one gets the default rights."""
    new_home.parent.mkdir(parents=True)
    usual = {new_home.parent: new_home.parent.stat().st_mode}
    new_home.parent.rmdir()
    new_home.parents[1].chmod(0o700)
    above = usual | {folder: folder.stat().st_mode for folder in new_home.parents[1:]}
    with User(new_home) as one, User(new_home) as two, User(new_home) as three:
        assert len({one.url, two.url, three.url}) == 1
        assert {folder: folder.stat().st_mode for folder in new_home.parents} == above
        assert_private(new_home)


def test_processes_started_at_once_share_one_server_that_stops_after_them(new_home):
    """The home folder was readable by others and becomes private. Its half-made data folder is recreated."""
    new_home.mkdir(parents=True)
    (new_home / "postgres.log").touch(0o644)
    new_home.chmod(0o755)
    (new_home / ".postgres.making").mkdir()
    (new_home / ".postgres.making" / "junk").write_text("left by a crash")
    with User(new_home) as one, User(new_home) as two, User(new_home) as three:
        url = one.url
        assert two.url == three.url == url
        assert_private(new_home)
        remember(url, "kept")
        server, owner = postmaster(new_home), keeper(new_home)
        for user, number in ((one, signal.SIGKILL), (two, signal.SIGTERM), (three, signal.SIGKILL)):
            user.process.send_signal(number)
        eventually(lambda: not alive(server) and not alive(owner), "server and keeper have ended", 20)
    assert not can_connect(url)
    with run_postgres(new_home) as again:
        assert again == url  # so that BM25's files are found again
        assert words(url) == ["kept"]


def test_new_user_gets_a_running_server_while_the_old_one_stops(home):
    for _ in range(2):
        with User(home) as user:
            remember(user.url, "x")
    with run_postgres(home) as url:
        assert words(url) == ["x"] * 2


def test_same_url_answers_again_after_kill_9_of_the_server(home):
    with run_postgres(home) as url, Store(url, timeout_s=1.0) as store, Store(url, retry_s=20) as patient:
        store.migrate()
        remember(url, "committed")
        for _ in range(2):
            server = postmaster(home)
            kill_9(server)
            with contextlib.suppress(StoreUnavailable):
                store.collections()  # an attempt during the outage must not delay the next one
            assert patient.collections() == []  # it waits for the restart
            assert eventually(lambda: _answers(store), "the store answers") < 3.0
            assert words(url) == ["committed"]
            assert postmaster(home) != server


def _answers(store: Store) -> bool:
    try:
        store.collections()
    except StoreUnavailable:
        return False
    return True


def test_killed_keeper_is_replaced_under_the_same_url_while_users_work(home):
    """No request is necessary: any user of the server keeps it running, and new users find it too."""
    with run_postgres(home) as url, Store(url, retry_s=30) as store:
        store.migrate()
        remember(url, "kept")
        for _ in range(2):
            owner, server = keeper(home), postmaster(home)
            kill_9(owner)
            eventually(lambda: not alive(server), "the server has ended")  # noqa: B023
            with run_postgres(home) as again:
                assert again == url
            assert store.collections() == []
            assert words(url) == ["kept"]
            assert keeper(home) != owner


def test_users_of_one_server_replace_its_keeper_once(home, cold):
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(run_postgres(home))
        users = [stack.enter_context(User(home)) for _ in range(2)]
        assert {user.url for user in users} == {url}
        owner, server = keeper(home), postmaster(home)
        kill_9(owner)
        eventually(lambda: not alive(server) and can_connect(url), "another keeper has started the server")
        time.sleep(2 * embedded.WATCH_S)
        eventually(lambda: keepers(home) == [keeper(home)], "those that came too late have ended")
        assert postmaster(home) not in (None, server)


def keepers(home: Path) -> list[int]:
    """Return the processes that are, or try to be, the keeper of a home folder."""
    lines = {process.pid: process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])}
    return [pid for pid, line in lines.items() if "pipelines.keeper" in line and str(home) in line]


def test_server_that_keeps_crashing_is_restarted_with_growing_delays(home):
    with run_postgres(home) as url:
        version = (home / "postgres" / "PG_VERSION").rename(home / "aside")
        kill_9(postmaster(home))
        time.sleep(4.0)
        assert 2 <= (home / "postgres.log").read_text().count("starting it again") <= 5
        version.rename(home / "postgres" / "PG_VERSION")
        eventually(lambda: can_connect(url), "the server answers again", 20)


# ---------------------------------------------------------------------------------------------- rights


def tables_of(url: str) -> dict[str, str]:
    """Return the owner of every table and sequence."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select c.relname, pg_get_userbyid(c.relowner) from pg_class c "
            "where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'S')"
        ).fetchall()
    return dict(rows)


OF_THE_MACHINE = [
    "copy (select 1) to program 'id'",
    "copy (select 1) to '/tmp/raydex-was-here'",
    "create temp table t (line text); copy t from program 'id'",
    "create temp table t (line text); copy t from '/etc/passwd'",
    "select pg_read_file('/etc/passwd')",
    "select pg_read_file('postgresql.conf')",
    "select pg_read_binary_file('/etc/passwd')",
    "select pg_ls_dir('/')",
    "select lo_import('/etc/passwd')",
    "create function f() returns int language c as 'libc.so.6', 'getpid'",
    "alter system set archive_command = 'id'",
    "select pg_reload_conf()",
    "select rolpassword from pg_authid",
    "set session authorization raydex",
    "set role raydex",
    "alter role raydex_owner superuser",
    "create role other",
    "create database other",
    "grant pg_execute_server_program to raydex_owner",
]


def test_url_for_jobs_cannot_run_programs_or_read_files(database_url, server, request):
    held = []
    # The same role: this server's databases differ from those of a home folder in their names.
    assert urlsplit(database_url)._replace(path="") == urlsplit(read_url(server.home))._replace(path="")
    for command in OF_THE_MACHINE:
        with psycopg.connect(database_url, autocommit=True) as connection, pytest.raises(psycopg.Error) as refused:
            connection.execute(command)
        held.append((command, str(refused.value).split("\n")[0]))
    with psycopg.connect(database_url) as connection:
        rights = connection.execute(
            "select rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls from pg_roles "
            "where rolname = current_user"
        ).fetchone()
        roles = connection.execute("select roleid::regrole::text from pg_auth_members "
                                   "where member = current_user::regrole").fetchall()  # fmt: skip
    leave_table(request.config, "what the owner of the embedded database may not", ("tried", "refused with"), held)
    assert {reason for _, reason in held if not re.match(r"permission denied|must be", reason)} == set()
    assert rights == (False,) * 5 and roles == []


def test_superuser_tables_are_transferred_to_the_owner(home):
    """In home folders of earlier versions, everything belongs to the superuser, whose URL everybody had."""
    with run_postgres(home) as url:
        with Store(url) as store:
            store.migrate()
            Workshop(store).reindex(small_site(3))
        with psycopg.connect(superuser_url(home), autocommit=True) as connection:
            others = "select count(*) from pg_stat_activity where usename = 'raydex_owner'"
            eventually(lambda: connection.execute(others).fetchone() == (0,), "the owner's sessions have ended")
            connection.execute("reassign owned by raydex_owner to raydex")
            connection.execute("drop owned by raydex_owner")
            connection.execute("drop role raydex_owner")
        assert set(tables_of(superuser_url(home)).values()) == {"raydex"}
        server, old_url = postmaster(home), superuser_url(home)
    eventually(lambda: not alive(server), "the server is stopped")
    (home / "postgres.owner").unlink()
    (home / "postgres.json").write_text(json.dumps({"url": old_url, "keeper": 1}))  # as after kill -9 of its keeper
    with run_postgres(home) as url, Store(url) as store:
        assert url.startswith("postgresql://raydex_owner:")
        assert set(tables_of(url).values()) == {"raydex_owner"}
        store.migrate()
        workshop = Workshop(store)
        assert len(workshop.search("part", 100)) == 9
        workshop.reindex(small_site(4))
        workshop.use("hash:64", chunk_size=64)
        workshop.reindex(small_site(4))
        assert store.prune("docs", keep=0) != []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as somebody else")
def test_server_started_by_root_runs_unprivileged(server):
    status = Path(f"/proc/{postmaster(server.home)}/status").read_text()
    uids = next(line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
    capabilities = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    assert "0" not in uids
    assert int(capabilities, 16) == 1 << 2  # CAP_DAC_READ_SEARCH: traversing folders, and nothing else


def test_server_listens_only_on_loopback_and_requires_a_password(database_url):
    parts = psycopg.conninfo.conninfo_to_dict(database_url)
    assert parts["host"] == "127.0.0.1"
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(**parts | {"password": "guess"})
    with psycopg.connect(database_url) as connection:
        assert connection.execute("show listen_addresses").fetchone() == ("127.0.0.1",)


def test_server_that_cannot_start_is_an_error_with_its_last_log_lines(new_home):
    new_home.mkdir(parents=True)
    (new_home / "postgres").mkdir()  # not a data folder
    (new_home / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(EmbeddedPostgresFailed, match=r"(?s)did not start.*could not access"), run_postgres(new_home):
        pass
