"""How a board is drawn from facts. Pure: the same facts give the same board."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from client.protocol.board import Board, BoardMember, Counts, Doing
from client.protocol.session import SessionState

#: Characters of a summary.
SUMMARY = 500


def counts(standings: Iterable[tuple[str, str, str, bool, int]], ready: int) -> Counts:
    """Standings (phase, condition, resolution, owned, how many) added up."""
    found = list(standings)

    def total(*, phase: str = "", condition: str = "", resolution: str = "", owned: bool | None = None) -> int:
        return sum(
            n
            for p, k, r, o, n in found
            if phase in {"", p}
            and condition in {"", k}
            and resolution in {"", r}
            and (owned is None or (o is owned and p != "closed"))
        )

    return Counts(
        open=total(phase="open"),
        active=total(phase="active"),
        blocked=total(condition="blocked"),
        on_hold=total(condition="on_hold"),
        review=total(phase="review"),
        accepted=total(resolution="accepted"),
        cancelled=total(resolution="cancelled"),
        failed=total(resolution="failed"),
        assigned=total(owned=True),
        unassigned=total(owned=False),
        ready=ready,
    )


def doing(session: str, phase: str, condition: str) -> Doing:
    """What a member does, from its session and the Work that says most about it."""
    if session == SessionState.RECOVERY_REQUIRED:
        return Doing.RECOVERY
    if phase == "review":
        return Doing.AWAITING_REVIEW
    if phase == "active" and condition == "normal":
        return Doing.WORKING if session else Doing.ABSENT
    return Doing.IDLE if session else Doing.ABSENT


def summary(board: Board) -> str:
    """At most 500 characters; members that do not fit are counted."""
    c = board.counts
    goes_on = f"open={c.open} active={c.active} blocked={c.blocked} on_hold={c.on_hold} review={c.review}"
    lines = [
        f"{goes_on} accepted={c.accepted} cancelled={c.cancelled} failed={c.failed}",
        f"assigned={c.assigned} unassigned={c.unassigned} ready={c.ready} attention={len(board.attention)}",
    ]
    ending = f"run={board.run.state.value} sup_gen={board.run.sup_gen}"
    return "\n".join([*lines, *_fit(board.members, SUMMARY - sum(map(len, lines)) - len(ending) - 3), ending])


def _fit(members: Sequence[BoardMember], room: int) -> list[str]:
    lines = [f"{member.name[:40]}: {member.doing.value}" for member in members]
    shown: list[str] = []
    for n, line in enumerate(lines):
        left = len(lines) - n
        more = f"and {left} more"
        if room < len(line) + 1 or (left > 1 and room < len(line) + len(more) + 2):
            return [*shown, more]
        shown.append(line)
        room -= len(line) + 1
    return shown
