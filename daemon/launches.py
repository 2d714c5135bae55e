"""The door of a launch: the process that connects is compared with the one that was started, told what to become, and
followed until it became that.

A launcher says hello with its launch and gets program, environment and folder. It says ``exec``; its socket closes with
the exec. That end alone proves nothing, since a killed process closes its socket too: the process is looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import trio

from client.protocol import codec
from client.protocol.boundary import Boundary, Crash, no_crash
from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect
from client.protocol.ids import EffectId, SessionId
from client.protocol.refusals import Code, Refusal
from daemon.call import Call
from daemon.operations import launch
from daemon.operations.launch import Told
from daemon.peer import PeerProcess
from daemon.relay import Relay
from providers.process import has_execd, start_ticks_of
from store.database import Store
from store.effect import EFFECTS
from store.tx import Tx

log = logging.getLogger(__name__)

#: Seconds in which the supervisor has to say which process it started.
STARTED_SECONDS = 10.0
#: Seconds between two looks at a process whose exec is under way, and how many looks.
_LOOK, _LOOKS = 0.005, 200


@attrs.frozen(kw_only=True)
class Launches:
    """``environment`` is what every process gets, ``folder`` a session's own; ``call`` makes the daemon's caller."""

    store: Store
    relay: Relay
    call: Callable[[], Call]
    environment: dict[str, str]
    folder: Callable[[SessionId], Path]
    crash: Crash = no_crash  # ends the daemon at a boundary, for tests

    async def converse(
        self,
        process: PeerProcess,
        launch_id: str,
        put: Callable[[bytes], None],
        heard: trio.MemoryReceiveChannel[dict[Any, Any]],
    ) -> None:
        """Serve one launcher to its end. ``heard`` ends with its socket."""
        told = await self._admit(process, EffectId(launch_id))
        if isinstance(told, Refusal):
            log.warning("launch refused pid=%d: %s, %s", process.pid, told.code, told.lifted_by)
            put(codec.refusal_frame(0, told))
            return
        self.crash(Boundary.LAUNCH_ADMITTED)
        put(codec.packb({"hello": {"argv": told.argv, "env": told.env, "cwd": told.cwd, "nice": told.nice}}))
        execs = False
        async for message in heard:
            if "failed" in message:
                await self._settle(told.effect, Certainty.NOT_APPLIED, _why(message["failed"]))
                return
            execs = execs or message.get("exec") is True
        if execs and await _became(told.effect):
            self.crash(Boundary.LAUNCH_PROVEN)
            await self._settle(told.effect, Certainty.APPLIED, f"pid={told.effect.pid} runs {told.argv[0]}")

    async def _admit(self, process: PeerProcess, effect_id: EffectId) -> Told | Refusal:
        effect = await self._started(effect_id)
        if effect is None:
            return _denied("no launch of this id is under way")
        seen = start_ticks_of(process.pid)
        if process.ended or (process.pid, seen) != (effect.pid, effect.start_ticks):
            return _denied("this is not the process that was started for it")
        return await self.store.write(
            lambda tx: launch.admit(tx, self.call(), effect.id, self.environment, self.folder)
        )

    async def _started(self, effect_id: EffectId) -> RuntimeEffect | None:
        """The launch, once its process is known; None when that does not come."""
        with trio.move_on_after(STARTED_SECONDS):
            while True:
                with self.relay.next(f"effect/{effect_id}") as changed:
                    effect = self.store.look(lambda tx: EFFECTS.load(tx, effect_id))
                    if (
                        effect is None
                        or effect.kind is not EffectKind.LAUNCH
                        or effect.state is not EffectState.PREPARED
                    ):
                        return None
                    if effect.pid:
                        return effect
                    await changed.wait()
        return None

    async def _settle(self, effect: RuntimeEffect, certainty: Certainty, readback: str) -> None:
        def run(tx: Tx) -> RuntimeEffect | Refusal:
            return launch.settle(tx, self.call(), effect.id, certainty, readback)

        settled = await self.store.write(run)
        if isinstance(settled, Refusal):
            log.warning("launch not settled effect=%s: %s, %s", effect.id, settled.code, settled.lifted_by)


async def _became(effect: RuntimeEffect) -> bool:
    """Whether the process became its program. The socket closes a moment before the name changes."""
    for _ in range(_LOOKS):
        if has_execd(effect.pid, effect.start_ticks):
            return True
        if start_ticks_of(effect.pid) != effect.start_ticks:
            return False
        await trio.sleep(_LOOK)
    return False


def _why(failed: object) -> str:
    said = failed if isinstance(failed, dict) else {}
    return f"exec failed: {str(said.get('what', ''))[:500]} (errno {said.get('errno')})"


def _denied(lifted_by: str) -> Refusal:
    return Refusal(code=Code.LAUNCH_DENIED, about="launch", lifted_by=lifted_by)
