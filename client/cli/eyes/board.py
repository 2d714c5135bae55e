"""``firm board``: where a run stands, what somebody has to look at, its Works by phase, its members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from client.cli.eyes import standing
from client.cli.eyes.sheet import block, clean, columns, counted, cut, section
from client.cli.render import ago, terminal

#: What is counted, and the words for it; nothing is said of what there is none of.
_COUNTS = (
    ("review", "in review"),
    ("active", "active"),
    ("blocked", "blocked"),
    ("on_hold", "on hold"),
    ("open", "open"),
    ("ready", "ready"),
    ("unassigned", "nobody's"),
    ("accepted", "accepted"),
    ("cancelled", "cancelled"),
    ("failed", "failed"),
)
_PHASES = ("review", "active", "open")


def lay(board: dict[str, Any]) -> str:
    run, counts = board["run"], board["counts"]
    said = [f"{counts[name]} {words}" for name, words in _COUNTS if counts[name]]
    title = f"Run {run['id']}: {run['state']}, version {run['version']}, begun {ago(run['created_at'])}"
    objective = f". {clean(run['objective'])}" if run["objective"] else ""
    lines = [cut(title + objective, terminal() or 200)]
    lines += [f"Works: {', '.join(said) or 'none'}", *completes(board)]
    lines += section("Attention", _attention(board["attention"]))
    for phase in _PHASES:
        works = [work for work in board["works"] if work["phase"] == phase]
        lines += section(f"Works {'in review' if phase == 'review' else phase}", _works(works, counts[phase]))
    lines += section("Members", _members(board["members"]))
    return "\n".join([*lines, *section("Conversations", [f"  {line}" for line in conversations(board["members"])])])


def completes(board: dict[str, Any]) -> list[str]:
    """Of a run that was told to complete: what it waits for. What stands in the way of that stands under attention."""
    if not board["run"]["completing"]:
        return []
    if left := sum(board["counts"][phase] for phase in _PHASES):
        return [f"Completes by itself once {counted(left, 'Work')} more {'is' if left == 1 else 'are'} closed"]
    names = ", ".join(clean(member["name"]) for member in board["members"] if member["session"])
    return [f"Completes by itself once the processes of {names or 'its members'} have ended"]


def ends(board: dict[str, Any]) -> list[str]:
    """Of a run that was told to complete, where only members are listed: what it waits for, and what is in the way."""
    waits = completes(board)
    if not waits:
        return []
    stuck = [item for item in board["attention"] if item["kind"] == "member_not_ended"]
    return [f"Run {board['run']['id']}:", *(f"  {line}" for line in waits), *_attention(stuck)]


def _attention(items: list[dict[str, Any]]) -> Iterator[str]:
    """What there is to look at, and below it what lifts it: commands are copied, so they are never cut."""
    for item in items:
        yield from block(f"{item['what']}, {ago(item['since'])}")
        yield f"    {clean(item['lifted_by'])}"


def _works(works: list[dict[str, Any]], all_of_them: int) -> list[str]:
    rows = [
        (
            work["work_id"],
            standing.marked(standing.word(work, standing.READY if work["ready"] else standing.WAITING)),
            clean(work["title"]),
            clean(work["owner"]) + _verified(work),
            ago(work["updated_at"]) + ("" if work["priority"] == "normal" else f", {work['priority']}"),
        )
        for work in works
    ]
    left = all_of_them - len(works)
    more = [f"  and {counted(left, 'more', 'more')}: firm work list shows them"] if left > 0 else []
    return [*columns(rows, 2, "  "), *more]


def _verified(work: dict[str, Any]) -> str:
    """Of a Work in review: who is to say, or has said, whether the submission holds."""
    if work["phase"] != "review" or not work["verifier"]:
        return ""
    return f", {clean(work['verifier'])}: {work['verdict'] or 'to verify'}"


def conversations(members: list[dict[str, Any]]) -> list[str]:
    """Which conversation each member's program is in: a line for each that keeps one."""
    return [
        f"{clean(member['name'])} {'goes on with' if member['resumed'] else 'began'} "
        f"native session {clean(member['native_session'])}"
        for member in members
        if member["native_session"]
    ]


def _members(members: list[dict[str, Any]]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for member in members:
        # A member without a session is absent; one whose Work is in review may be too.
        doing = "-" if member["doing"] == "absent" else member["doing"].replace("-", " ")
        session, waits = member["session"], member["waits"]
        rows.append(
            (
                clean(member["name"]),
                f"{clean(member['role'])}-{member['number']}",
                f"session {session.replace('_', ' ')}{_turn(member)}" if session else "no session",
                doing,
                clean(member["work_title"]),
                ", ".join(
                    filter(
                        None,
                        [
                            counted(member["mail"], "letter") + " unread" if member["mail"] else "",
                            f"waits {clean(waits)}" if waits else "",
                        ],
                    )
                ),
            )
        )
    return columns(rows, 4, "  ")


def _turn(member: dict[str, Any]) -> str:
    """Whether a turn goes on there, who said so and when; nothing where nobody did."""
    if member["activity"] == "unknown" or member["activity_at"] is None:
        return ""
    said = "waiting for input" if member["activity"] == "waiting_input" else f"turn {member['activity']}"
    return f", {said} ({member['activity_source']}, {ago(member['activity_at'])})"
