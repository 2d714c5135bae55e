"""What is known of a member's turn: what hooks of its program say, and what its terminal shows. Words that come late
take nothing back.
"""

from __future__ import annotations

from typing import Any

from client.protocol.ids import UnixMs
from client.protocol.session import Activity, AgentSession, Heard, Source


def in_turn(of: AgentSession) -> bool:
    """Whether hooks told of the begin of a turn and not of its end. Nobody else's word says so."""
    return of.activity_source is Source.HOOK and of.activity in {Activity.RUNNING, Activity.WAITING_INPUT}


def heard(of: AgentSession, what: Heard, turn: str, sequence: int, at: UnixMs) -> dict[str, Any]:
    """What a hook changes; nothing, where it is late. The end of a turn stands against whatever is told of that turn
    afterwards, and against whatever began before it, in whichever order they come.
    """
    newest, over = max(of.turn_begun, of.turn_ended), of.turn_ended >= of.turn_begun
    same = turn != "" and turn == of.turn
    said = {"activity_at": at, "activity_source": Source.HOOK, "turn": turn or of.turn}
    match what:
        case Heard.BEGUN if sequence > newest and not (same and over):
            return {**said, "activity": Activity.RUNNING, "turn": turn, "turn_begun": sequence}
        case Heard.WAITING if not over and sequence > of.turn_begun and (same or not (turn and of.turn)):
            return {**said, "activity": Activity.WAITING_INPUT}
        case Heard.ENDED if not over if same else sequence > newest:
            # The marks grow: whoever waits for the end of a turn compares them.
            ended = max(sequence, of.turn_begun, of.turn_ended + 1)
            return {**said, "activity": Activity.IDLE, "turn_ended": ended}
        case _:
            return {}


def began(of: AgentSession, at: UnixMs) -> dict[str, Any]:
    """What a text that was taken says of the turn, where no hook has said more."""
    if of.activity_source is Source.HOOK:
        return {}
    return {"activity": Activity.RUNNING, "activity_at": at, "activity_source": Source.TERMINAL}


def fell_quiet(of: AgentSession, after_turn: int, at: UnixMs) -> dict[str, Any]:
    """What the end of a cycle says of the turn, where no hook told of that end. One that comes later is of that turn,
    and ends no other.
    """
    if of.turn_ended > after_turn:
        return {}
    idle = {"activity": Activity.IDLE, "activity_at": at, "activity_source": Source.TERMINAL}
    return {**idle, "turn_ended": max(of.turn_begun, of.turn_ended)}


#: Nobody listened, or there is no process: what was said before says nothing of now.
UNHEARD: dict[str, Any] = {"activity": Activity.UNKNOWN, "activity_at": None, "activity_source": None}
