"""What the programs of members record of their turns, read when a cycle or a process ends: from where that began."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs
import trio

from client.protocol.board import Seat
from client.protocol.effect import RuntimeEffect
from client.protocol.ids import SessionId
from client.protocol.session import AgentSession
from providers import records
from providers.profiles import Profile
from providers.records import Reading

log = logging.getLogger(__name__)


@attrs.define
class Records:
    """``transcript`` says where a program keeps them: by profile, native session and folder. A conversation that became
    another one meanwhile is read from there on: it may begin with a copy of what is long over.
    """

    transcript: Callable[[str, str, str], Path | None]
    profiles: Mapping[str, Profile]
    _kept: dict[SessionId, tuple[Profile, Path]] = attrs.Factory(dict)
    _readings: dict[SessionId, Reading] = attrs.Factory(dict)

    def look_at(self, seats: Sequence[Seat]) -> None:
        self._kept.clear()
        for seat in seats:
            if seat.session is not None and seat.launch is not None:
                self.know(seat.session, seat.launch)

    def know(self, session: AgentSession, launch: RuntimeEffect) -> None:
        profile = self.profiles.get(session.profile)
        path = self.transcript(session.profile, session.native_session, launch.cwd)
        if profile is not None and profile.records and path is not None:
            self._kept[session.id] = profile, path

    async def begin(self, session_id: SessionId) -> None:
        """A cycle begins, or a process is followed from now on: what was recorded before is of before."""
        self._readings.pop(session_id, None)
        if kept := self._kept.get(session_id):
            await self._read(session_id, partial(records.at_end, kept[1]))

    async def since(self, session_id: SessionId) -> Reading | None:
        """What was recorded since; None where nobody knows."""
        kept, reading = self._kept.get(session_id), self._readings.get(session_id)
        if kept is None or reading is None:
            return reading
        if reading.path != kept[1]:
            await self._read(session_id, partial(records.at_end, kept[1]))
        else:
            await self._read(session_id, partial(records.further, reading, kept[0].records))
            _tell_unparsed(self._readings[session_id], reading.unparsed)
        return self._readings[session_id]

    async def _read(self, session_id: SessionId, read: Callable[[], Reading]) -> None:
        try:
            self._readings[session_id] = await trio.to_thread.run_sync(read, abandon_on_cancel=True)
        except OSError as error:  # it says nothing then, which is no sign of anything
            log.warning("cannot read the records of session=%s: %s", session_id, error)


def _tell_unparsed(reading: Reading, before: int) -> None:
    if reading.unparsed > before:
        log.warning("not records: %d more lines of %s", reading.unparsed - before, reading.path)
