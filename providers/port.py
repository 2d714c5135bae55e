"""The port of a provider: whatever holds the terminals in which sessions run. ``tmux`` is one, ``fake`` another; both
pass ``tests/providers/test_contract.py``.

A provider knows terminals and processes. It knows no database, no daemon and no Work: its caller records what it
intends, asks here, and records what was read back. It finds nothing by name: a launch is found by its launch id, a
process by pid, start ticks and boot id together. "Could not look" is ``Unreachable``, never "gone".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Protocol

import attrs


@attrs.frozen(kw_only=True)
class Launch:
    """What to start. ``launch_id`` is at most 64 lower-case letters and digits. ``argv`` is that of our launcher: an
    absolute program, at least two words, the launch id as its last; nothing of the agent, no prompt, no secret.
    ``cwd`` is an absolute folder.
    """

    launch_id: str
    argv: tuple[str, ...]
    cwd: str


@attrs.frozen(kw_only=True)
class Handle:
    """A terminal by everything that proves it. ``pane`` is the provider's own name for it ("%3")."""

    launch_id: str
    pane: str
    pid: int
    start_ticks: int
    boot_id: str


class Why(enum.StrEnum):
    """Why something was not started. Each has its own way out."""

    WORKSPACE_MISSING = "workspace_missing"
    TERMINAL_LIMIT = "terminal_limit"  # no pty is left
    PROCESS_LIMIT = "process_limit"  # no process may be made
    ENDED_AT_ONCE = "ended_at_once"  # the launcher ended before it could be read back
    UNREACHABLE = "unreachable"  # the provider does not answer; whether it started is unknown


@attrs.frozen(kw_only=True)
class NotStarted:
    why: Why
    detail: str


@attrs.frozen(kw_only=True)
class Unreachable:
    """The provider could not be asked. Says nothing about any process."""

    detail: str


@attrs.frozen(kw_only=True)
class Exit:
    """How the first process of a terminal ended: its status or the signal that ended it; neither when that stayed
    unknown. ``screen`` is the last of what it showed, a diagnostic of at most 50 lines.
    """

    status: int | None
    signal: int | None
    screen: str


@attrs.frozen(kw_only=True)
class Pane:
    """A terminal as it was seen. ``ended`` is None while its first process runs; its screen is empty in a listing."""

    handle: Handle
    ended: Exit | None


@attrs.frozen(kw_only=True)
class Seen:
    """Everything this provider holds, by launch id."""

    panes: Mapping[str, Pane]


@attrs.frozen(kw_only=True)
class Stopped:
    """What was proven after a stop. ``left`` are the pids below this provider that were still there at the end.
    ``grouped``: it had a control group of its own, of which the kernel says that nothing is in it any more.
    """

    left: tuple[int, ...]
    grouped: bool = attrs.field(default=False, repr=False)


class Taken(enum.StrEnum):
    """What became of a text."""

    SUBMITTED = "submitted"
    UNSUBMITTED = "unsubmitted"  # it stands there, and nothing shows that it was taken
    HELD = "held"  # nothing was typed
    GONE = "gone"  # its process has ended


@attrs.frozen(kw_only=True)
class Delivered:
    """With ``earlier`` it was an earlier call that pressed Enter."""

    taken: Taken
    reason: str = ""
    earlier: bool = False


@attrs.frozen(kw_only=True)
class Dialog:
    """What stands on a screen while a program waits for a person: each of ``lines`` fits a line of it. ``keys`` answer
    exactly that; without any a person does.
    """

    lines: list[str]
    keys: list[str] = attrs.Factory(list)


@attrs.frozen(kw_only=True)
class Typing:
    """How a program likes to be typed to. Seconds, regular expressions, and keys by the names of ``keys.py``."""

    before_enter: float = 0.3  # after a text, and between two Enters
    enters: int = 1
    keys_before_enter: list[str] = attrs.Factory(list)  # once for each text: they may cancel what is under way
    after_keys: float = 0.6  # after those, and after each key that answers a dialog
    file_above: int = 40_000  # bytes of a text; a longer one is a file, and what is typed names it
    settle: float = 2.0  # in which the screen has to change after Enter
    quiet: float = 30.0  # without output after which it waits for the next text
    composer: str = ""  # the whole line of the cursor while nobody has typed anything; empty: not known
    dialogs: list[Dialog] = attrs.Factory(list)
    rests: list[str] = attrs.Factory(list)  # from the cursor's line on, only while it works on nothing


class Provider(Protocol):
    """Every call has a deadline of its own and may be cancelled; none raises for what the world can do."""

    async def start(self, launch: Launch) -> Handle | NotStarted:
        """Start the launcher in a terminal of its own. The same launch id again answers with the terminal it has."""
        ...

    async def observe(self) -> Seen | Unreachable:
        """All terminals, in one look."""
        ...

    async def died(self) -> None:
        """Wait for the end of what holds the terminals that there are now: then they are gone, whatever their processes
        make of it.
        """
        ...

    async def ended(self, handle: Handle) -> Exit:
        """Wait for the end of the first process. At once when it has ended, or is another process by now."""
        ...

    async def stop(self, handle: Handle) -> Stopped | Unreachable:
        """End everything that the launch left, TERM then KILL, and its terminal. Read back."""
        ...

    async def strays(self) -> tuple[int, ...] | Unreachable:
        """The pids that hang below the terminals and belong to none: they lost their parents, and their mark."""
        ...

    async def deliver(self, handle: Handle, text: str, typing: Typing, delivery_id: str) -> Delivered | Unreachable:
        """Paste ``text``, press Enter, and look whether it was taken. The last ``delivery_id`` of a terminal asked for
        again, also by another process, is typed no second time: it goes on where it was, or says what came of it.
        """
        ...

    async def clear(self, handle: Handle, typing: Typing, reason: str = "") -> None:
        """Wait until nothing would hold a text, or something else than the ``reason`` for which one was held, or there
        is nobody to type to any more.
        """
        ...

    async def quiet(self, handle: Handle, seconds: float, resting: Typing | None = None) -> None:
        """Wait until nothing was shown for so long from now on, or the first process has ended. With ``resting`` until
        it then also shows, as that says, that it works on nothing: one that does not say how is never seen to rest.
        """
        ...

    async def interrupt(self, handle: Handle) -> bool | Unreachable:
        """Send the interrupt key; False when the process has ended."""
        ...

    async def capture(self, handle: Handle) -> str | Unreachable:
        """The screen, at most 50 lines."""
        ...

    def attach_command(self, handle: Handle, *, read_only: bool) -> list[str]:
        """The words that show this terminal to a person."""
        ...

    async def close(self) -> Stopped | Unreachable:
        """End every terminal, everything below the provider, and the provider's own server."""
        ...
