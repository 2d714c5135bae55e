"""What wakes a worker that has nothing to do: a change that may be about a Work, or about itself."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from client.protocol.event import Event, Waited, WaitForEvent
from client.protocol.ids import MembershipId, SessionId, TeamRunId, UnixMs
from client.protocol.operation import R, Request
from client.protocol.refusals import Refusal
from client.worker.identity import Me
from client.worker.link import Link
from client.worker.news import news

ME = Me(
    name="bob",
    agent_id="a",
    membership_id=MembershipId("m"),
    run_id=TeamRunId("r"),
    session_id=SessionId("own"),
)


def changed(seq: int, *streams: str) -> Waited:
    events = [Event(seq=seq, at=UnixMs(0), stream=s, version=1, kind="k", actor="a", body={}) for s in streams]
    return Waited(timed_out=False, events=events, cursor=f"after {seq}")


@attrs.define(eq=False)
class Answering(Link):
    """A link that answers waits one after the other, and keeps what was asked."""

    answers: list[Waited] = attrs.Factory(list)
    asked: list[WaitForEvent] = attrs.Factory(list)

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        await trio.lowlevel.checkpoint()
        assert isinstance(request, WaitForEvent)
        assert not key
        self.asked.append(request)
        answer: Any = self.answers.pop(0)
        return answer  # type: ignore[no-any-return]


async def waits(*answers: Waited) -> list[WaitForEvent]:
    """What a worker asked until it went on; all the answers were taken."""
    said: list[str] = []
    link = Answering("", "", said.append, answers=list(answers))
    assert await news(link, ME, 7) is None
    assert (link.answers, said) == ([], [])
    return link.asked


@pytest.mark.parametrize("stream", ["work/w", "binding/b", "member-run/m", "team-run/r", "session/own", "message/m"])
async def test_what_may_be_about_a_work_or_itself_wakes_it(stream: str) -> None:
    (asked,) = await waits(changed(8, "session/other", stream))
    assert (asked.predicate, asked.cursor) == ("team-run:r.seq>7", "")


async def test_processes_of_others_do_not_and_no_event_is_missed() -> None:
    quiet = changed(9, "session/other", "effect/e", "capability/c")
    asked = await waits(quiet, changed(11, "session/other"), changed(12, "work/w"))
    assert [(each.predicate, each.cursor) for each in asked] == [
        ("team-run:r.seq>7", ""),
        ("team-run:r.seq>9", "after 9"),
        ("team-run:r.seq>11", "after 11"),
    ]


async def test_what_was_true_before_it_was_asked_wakes_it() -> None:
    """Then no events are told, and nobody knows what they were."""
    assert len(await waits(changed(8))) == 1
