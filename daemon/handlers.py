"""Which function answers which operation. Data; a test holds it equal to the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from client.protocol.project import AddProject
from client.protocol.refusals import Refusal
from client.protocol.team import CreateTeam
from daemon.call import Call
from daemon.operations import agent, event, membership, project, quarantine, team
from store.tx import Tx

Handler = Callable[[Tx, Call, Any], Any]
Guard = Callable[[Tx, Call, Any], Refusal | None]

#: Operations answered out of the database, inside one read or one unit of work.
HANDLERS: Mapping[str, Handler] = {
    "agent.create": agent.create,
    "agent.list": agent.list_,
    "agent.pause": agent.pause,
    "agent.resume": agent.resume,
    "agent.retire": agent.retire,
    "agent.show": agent.show,
    "agent.update": agent.update,
    "event.list": event.list_,
    "membership.invite": membership.invite,
    "membership.join": membership.join,
    "membership.leave": membership.leave,
    "membership.list": membership.list_,
    "membership.show": membership.show,
    "node.quarantine": quarantine.list_,
    "node.release": quarantine.release,
    "project.add": project.add,
    "project.list": project.list_,
    "project.show": project.show,
    "team.activate": team.activate,
    "team.create": team.create,
    "team.deactivate": team.deactivate,
    "team.hand-over": team.hand_over,
    "team.list": team.list_,
    "team.restore": team.restore,
    "team.show": team.show,
    "team.trash": team.trash,
    "team.update": team.update,
}

#: Who may do what, beyond the plane. Operations that only one plane has need no entry.
GUARDS: Mapping[str, Guard] = {
    "membership.invite": membership.may_invite,
    "membership.join": membership.may_join,
    "membership.leave": membership.may_leave,
    "team.deactivate": team.may,
    "team.hand-over": team.may,
    "team.update": team.may,
}


def _root(ask: AddProject) -> str:
    return ask.root


def _project(ask: CreateTeam) -> str:
    return ask.project


#: Operations that need a folder looked at before their unit begins, and which one.
FOLDERS: Mapping[str, Callable[[Any], str]] = {"project.add": _root, "team.create": _project}
