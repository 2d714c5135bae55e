"""Writers on connections of their own that keep a daemon busy, and the account of what it owes them afterwards.

    with Load(daemon, writers=32) as load:
        load.until_answered(100)
        daemon.kill()
    accounts.settle(home.start(), load)

Every request has a key of its own. One that is refused is asked again under it by its writer, as the refusal says;
one whose answer was lost, by the account. Then it is known exactly which records there must be, at which version.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw
import attrs

from tests.support.daemon import Daemon
from tests.support.stores import faults_in
from tests.support.wire import PATIENCE, Client, Message


@attrs.define
class Asked:
    """One request. ``answer`` is None if it was lost, or always refused."""

    op: str
    body: Message
    key: str
    answer: Message | None = None


class Load:
    """Writers in threads, until the daemon is gone or the block ends. ``size`` is that of each record, in bytes."""

    def __init__(self, daemon: Daemon, *, writers: int, size: int = 200, socket: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self.failures: list[BaseException] = []
        self.refusals: set[str] = set()
        self._socket = socket or daemon.socket
        self._key = daemon.key if socket is None else (socket.parent.parent / "operator.key").read_text().strip()
        self._text = "x" * size
        self._answered = 0
        self._in_a_row = 0
        self._over = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(writers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over = True
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads)
        if error is None and self.failures:
            raise self.failures[0]

    def until_answered(self, more: int) -> None:
        """Wait until so many more requests have been answered. Refusals do not count."""
        with self._changed:
            before = self._answered
            assert self._changed.wait_for(lambda: self._answered >= before + more, PATIENCE), self.refusals

    def until_refused(self, code: str, in_a_row: int = 1) -> None:
        """Wait until a request is refused so, and none was answered between so many refusals."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._in_a_row >= in_a_row, PATIENCE), self.refusals
            assert code in self.refusals

    @property
    def lost(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.answer is None]

    def _work(self) -> None:
        try:
            with contextlib.suppress(EOFError, OSError), Client(self._socket) as client:  # the daemon may be gone
                assert "hello" in client.hello(self._key)
                while not self._over:
                    self._turn(client)
        except BaseException as failure:  # noqa: BLE001 — told in the test's own thread
            self.failures.append(failure)

    def _turn(self, client: Client) -> None:
        """One agent member, then three changes of it."""
        made = self._ask(client, "agent.create", {"name": uuid.uuid4().hex, "description": self._text})
        for _ in range(3):
            if made is None or self._over:
                return
            body = {"agent_member_id": made["id"], "expected_version": made["version"], "name": uuid.uuid4().hex}
            made = self._ask(client, "agent.update", body)

    def _ask(self, client: Client, op: str, body: Message) -> Message | None:
        asked = Asked(op, body, uuid.uuid4().hex)
        self.asked.append(asked)
        while True:
            reply = client.ask(op, body, asked.key)
            with self._changed:
                if "refusal" in reply:
                    self.refusals.add(reply["refusal"]["code"])
                    self._in_a_row += 1
                else:
                    asked.answer = reply["answer"]
                    self._answered += 1
                    self._in_a_row = 0
                self._changed.notify_all()
            if asked.answer is not None or self._over:
                return asked.answer


@attrs.define
class Accounts:
    """Which agent members a home must hold, by id: version and name."""

    expected: dict[str, tuple[int, str]] = attrs.Factory(dict)

    def settle(self, client: Client, load: Load) -> list[bool]:
        """Ask everything again under its key. For each answer that was lost: whether it had been done already.

        What was acknowledged must be answered word for word as before; what was lost, the same way ever after.
        """
        done = [self._again(client, asked) for asked in load.lost]
        for asked in load.asked:
            assert self._again(client, asked), asked
        return done

    def _again(self, client: Client, asked: Asked) -> bool:
        reply = client.ask(asked.op, asked.body, asked.key)
        assert "answer" in reply, (asked, reply)
        record = reply["answer"]
        assert asked.answer is None or asked.answer == record
        asked.answer = record
        known, _ = self.expected.get(record["id"], (0, ""))
        if record["version"] > known:
            self.expected[record["id"]] = (record["version"], record["name"])
        return bool(reply["replayed"])

    def check(self, database: Path) -> None:
        """Exactly that is there, each change once: the database is whole, and each row the fold of its events."""
        assert faults_in(database) == []
        assert dict(_rows(database)) == self.expected


def _rows(database: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    with contextlib.closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        for found, version, name in connection.execute("SELECT id, version, name FROM agents"):
            yield str(found), (int(str(version)), str(name))
