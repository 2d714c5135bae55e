"""A person steps in at a member's terminal: nobody else types there until they have left, however they leave."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
from collections.abc import Generator
from typing import Any

import pytest

from tests.e2e.test_told import idle, mail, send, told, took
from tests.support.runs import FIRM, Field


@contextlib.contextmanager
def attached(field: Field, *more: str) -> Generator[tuple[int, int]]:
    """``firm attach kiwi`` on a terminal of its own: its pid, and that terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(field.repo.root)
        words = [FIRM, "attach", "kiwi", *more]
        os.execve(FIRM, words, {**field.environment, "TERM": "xterm"})  # noqa: S606 — a command of ours
    try:
        yield pid, terminal
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        os.close(terminal)


def shown(terminal: int, text: bytes) -> None:
    """Read what that terminal shows until it shows this."""
    seen = b""
    while text not in seen:
        seen += os.read(terminal, 4096)


def session(field: Field) -> Any:  # noqa: ANN401 — whatever the operation answers
    return field.ask("session", "list")["items"][-1]


def until_typist(field: Field, who: str) -> Any:  # noqa: ANN401 — the same
    while (found := session(field))["typist"] != who:
        field.wait(f"session:{found['id']}.version>{found['version']}")
    return found


def kinds(field: Field) -> list[tuple[str, str]]:
    events = field.ask("event", "list", "--stream", f"session/{session(field)['id']}")["items"]
    return [(e["kind"], e["actor"]) for e in events]


def leave(pid: int, terminal: int, how: str) -> None:
    if how == "detach":
        os.write(terminal, b"\x02d")
    else:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", ["detach", "kill"])
def test_who_steps_in_is_recorded_and_nothing_else_is_typed_until_they_leave(field: Field, how: str) -> None:
    folder = field.talker()
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    with attached(field, "--type") as (pid, terminal):
        shown(terminal, b"ready")
        until_typist(field, "operator")
        assert kinds(field)[-1] == ("stepped in", "operator")
        sent = send(field, "which colour?")
        # It is not even tried: no effect, no cycle. What the person types arrives.
        os.write(terminal, b"by hand\r")
        shown(terminal, b"took it")
        assert took(folder) == ["by hand"]
        assert mail(field, sent)["state"] == "queued"
        leave(pid, terminal, how)
        until_typist(field, "")
        assert kinds(field).count(("stepped out", "operator")) == 1
    told(field)
    assert sent["message"]["id"] in took(folder)[1]


def test_only_one_steps_in_and_who_only_looks_holds_nothing(field: Field) -> None:
    folder = field.talker()
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    with attached(field) as (_, looking):
        shown(looking, b"ready")
        os.write(looking, b"nothing of this arrives\r")
        with attached(field, "--type") as (_, terminal):
            shown(terminal, b"ready")
            until_typist(field, "operator")
            with attached(field, "--type") as (second, refused):
                shown(refused, b"INVALID_STATE_TRANSITION")
                assert os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]) == 1
            assert session(field)["typist"] == "operator"
        until_typist(field, "")
        send(field, "which colour?")
        told(field)
    assert len(took(folder)) == 1


def test_who_had_stepped_in_when_the_daemon_died_still_holds_what_waits(field: Field) -> None:
    """The next daemon does not know them, and sees that somebody may be typing."""
    folder = field.talker()
    daemon = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    with attached(field, "--type") as (_, terminal):
        shown(terminal, b"ready")
        until_typist(field, "operator")
        daemon.kill()
        field.start()
        until_typist(field, "")
        send(field, "which colour?")
        (held,) = told(field, held=True)
        assert held["readback"] == "held: somebody is attached and may be typing"
        assert took(folder) == []
    told(field)
    assert len(took(folder)) == 1
