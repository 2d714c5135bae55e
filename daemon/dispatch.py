"""One request, from ask to answer. Every surface ends here.

Order: known operation, plane, draining, shape; then, inside the unit: authority, remembered reply, the verb. So
whoever may not do a thing learns nothing from a key, and a key answers before state is looked at.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import attrs
import trio

from client.protocol import codec
from client.protocol.codec import Ask
from client.protocol.ids import SessionId
from client.protocol.operation import Effect, Operation
from client.protocol.refusals import Code, Refusal
from client.protocol.table import BY_NAME
from daemon.call import Call
from daemon.handlers import GUARDS, HANDLERS
from daemon.operations import cycle
from daemon.operations.actor import standing
from daemon.operations.quarantine import unreadable
from daemon.outside import LOOKS
from store import quarantine, replies
from store.batch import Unit
from store.database import StorageFault, Store
from store.tx import Tx, Unreadable

log = logging.getLogger(__name__)

#: Sends one frame to the peer that asked.
Reply = Callable[[bytes], None]
#: What cannot be answered at once, and runs as a task of the peer's connection.
Task = Callable[[], Awaitable[None]]
#: Begins one.
Spawn = Callable[[Task], None]
#: Waits until the peer has read enough for another page of a stream.
Room = Callable[[], Awaitable[None]]

Live = Callable[[Call, Any], Awaitable[Any]]
Stream = Callable[[Call, Any], AsyncGenerator[Any, None]]


@attrs.define
class _Kept:
    """What a unit of work leaves behind for its answer."""

    body: bytes
    replayed: bool
    unreadable: list[Unreadable]


@attrs.define
class Dispatcher:
    """``live`` and ``streams`` answer the operations of those effects; ``draining`` refuses what would begin."""

    store: Store
    live: Mapping[str, Live]
    streams: Mapping[str, Stream]
    draining: bool = False
    #: When each session last called, on trio's clock: a call is a sign that its member does something.
    heard: dict[SessionId, float] = attrs.Factory(dict)

    def heard_at(self, session_id: SessionId) -> float:
        """When that session last called, on trio's clock."""
        return self.heard.get(session_id, -math.inf)

    def ask(self, call: Call, ask: Ask, reply: Reply, spawn: Spawn, room: Room) -> None:
        """Answer ``ask`` through ``reply``: now, after the next commit, or out of a task."""
        op = BY_NAME.get(ask.op)
        if op is None:
            lifted_by = "see what there is: firm --help; another version of firm may have it"
            reply(_refuse(ask, Refusal(code=Code.UNKNOWN_OPERATION, about=ask.op[:200], lifted_by=lifted_by)))
            return
        if call.session_id is not None and ask.op not in cycle.REFLEXES:
            self.heard[call.session_id] = trio.current_time()
        request = self._admit(op, call, ask)
        if isinstance(request, Refusal):
            reply(_refuse(ask, request))
        elif op.effect is Effect.READ:
            reply(self._read(op, call, ask, request))
        elif op.effect is Effect.SCAN:
            spawn(lambda: self._scan(op, call, ask, request, reply))
        elif op.name in LOOKS:
            spawn(lambda: self._look_then_write(op, call, ask, request, reply))
        elif op.effect is Effect.WRITE:
            self._write(op, call, ask, request, reply)
        elif op.effect is Effect.STREAM:
            spawn(lambda: self._stream(op, call, ask, request, reply, room))
        else:
            spawn(lambda: self._live(op, call, ask, request, reply))

    def _admit(self, op: Operation, call: Call, ask: Ask) -> Any:
        if call.plane not in op.planes:
            planes = " or ".join(sorted(op.planes))
            lifted_by = f"ask as {planes}; this connection is {call.plane}"
            return Refusal(code=Code.NOT_AUTHORIZED, about=op.name, lifted_by=lifted_by)
        if self.draining and op.effect not in {Effect.READ, Effect.SCAN} and op.name != "node.status":
            lifted_by = "ask again when it has started: firm node start"
            return Refusal(code=Code.NODE_DAEMON_DRAINING, about="node", lifted_by=lifted_by)
        return codec.from_plain(ask.body, op.request)

    def _read(self, op: Operation, call: Call, ask: Ask, request: Any) -> bytes:
        try:
            found = self.store.look(functools.partial(_reading, op, call, request))
        except Exception as error:  # noqa: BLE001 — one request's failure is that request's answer
            return _refuse(ask, self._failure(op, call, error))
        return self._found(call, ask, found, self.store.seq)

    async def _scan(self, op: Operation, call: Call, ask: Ask, request: Any, reply: Reply) -> None:
        try:
            seq = self.store.seq  # of before: what is committed meanwhile may be missing in what is found
            found = await self.store.scan(functools.partial(_reading, op, call, request))
        except Exception as error:  # noqa: BLE001 — one request's failure is that request's answer
            reply(_refuse(ask, self._failure(op, call, error)))
        else:
            reply(self._found(call, ask, found, seq))

    def _found(self, call: Call, ask: Ask, found: tuple[Any, list[Unreadable]], seq: int) -> bytes:
        outcome, left_out = found
        quarantine.set_aside(self.store, left_out, at=call.now)
        if isinstance(outcome, Refusal):
            return _refuse(ask, outcome)
        return codec.answer_frame(ask.id, codec.packb(outcome), seq=seq)

    async def _look_then_write(self, op: Operation, call: Call, ask: Ask, request: Any, reply: Reply) -> None:
        facts = await LOOKS[op.name](request)
        self._write(op, attrs.evolve(call, facts=facts), ask, request, reply)

    def _write(self, op: Operation, call: Call, ask: Ask, request: Any, reply: Reply) -> None:
        guard, verb = GUARDS.get(op.name, _everybody), HANDLERS[op.name]
        mark = replies.mark(call.actor, op.name, ask.key) if ask.key else b""
        digest = codec.body_digest(ask.body) if ask.key else b""

        def run(tx: Tx) -> _Kept | Refusal:
            if refusal := standing(tx, call) or guard(tx, call, request):
                return refusal
            if mark and (first := replies.find(tx, mark)):
                return _Kept(first.answer, replayed=True, unreadable=[]) if first.digest == digest else _reused(ask)
            if isinstance(call.facts, Refusal):
                return call.facts  # not before: the folder of a request that was answered may be gone by now
            outcome = verb(tx, call, request)
            if isinstance(outcome, Refusal):
                return outcome
            cycle.spoke(tx, call, op.name)
            body = codec.packb(outcome)
            if mark:
                replies.keep(tx, mark, digest=digest, answer=body, at=call.now)
            return _Kept(body, replayed=False, unreadable=tx.unreadable)

        def done(unit: Unit) -> None:
            outcome = unit.outcome
            if isinstance(outcome, BaseException):
                outcome = self._failure(op, call, outcome)
            if isinstance(outcome, Refusal):
                reply(_refuse(ask, outcome))
            else:
                quarantine.set_aside(self.store, outcome.unreadable, at=call.now)
                seq = unit.seq or self.store.seq
                reply(codec.answer_frame(ask.id, outcome.body, seq=seq, replayed=outcome.replayed))

        self.store.submit(Unit(run, done))

    async def _live(self, op: Operation, call: Call, ask: Ask, request: Any, reply: Reply) -> None:
        try:
            outcome = self.store.look(lambda tx: standing(tx, call))
            if outcome is None:
                outcome = await self.live[op.name](call, request)
        except Exception as error:  # noqa: BLE001 — one request's failure is that request's answer
            outcome = self._failure(op, call, error)
        if isinstance(outcome, Refusal):
            reply(_refuse(ask, outcome))
        else:
            reply(codec.answer_frame(ask.id, codec.packb(outcome), seq=self.store.seq))

    async def _stream(self, op: Operation, call: Call, ask: Ask, request: Any, reply: Reply, room: Room) -> None:
        try:
            if refusal := self.store.look(lambda tx: standing(tx, call)):
                reply(_refuse(ask, refusal))
                return
            async with contextlib.aclosing(self.streams[op.name](call, request)) as outcomes:
                async for outcome in outcomes:
                    if isinstance(outcome, Refusal):
                        reply(_refuse(ask, outcome))
                        return
                    reply(codec.answer_frame(ask.id, codec.packb(outcome), seq=self.store.seq, more=True))
                    await room()
        except Exception as error:  # noqa: BLE001 — one request's failure is that request's answer
            reply(_refuse(ask, self._failure(op, call, error)))

    def _failure(self, op: Operation, call: Call, error: BaseException) -> Refusal:
        if isinstance(error, Unreadable):
            quarantine.set_aside(self.store, [error], at=call.now)
            return unreadable(error)
        if isinstance(error, StorageFault):
            return error.refusal
        incident = secrets.token_hex(4)
        log.error("%s failed, incident %s", op.name, incident, exc_info=error)
        lifted_by = f"read the log at incident {incident} (firm node logs) and report it; asking again is safe"
        return Refusal(code=Code.INTERNAL, about=op.name, lifted_by=lifted_by)


def _everybody(_tx: Tx, _call: Call, _request: Any) -> None:
    """The plane has said all that there is to say."""


def _reading(op: Operation, call: Call, request: Any, tx: Tx) -> tuple[Any, list[Unreadable]]:
    return standing(tx, call) or HANDLERS[op.name](tx, call, request), tx.unreadable


def _refuse(ask: Ask, refusal: Refusal) -> bytes:
    return codec.refusal_frame(ask.id, refusal)


def _reused(ask: Ask) -> Refusal:
    return Refusal(
        code=Code.IDEMPOTENCY_KEY_REUSED,
        about=ask.key,
        lifted_by="use a new key for another request; repeat the first one word for word to see its answer",
    )
