"""One look at everything that a server holds: ids and numbers only.

A folder's name, a title or a command in a listing would be text that an agent controls, and a newline in it another
row. A row that is not exactly of our form belongs to no launch of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from providers.port import Unreachable
from providers.tmux.server import Said, Server

TICKS = "@firm_start_ticks"
FORMAT = (
    f"#{{session_name}} #{{pane_id}} #{{pane_pid}} #{{pane_dead}} "
    f"s#{{pane_dead_status}} k#{{pane_dead_signal}} t#{{{TICKS}}}"
)
LAUNCH_ID = re.compile(r"[0-9a-z]{1,64}")

_ROW = re.compile(rf"({LAUNCH_ID.pattern}) %(\d+) (\d+) ([01]) s(\d*) k(\d*) t(\d*)")
_EMPTY = "no current target"  # what list-panes says, with status 1, while there is no session


@attrs.frozen(kw_only=True)
class Row:
    """The first pane of a launch. Its pid is that of its first process also after that has ended."""

    launch_id: str
    pane: str
    pid: int
    dead: bool
    status: int | None
    signal: int | None
    start_ticks: int

    @property
    def known(self) -> bool:
        """Whether it is known how the first process ended."""
        return self.dead and (self.status is not None or self.signal is not None)


#: Its first line proves who answered.
WORDS = ("display-message", "-p", "#{pid}", ";", "list-panes", "-a", "-F", FORMAT)


async def look(server: Server) -> Mapping[str, Row] | Unreachable:
    """All launches by id."""
    said = await server.ask(*WORDS)
    return said if isinstance(said, Unreachable) else seen_in(said, server)


def seen_in(said: Said, server: Server) -> Mapping[str, Row] | Unreachable:
    """What an answer to ``WORDS`` lists."""
    head, _, rows = said.out.partition("\n")
    if head != str(server.process.pid) or (said.status and said.error != _EMPTY):
        return Unreachable(detail=f"tmux could not list: {said.error or said.out[:200]!r}")
    return read(rows)


async def look_closely(server: Server, pane: str) -> tuple[Row, str] | None:
    """One pane and what it shows, in one call; None when that could not be had. What an agent wrote comes last."""
    at = ("-p", "-t", pane)
    said = await server.ask("display-message", *at, f"#{{pid}} {FORMAT}", ";", "capture-pane", *at)
    if isinstance(said, Unreachable) or said.status:
        return None
    first, _, shown = said.out.partition("\n")
    pid, _, line = first.partition(" ")
    (row,) = read(line).values() or (None,)
    return None if row is None or pid != str(server.process.pid) else (row, shown)


def read(rows: str) -> dict[str, Row]:
    found: dict[str, tuple[int, Row]] = {}
    for line in rows.split("\n"):
        if (match := _ROW.fullmatch(line)) is None:
            continue
        launch_id, number, pid, dead, status, signal, ticks = match.groups()
        row = Row(
            launch_id=launch_id,
            pane=f"%{number}",
            pid=int(pid),
            dead=dead == "1",
            status=int(status) if status and not signal else None,
            signal=int(signal) if signal else None,
            start_ticks=int(ticks or 0),
        )
        # Whoever speaks to our socket may have split the window: ours is the pane that was there first.
        if launch_id not in found or int(number) < found[launch_id][0]:
            found[launch_id] = (int(number), row)
    return {launch_id: row for launch_id, (_, row) in found.items()}
