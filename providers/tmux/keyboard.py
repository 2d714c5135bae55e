"""Typing into one pane: text through a buffer, keys by name, and what stands on the screen."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from client.protocol.boundary import Boundary, Crash, no_crash
from providers.port import Delivered, Handle, Taken, Unreachable
from providers.process import shell_in_front
from providers.screen import Screen, Step
from providers.tmux.listing import Row, look
from providers.tmux.server import Said, Server

#: Kept with the session: the last delivery and how far it came. Outlives whoever types.
DELIVERY = "@firm_delivery"
#: The same of the dialog that was answered last, until it was seen to be gone.
ANSWERED = "@firm_answered"


@attrs.frozen(kw_only=True)
class PaneKeyboard:
    """The keyboard of a pane. Before each step it is looked whether the pane still is this launch's, and lives."""

    server: Server
    handle: Handle
    delivery_id: str = ""
    crash: Crash = no_crash

    async def living(self) -> Row | Delivered | Unreachable:
        """The pane, when its first process is still the one of the handle."""
        seen = await look(self.server)
        if isinstance(seen, Unreachable):
            return seen
        row = seen.get(self.handle.launch_id)
        if row is None or row.dead or (row.pane, row.pid) != (self.handle.pane, self.handle.pid):
            return Delivered(taken=Taken.GONE, reason="the first process of this terminal has ended")
        return row

    async def blocked(self) -> Delivered | Unreachable | None:
        row = await self.living()
        if not isinstance(row, Row):
            return row
        clients = await self.server.ask("list-clients", "-t", f"={row.launch_id}", "-F", "#{client_readonly}")
        if isinstance(clients, Unreachable):
            return clients
        if "0" in clients.out.split():
            return Delivered(taken=Taken.HELD, reason="somebody is attached and may be typing")
        if shell := shell_in_front(row.pid):
            return Delivered(taken=Taken.HELD, reason=f"a shell ({shell}) is in front, and would run what is typed")
        return None

    async def paste(self, text: str) -> Delivered | Unreachable | None:
        """Through stdin, since a command line ends at 16 KiB; marked as a paste if the program asked for that."""
        buffer = f"firm-{self.handle.launch_id}"
        done = await self._do(
            (
                *("copy-mode", "-q", "-t", self.handle.pane, ";"),
                *("load-buffer", "-b", buffer, "-", ";"),
                *self._mark(Step.PASTED),
                *("paste-buffer", "-p", "-d", "-b", buffer, "-t", self.handle.pane),
            ),
            text.encode("utf-8", "replace"),
        )
        self.crash(Boundary.DELIVER_PASTED)
        return done

    async def steps(self, keys: Sequence[str], step: Step) -> Delivered | Unreachable | None:
        done = await self.press(*keys, first=self._mark(step))
        self.crash(Boundary(f"deliver-{step.value}"))
        return done

    async def press(self, *keys: str, first: tuple[str, ...] = ()) -> Delivered | Unreachable | None:
        """A copy mode would take the keys for itself, so it is left first."""
        pane = self.handle.pane
        return await self._do((*first, "copy-mode", "-q", "-t", pane, ";", "send-keys", "-t", pane, *keys), b"")

    def _mark(self, step: Step) -> tuple[str, ...]:
        return self._note(DELIVERY, f"{self.delivery_id} {step.value}")

    def _note(self, option: str, value: str) -> tuple[str, ...]:
        """In the same call as what it is about: tmux does both or, where the first is refused, neither."""
        return ("set-option", "-t", f"={self.handle.launch_id}:", option, value, ";")

    async def step(self) -> Step | Delivered | Unreachable:
        noted = await self._noted(DELIVERY)
        if not isinstance(noted, str):
            return noted
        delivery_id, _, step = noted.partition(" ")
        return Step(step) if delivery_id == self.delivery_id else Step.NOTHING

    async def answer(self, mark: str, *keys: str) -> Delivered | Unreachable | None:
        noted = self._note(ANSWERED, mark)
        done = await (self.press(*keys, first=noted) if keys else self._do(noted[:-1], b""))
        self.crash(Boundary.DIALOG_ANSWERED if keys else Boundary.DIALOG_GONE)
        return done

    async def answered(self) -> str | Delivered | Unreachable:
        return await self._noted(ANSWERED)

    async def _noted(self, option: str) -> str | Delivered | Unreachable:
        row = await self.living()
        if not isinstance(row, Row):
            return row
        said = await self.server.ask("show-options", "-qv", "-t", f"={row.launch_id}:", option)
        if isinstance(said, Unreachable):
            return said
        return said.out.strip() if not said.status else _gone(said)

    async def submitted(self) -> Delivered | Unreachable | None:
        return await self._do(self._mark(Step.SUBMITTED)[:-1], b"")

    async def screen(self) -> Screen | Delivered | Unreachable:
        shown = await self.look()
        if not isinstance(shown, list):
            return shown
        return Screen(shown[:-2], int(shown[-2].split()[1]))  # what `look` asks for last

    async def look(self) -> list[str] | Delivered | Unreachable:
        row = await self.living()
        if not isinstance(row, Row):
            return row
        shown = await self.server.ask(
            *("capture-pane", "-p", "-t", row.pane, ";"),
            *("display-message", "-p", "-t", row.pane, "#{cursor_x} #{cursor_y}"),
        )
        if isinstance(shown, Unreachable):
            return shown
        return shown.out.split("\n") if not shown.status else _gone(shown)

    async def _do(self, words: tuple[str, ...], stdin: bytes) -> Delivered | Unreachable | None:
        row = await self.living()
        if not isinstance(row, Row):
            return row
        said = await self.server.ask(*words, stdin=stdin)
        if isinstance(said, Unreachable):
            return said
        return None if not said.status else _gone(said)


def _gone(said: Said) -> Delivered:
    return Delivered(taken=Taken.GONE, reason=f"tmux no longer has this terminal: {said.error}")
