"""Events: what was committed, in the order it was committed. Waiting and watching. Records, requests, rows."""

from __future__ import annotations

from typing import Annotated, Any

import attrs

from client.protocol.ids import UnixMs
from client.protocol.operation import OPERATOR, READERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, PAGE, Bounds


@attrs.frozen(kw_only=True)
class Event:
    """One change of one record. ``seq`` orders everything this database committed."""

    seq: int
    at: UnixMs
    stream: str  # "<noun>/<id>"
    version: int  # of the record, after the change
    kind: str
    actor: str
    body: dict[str, Any]  # the fields that changed, with their new values


@attrs.frozen(kw_only=True)
class EventPage:
    """``cursor`` continues after the last event looked at, also when none fitted."""

    items: list[Event]
    cursor: str


@attrs.frozen(kw_only=True)
class Waited:
    """Whether the predicate came true before the deadline, what was committed meanwhile, where to go on."""

    timed_out: bool
    events: list[Event]
    cursor: str


@attrs.frozen(kw_only=True)
class ListEvents(Request[EventPage]):
    """List events, oldest first."""

    stream: Annotated[str, "only of this record, as noun/id", Bounds(most=200, line=True)] = ""
    team_run_id: Annotated[str, "only of this run", Bounds(most=200, line=True)] = ""
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class WaitForEvent(Request[Waited]):
    """Wait until something is true, such as team:ID.state=active or seq>41."""

    predicate: Annotated[str, "NOUN:ID.FIELD=VALUE, NOUN:ID.version>N, team-run:ID.seq>N, inbox, or seq>N", ID]
    timeout_ms: Annotated[int, "give up after this long, in milliseconds", Bounds(least=0, most=86_400_000)] = 600_000
    cursor: Annotated[str, "answer with the events after this point", Bounds(most=500)] = ""
    limit: Annotated[int, "at most so many events; 0 for who only wants to know", Bounds(least=0, most=500)] = 500


@attrs.frozen(kw_only=True)
class WatchEvents(Request[EventPage]):
    """Follow events as they are committed, until cancelled."""

    stream: Annotated[str, "only of this record, as noun/id", Bounds(most=200, line=True)] = ""
    team_run_id: Annotated[str, "only of this run", Bounds(most=200, line=True)] = ""
    cursor: Annotated[str, "begin after this point; without one, with the next event", Bounds(most=500)] = ""


OPERATIONS = (
    Operation("event.list", ListEvents, planes=OPERATOR, effect=Effect.READ, refuses=(Code.CURSOR_INVALID,)),
    Operation(
        "event.wait",
        WaitForEvent,
        planes=READERS,
        effect=Effect.LIVE,
        refuses=(Code.CURSOR_INVALID, Code.NOT_FOUND, Code.ROW_QUARANTINED),
    ),
    Operation("event.watch", WatchEvents, planes=OPERATOR, effect=Effect.STREAM, refuses=(Code.CURSOR_INVALID,)),
)
