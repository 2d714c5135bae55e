"""What the daemon says when it refuses, word for word, where many operations refuse alike."""

from __future__ import annotations

from typing import Any

from client.protocol.operation import Request
from client.protocol.refusals import Code, Refusal
from tests.support.node import InProcessNode
from tests.support.spoil import mend, spoil


def not_found(noun: str, ref: str) -> Refusal:
    return Refusal(code=Code.NOT_FOUND, about=f"{noun}/{ref}", lifted_by=f"see what there is: firm {noun} list")


def ambiguous(noun: str, ref: str, *ids: str) -> Refusal:
    lifted_by = f"say which one by id: {' or '.join(ids)}"
    return Refusal(code=Code.NAME_AMBIGUOUS, about=f"{noun}/{ref}", lifted_by=lifted_by)


def conflict(about: str, current: int) -> Refusal:
    lifted_by = f"it is at version {current}; read it again and decide again"
    return Refusal(code=Code.VERSION_CONFLICT, about=about, lifted_by=lifted_by, current_version=current)


def no_move(about: str, state: str, good: str) -> Refusal:
    lifted_by = f"it is {state}; this is possible while it is {good}"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)


def retired(agent_id: str) -> Refusal:
    lifted_by = "choose another member, or create one"
    return Refusal(code=Code.AGENT_MEMBER_RETIRED, about=f"agent/{agent_id}", lifted_by=lifted_by)


def paused(agent_id: str, version: int) -> Refusal:
    lifted_by = f"the operator resumes it: firm agent resume {agent_id} --expected-version {version}"
    return Refusal(code=Code.AGENT_MEMBER_PAUSED, about=f"agent/{agent_id}", lifted_by=lifted_by)


def in_the_trash(team_id: str, version: int) -> Refusal:
    lifted_by = f"take it out of the trash first: firm team restore {team_id} --expected-version {version}"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"team/{team_id}", lifted_by=lifted_by)


def not_run_by_caller(team_id: str) -> Refusal:
    lifted_by = "the Host of this team or the operator does it"
    return Refusal(code=Code.NOT_AUTHORIZED, about=f"team/{team_id}", lifted_by=lifted_by)


def stale_cursor() -> Refusal:
    lifted_by = "begin again without a cursor; one fits only the query and the store that gave it"
    return Refusal(code=Code.CURSOR_INVALID, about="cursor", lifted_by=lifted_by)


def unreadable(record: str) -> Refusal:
    lifted_by = f"repair it or restore a backup, then: firm node release {record}"
    return Refusal(code=Code.ROW_QUARANTINED, about=record, lifted_by=lifted_by)


async def refused_while_spoilt(node: InProcessNode, request: Request[Any], table: str, record_id: str) -> None:
    """``request`` is refused while the row it needs does not decode, and is not any more once that was lifted."""
    was = spoil(node.store.path, table, record_id)
    refusal = await node.refused(request)
    assert refusal == unreadable(f"{table}/{record_id}")
    mend(node.store.path, table, record_id, was)
    assert not isinstance(await node.follow(refusal), Refusal)
    assert not isinstance(await node.ask(request), Refusal)
