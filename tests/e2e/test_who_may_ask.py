"""Who is let in, and as what: real processes, which the kernel names to the daemon."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgpack
import pytest

from client.protocol.frames import MAX_ANSWER, Frames
from client.protocol.refusals import Code
from tests.support.daemon import Daemon
from tests.support.wire import PATIENCE, Client, Message, hello, packed, request

#: Says what it is told to whoever listens at a path, and prints what it hears.
ASKER = """
import os, socket, sys
if len(sys.argv) > 3:
    os.setgroups([]), os.setgid(int(sys.argv[3])), os.setuid(int(sys.argv[3]))
with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(20)
    sock.connect(sys.argv[1])
    try:
        sock.sendall(bytes.fromhex(sys.argv[2]))
        sock.shutdown(socket.SHUT_WR)
        while data := sock.recv(65536):
            sys.stdout.write(data.hex())
    except ConnectionError:
        pass
"""
NOBODY = 65534


def heard(
    daemon: Daemon,
    *,
    around: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    user: int | None = None,
) -> list[Message]:
    """What a process of its own hears that shows the operator key and asks for the teams."""
    said = packed(hello(daemon.key), request(1, "team.list")).hex()
    arguments = [str(daemon.socket), said, *([str(user)] if user else [])]
    done = subprocess.run(
        [*around, sys.executable, "-I", "-S", "-c", ASKER, *arguments],
        env={**daemon.home.environment, **(env or {})},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    frames = Frames(MAX_ANSWER).feed(bytes.fromhex(done.stdout))
    return [msgpack.unpackb(payload) for payload in frames]


def refused(said: list[Message]) -> Message:
    (only,) = said
    refusal: Message = only["refusal"]
    return refusal


def test_a_process_of_the_same_user_with_the_key_is_the_operator(shared: Daemon) -> None:
    welcome, answer = heard(shared, env={"FIRM_MEMBER_RUN_IDS": "3", "FIRM_HOME": "x", "NOT_FIRM_MEMBER_RUN_ID": "1"})
    assert welcome["hello"]["plane"] == "operator"
    assert "answer" in answer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_hears_not_a_word(daemon: Daemon) -> None:
    for path in (daemon.home.folder.parent, daemon.home.folder, daemon.home.run):
        path.chmod(0o711)  # what a daemon would refuse at its start, and what may happen while it runs
    daemon.socket.chmod(0o666)
    assert heard(daemon, user=NOBODY) == []
    assert len(heard(daemon)) == 2


def test_a_process_with_the_mark_of_a_session_is_not_the_operator(shared: Daemon) -> None:
    refusal = refused(heard(shared, env={"FIRM_MEMBER_RUN_ID": "x"}))
    assert refusal["code"] == Code.NOT_AUTHORIZED
    assert "mark of a session" in refusal["lifted_by"]


def test_nor_is_one_below_it_that_took_the_mark_off(shared: Daemon) -> None:
    mark = "FIRM_MEMBER_RUN_ID"
    below = ["env", f"{mark}=x", "sh", "-c", f'env -u {mark} "$@"; exit $?', "sh"]
    refusal = refused(heard(shared, around=below))
    assert refusal["code"] == Code.NOT_AUTHORIZED
    assert "mark of a session" in refusal["lifted_by"]


def test_the_members_socket_knows_sessions_only_whatever_key_is_shown(shared: Daemon) -> None:
    for key in ("", shared.key):
        with Client(shared.member_socket) as client:
            client.say(hello(key), request(1, "node.status"))
            refusal = refused(client.rest())
        assert refusal["code"] == Code.NOT_AUTHORIZED
        assert "sessions only" in refusal["lifted_by"]


@pytest.mark.parametrize("member", [True, False])
def test_a_capability_that_proves_nobody_is_refused_even_beside_the_key(shared: Daemon, *, member: bool) -> None:
    with Client(shared.member_socket if member else shared.socket) as client:
        client.say(hello(shared.key, capability="c" * 43))
        refusal = refused(client.rest())
    assert refusal["code"] == Code.CAPABILITY_DENIED


def test_whoever_lacks_the_key_is_told_where_it_stands(shared: Daemon) -> None:
    for key in ("", "0" * 64, shared.key[:-1], shared.key + "0", shared.key.upper() + "\n", "é" * 64, "\0" * 64):
        with Client(shared.socket) as client:
            client.say(hello(key))
            refusal = refused(client.rest())
        assert refusal["code"] == Code.NOT_AUTHORIZED
        assert "operator.key" in refusal["lifted_by"]


def left_behind(daemon: Daemon) -> Client:
    """A connection whose maker has ended, and is reaped: its pid may be anybody's by now."""
    make = """
import socket, sys
control = socket.socket(fileno=int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
socket.send_fds(control, [b"x"], [sock.fileno()])
"""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", "-c", make, str(daemon.socket), str(theirs.fileno())]
        subprocess.run(command, pass_fds=[theirs.fileno()], timeout=PATIENCE, check=True)
        _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
    return Client(sock=socket.socket(fileno=fd))


def test_a_connection_of_a_process_that_has_ended_is_nobodys(shared: Daemon) -> None:
    with left_behind(shared) as client:
        client.say(hello(shared.key))
        refusal = refused(client.rest())
    assert refusal["code"] == Code.NOT_AUTHORIZED
    assert "ended" in refusal["lifted_by"]


def test_nor_is_one_whose_process_ended_before_it_was_accepted(daemon: Daemon) -> None:
    daemon.stopped()
    with left_behind(daemon) as client:
        client.say(hello(daemon.key))
        daemon.signal(signal.SIGCONT)
        said = client.rest()
    assert said == [] or refused(said)["code"] == Code.NOT_AUTHORIZED


def test_a_record_of_the_terminals_that_cannot_be_read_keeps_nobody_out(daemon: Daemon) -> None:
    (daemon.home.run / "tmux" / "server.json").mkdir(parents=True)
    assert heard(daemon)[0]["hello"]["plane"] == "operator"
