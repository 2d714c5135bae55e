"""What the terminal of a member showed last, once its process has ended: kept without what is secret, and shown."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import attrs
import pytest

from providers.process import under
from supervisor.decide import MOST_FAILURES
from supervisor.screens import MASK
from tests.e2e.test_runs import gone, server
from tests.support.apart import apart, until_adopted
from tests.support.daemon import Daemon
from tests.support.runs import Field

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

KEY = "a-key-of-somebody-else-0123456789"
#: Says all that it knows, the last of it over the end of a line, and ends with what it is told.
PROGRAM = """
echo begun; echo "key=$DEMO_API_KEY"; echo "token=$FIRM_CAPABILITY"; echo "operator=$(cat {operator})"
printf '%205s%s\\n' '' "$DEMO_API_KEY"
echo proven > {told}
read status < {may}
echo "the last words"
exit "$status"
"""
SHOWN = ["begun", f"key={MASK}", f"token={MASK}", f"operator={MASK}"]


@attrs.define
class Member:
    """Kiwi, whose process waits for the status with which it is to end."""

    field: Field
    daemon: Daemon
    secrets: list[bytes] = attrs.Factory(list)

    def lives(self) -> Any:  # noqa: ANN401 — a session as it is answered
        """Its session, once it has said what it knows."""
        assert (self.field.home.temporary / "told").read_text() == "proven\n"
        (session,) = self.field.until_live()
        variables = Path(f"/proc/{session['pid']}/environ").read_bytes().split(b"\0")
        self.secrets += [each.partition(b"=")[2] for each in variables if each.startswith(b"FIRM_CAPABILITY=")]
        return session

    def ends(self, session: Any, status: int = 3) -> None:  # noqa: ANN401 — the same
        """Until that is told."""
        (self.field.home.temporary / "may").write_text(f"{status}\n")
        self.told(session, f"exited: ended with status {status}")

    def told(self, session: Any, kind: str) -> None:  # noqa: ANN401 — the same
        while True:
            seq = self.field.seq()
            events = self.field.look("event.list", stream=f"session/{session['id']}", limit=500)["items"]
            if any(each["kind"].startswith(kind) for each in events):
                return
            self.field.wait(f"seq>{seq}")

    def restarts(self) -> None:
        self.daemon.kill()
        self.daemon = self.field.start()

    def kept(self) -> list[Path]:
        return [path for path in (self.field.home.temporary / "data" / "firm" / "screens").rglob("*") if path.is_file()]


@pytest.fixture
def kiwi(field: Field) -> Member:
    home = field.home
    for name in ("told", "may"):
        os.mkfifo(home.temporary / name)
    script = PROGRAM.format(
        operator=home.folder / "operator.key", told=home.temporary / "told", may=home.temporary / "may"
    )
    profiles = home.temporary / "config" / "firm" / "profiles"
    profiles.mkdir(parents=True)
    argv = json.dumps(["/bin/sh", "-c", script])
    (profiles / "demo.toml").write_text(f"argv = {argv}\nenv = {{ DEMO_API_KEY = {json.dumps(KEY)} }}\n")
    member = '[[member]]\nname = "kiwi"\nprofile = "demo"\n'
    (field.repo.root / "team.toml").write_text(f'[team]\nname = "crew"\nhost = "me"\n{member}')
    made = Member(field, field.start())
    assert field.call("up", "team.toml", "--detach").returncode == 0
    made.secrets += [KEY.encode(), (home.folder / "operator.key").read_bytes().strip()]
    return made


def lines(said: dict[str, Any]) -> list[str]:
    found: list[str] = said["screen"].splitlines()
    return found


def test_the_last_screen_is_kept_and_shown_and_no_secret_stands_anywhere(kiwi: Member) -> None:
    """Also by a daemon that began after the process, or after its end; and where a successor has its place."""
    field, first = kiwi.field, kiwi.lives()
    live = field.firm("logs", "kiwi")
    assert "no process of 'kiwi' has ended" in field.call("logs", "kiwi", "--last").stderr.lower()
    assert (live["live"], live["ended"], lines(live)[1]) == (True, "", f"key={KEY}"), "nothing is masked in a terminal"
    kiwi.restarts()
    kiwi.field.until_proven()
    kiwi.ends(first)
    second = kiwi.lives()
    assert field.firm("logs", "kiwi")["session_id"] == second["id"]
    for words in (["kiwi", "--last"], [first["id"]]):
        said = field.firm("logs", *words)
        assert (said["session_id"], said["live"], said["ended"]) == (first["id"], False, "ended with status 3")
        assert lines(said)[:4] == SHOWN
        assert " ".join(lines(said)[4:-1]).split() == [MASK, MASK]
        assert lines(said)[-1] == "the last words"
        assert said["at"] <= said["ended_at"]
    kiwi.ends(second)
    for _ in range(MOST_FAILURES - 2):
        kiwi.ends(kiwi.lives())
    shown = field.call("logs", "kiwi")
    assert shown.returncode == 0, shown.stderr
    head, label, empty, *rest = shown.stdout.splitlines()
    assert head.startswith("The process of kiwi is over: ended with status 3 (20")
    assert (label, empty, rest[:4]) == ("Its last screen, at its end:", "", SHOWN)
    assert "'kiwi' has no process any more" in field.call("attach", "kiwi").stderr
    assert len(kiwi.kept()) == MOST_FAILURES
    assert {stat.S_IMODE(path.stat().st_mode) for path in kiwi.kept()} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in kiwi.kept()} == {0o700}
    places = {str(path): path.read_bytes() for path in kiwi.kept()}
    for path in (*field.home.folder.rglob("*"), *field.home.temporary.rglob("*")):
        if path.is_file() and path.name not in {"operator.key", "node.secret", "demo.toml"}:
            places[str(path)] = path.read_bytes()
    places["the log"] = str(kiwi.daemon.log).encode()
    for operation in ("event.list", "effect.list"):
        found = {"team_run_id": first["team_run_id"]} if operation == "effect.list" else {}
        places[operation] = json.dumps(field.look(operation, limit=500, **found)).encode()
    assert [where for where, text in places.items() if any(secret in text for secret in kiwi.secrets)] == []
    spoken = [where for where, text in places.items() if b"the last words" in text]
    assert sorted(spoken) == sorted(map(str, kiwi.kept())), "it stands nowhere else"


def test_the_last_screen_of_a_process_that_ended_while_no_daemon_ran_is_kept_by_the_next(kiwi: Member) -> None:
    session = kiwi.lives()
    kiwi.daemon.kill()
    (kiwi.field.home.temporary / "may").write_text("3\n")
    assert gone(session["pid"], session["start_ticks"])
    kiwi.daemon = kiwi.field.start()
    kiwi.told(session, "exited: ended with status 3")
    assert lines(kiwi.field.firm("logs", "kiwi", "--last"))[-1] == "the last words"


def test_a_daemon_that_begins_removes_what_is_older_than_seven_days(kiwi: Member) -> None:
    kiwi.ends(kiwi.lives())
    (kept,) = kiwi.kept()
    old, new = kept.with_name("former.1"), kept.stat().st_mtime
    assert kiwi.daemon.stop() == 0
    kept.rename(old)
    os.utime(old, (new - 8 * 86_400, new - 8 * 86_400))
    kiwi.daemon = kiwi.field.start()
    assert kiwi.daemon.stop() == 0, "so that what it began with is over"
    assert kiwi.kept() == []


def test_the_last_screen_that_a_supervisor_of_its_own_keeps_is_the_one_that_the_daemon_shows(kiwi: Member) -> None:
    session = kiwi.lives()
    with apart(kiwi.field, session["team_run_id"], lease=60) as other:
        until_adopted(kiwi.field, session["id"], other.sup_gen)
        kiwi.ends(session)
        said = kiwi.field.firm("logs", "kiwi", "--last")
    assert (lines(said)[:4], lines(said)[-1]) == (SHOWN, "the last words")


def test_the_last_screen_of_a_member_that_was_ended_is_that_before_its_end(kiwi: Member) -> None:
    session = kiwi.lives()
    assert kiwi.field.call("close", "kiwi").returncode == 0
    said = kiwi.field.firm("logs", "kiwi")
    assert (said["session_id"], said["live"], said["ended"]) == (session["id"], False, "stopped")
    assert lines(said)[:4] == SHOWN


def test_where_a_terminal_is_lost_with_its_server_there_is_none_and_that_is_said(kiwi: Member) -> None:
    session = kiwi.lives()
    ours = server(kiwi.field.home)
    assert ours is not None
    below = under(ours)
    ours.signal(signal.SIGKILL)
    for each in below:
        each.signal(signal.SIGKILL)
    assert gone(session["pid"], session["start_ticks"])
    kiwi.told(session, "exited: ended, its status is unknown")
    said = kiwi.field.firm("logs", session["id"])
    assert (said["live"], said["screen"], said["at"]) == (False, "", None)
    assert said["ended"] == "ended, its status is unknown"
    assert said["no_screen"] == "it was blank, or could not be read or kept at its end"
    assert (
        "There is no last screen: it was blank, or could not be read" in kiwi.field.call("logs", session["id"]).stdout
    )
