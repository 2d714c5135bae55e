"""Two thousand peers at once, and more who wait at the door than fit."""

from __future__ import annotations

import contextlib
import resource
import selectors
import signal
import socket
import threading
from collections.abc import Generator

import pytest
import trio

from client.cli import ask
from client.connection import connect
from client.protocol.digest import DIGEST
from client.protocol.node import NodeStatus, ShowStatus
from tests.support.daemon import COMMAND, Daemon, Home
from tests.support.wire import PATIENCE, Client, hello, request

PEERS = 2000


@pytest.fixture
def descriptors() -> Generator[None]:
    """Room for ours of every connection. The daemon makes its own room, of twice as many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = PEERS + 500
    if hard != resource.RLIM_INFINITY and hard < 2 * wanted:
        pytest.skip(f"the hard limit of open files is {hard}; the daemon needs {2 * wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
def test_two_thousand_peers_are_all_answered(daemon: Daemon) -> None:
    key = daemon.key
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(PEERS):
            peer = stack.enter_context(Client(daemon.socket))
            peer.say(hello(key), request(1, "team.list"))
            selector.register(peer.sock, selectors.EVENT_READ, peer)
        answered = 0
        while selector.get_map():
            ready = selector.select(PATIENCE)
            assert ready, f"only {answered} of {PEERS} were answered"
            for found, _ in ready:
                assert "hello" in found.data.hear()
                assert found.data.hear()["answer"]["items"] == []
                selector.unregister(found.fileobj)
                answered += 1
        late = stack.enter_context(daemon.client())
        assert late.ask("node.status")["answer"]["connections"] == PEERS + 1
        assert "answer" in late.ask("agent.create", {"name": "still writing"})


def test_the_daemon_makes_room_for_descriptors(home: Home) -> None:
    """However low the soft limit of the shell that started it is."""
    daemon = home.start(command=["sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *COMMAND])
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    assert soft == hard
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(daemon.client()) for _ in range(100)]
        assert all("answer" in peer.ask("team.list") for peer in peers)


@pytest.fixture
def full(home: Home) -> Generator[Daemon]:
    """A daemon that stands still, and whose queue of connections, a short one, is full."""
    with contextlib.ExitStack() as stack:
        home.run.mkdir(mode=0o700, parents=True)
        home.folder.chmod(0o700)
        doors = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        for door, name in zip(doors, ("node.sock", "member.sock"), strict=True):
            door.bind(str(home.run / name))
            door.listen(1)
        daemon = home.launch(sockets=doors).until_ready()
        daemon.stopped()
        queued = 0
        with contextlib.suppress(BlockingIOError):
            while queued < 10:
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.settimeout(0)
                sock.connect(str(daemon.socket))
                queued += 1
        assert queued == 2
        yield daemon


def test_clients_wait_at_a_full_queue_and_are_all_answered(full: Daemon) -> None:
    """Neither refused at once, nor told that they are connected when they are not."""
    answers: list[str] = []

    def command_line() -> None:
        conversation = ask.Conversation(DIGEST, home=str(full.home.folder))
        status = conversation.ask("node.status", {})["answer"]
        conversation.close()
        assert isinstance(status, dict)
        answers.append(str(status["pid"]))

    async def connection() -> None:
        async with connect(full.socket, full.key) as node:
            status = await node.ask(ShowStatus())
        assert isinstance(status, NodeStatus)
        answers.append(str(status.pid))

    clients = [threading.Thread(target=command_line) for _ in range(8)]
    clients += [threading.Thread(target=trio.run, args=(connection,)) for _ in range(8)]
    for client in clients:
        client.start()
    clients[0].join(0.3)
    assert all(client.is_alive() for client in clients)
    full.signal(signal.SIGCONT)
    for client in clients:
        client.join(PATIENCE)
    assert answers == [str(full.pid)] * len(clients)
