"""What ``daemon.peer`` reads of a process and those above it, asked of real processes."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import attrs
import pytest

from client.protocol.hello import PROTOCOL, Hello
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from daemon import peer
from daemon.peer import Known, Peer, PeerProcess, ancestors, resolve, session_sign
from providers.process import Process, Stat, stat

KEY = "5a" * 32
#: Prints a line once it stands, and lives until its stdin ends.
STANDS = """
import os, sys
{before}
print(os.getpid(), flush=True)
sys.stdin.read()
"""
NO_DAEMON = 0


@contextmanager
def standing(
    *around: str, before: str = "", env: Mapping[str, str] | None = None
) -> Generator[tuple[int, subprocess.Popen[str]]]:
    """A process below us that stands: its own pid, and the process that was started."""
    command = [*around, sys.executable, "-I", "-S", "-c", STANDS.format(before=before)]
    pipe, environment = subprocess.PIPE, {**os.environ, **(env or {})}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def below(*words: str) -> Sequence[str]:
    """A shell that stays, with its child without ``words``."""
    return ["sh", "-c", " ".join(["env", *(f"-u {word}" for word in words), '"$@"; exit $?']), "sh"]


def test_an_ordinary_process_carries_no_sign() -> None:
    with standing() as (pid, _):
        assert session_sign(pid, NO_DAEMON) == ""
    assert session_sign(os.getpid(), NO_DAEMON) == ""


def test_the_daemon_and_everything_below_it_is_recognised() -> None:
    assert "daemon" in session_sign(os.getpid(), os.getpid())
    with standing(*below()) as (pid, _):
        assert "daemon" in session_sign(pid, os.getpid())


def test_a_mark_is_found_on_every_floor() -> None:
    marked = {"FIRM_MEMBER_RUN_ID": "x"}
    with standing(env=marked) as (pid, _):
        assert f"process {pid} carries" in session_sign(pid, NO_DAEMON)
    with standing(*below("FIRM_MEMBER_RUN_ID"), *below(), env=marked) as (pid, process):
        assert f"process {process.pid} carries" in session_sign(pid, NO_DAEMON)


def test_what_hangs_below_the_terminals_is_known_without_a_mark() -> None:
    with standing(*below()) as (pid, process):
        found = stat(process.pid)
        assert found is not None
        assert f"process {pid} hangs below" in session_sign(pid, NO_DAEMON, Process(process.pid, found.start_ticks))
        assert session_sign(pid, NO_DAEMON, Process(process.pid, found.start_ticks + 1)) == "", "another of that number"


def test_a_process_may_call_itself_anything() -> None:
    rename = "open('/proc/self/comm', 'w').write(') R 1 1 (')"
    with standing(*below("FIRM_MEMBER_RUN_ID"), before=rename, env={"FIRM_MEMBER_RUN_ID": "x"}) as (pid, process):
        assert f"process {process.pid} carries" in session_sign(pid, NO_DAEMON)


def test_a_line_of_ancestors_without_end_is_refused() -> None:
    deep = "for _ in range(70):\n    if os.fork(): os.wait(); os._exit(0)"
    with standing(before=deep) as (pid, _):
        assert "ancestors" in session_sign(pid, NO_DAEMON)


def test_a_process_that_has_ended_is_no_one() -> None:
    with standing() as (pid, _):
        pass
    assert "ended" in session_sign(pid, NO_DAEMON)


def test_an_ancestor_that_is_younger_than_its_child_is_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent ended while we looked, and its number was given to another process."""
    with standing() as (pid, _), standing() as (stranger, _):

        def reused(of: int) -> Stat | None:
            found = stat(of)
            assert found is not None
            born = found.start_ticks - 1 if of == pid else found.start_ticks
            return attrs.evolve(found, parent=stranger if of == pid else found.parent, start_ticks=born)

        monkeypatch.setattr(peer, "stat", reused)
        assert f"process {stranger} ended" in session_sign(pid, NO_DAEMON)
        assert [found for found, _ in ancestors(pid)] == [pid]  # nobody becomes a member by it


def _no_session(_: str) -> Refusal:
    raise AssertionError("no session is known")


NO_SESSIONS = Known(
    operator_key=KEY, proven=dict, of_process=_no_session, by_token=lambda _: None, terminals=lambda: None
)


def operator(process: PeerProcess) -> Peer | Refusal:
    return resolve(process, Hello(protocol=PROTOCOL, key=KEY), NO_SESSIONS, member_door=False)


@contextmanager
def known(pid: int, fd_of: int | None = None) -> Generator[PeerProcess]:
    process = PeerProcess(pid, os.geteuid(), os.pidfd_open(pid if fd_of is None else fd_of))
    try:
        yield process
    finally:
        process.close()


def test_a_live_process_outside_the_daemon_is_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: NO_DAEMON)
    with standing() as (pid, _), known(pid) as process:
        assert operator(process) == Peer(Plane.OPERATOR, "operator", pid)


def test_a_number_that_was_given_to_another_process_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that connected has ended; a bystander of the same number is not taken for it."""
    monkeypatch.setattr(os, "getpid", lambda: NO_DAEMON)
    with standing() as (bystander, _), standing() as (pid, gone), known(bystander, fd_of=pid) as process:
        assert isinstance(operator(process), Peer)
        gone.kill()
        select.select([process.fd], [], [], 20)
        refused = operator(process)
    assert isinstance(refused, Refusal)
    assert (refused.code, "ended" in refused.lifted_by) == (Code.NOT_AUTHORIZED, True)
