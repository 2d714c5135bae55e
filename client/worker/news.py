"""What wakes a worker that has nothing to do: a change of its run that may be about a Work, or about itself."""

from __future__ import annotations

from client.protocol.event import WaitForEvent
from client.protocol.refusals import Refusal
from client.worker.identity import Me
from client.worker.link import Link

#: Seconds from one look to the next at least: what happens meanwhile is looked at once for all of it. Whatever happens
#: in a run at rest is looked at immediately.
APART = 0.1


async def news(link: Link, me: Me, seq: int) -> Refusal | None:
    """Wait until the run changed behind ``seq`` in more than the processes of others: of a run that begins, or loses
    many of them, each would wake all.
    """
    cursor = ""
    while True:
        waited = await link.ask(WaitForEvent(predicate=f"team-run:{me.run_id}.seq>{seq}", cursor=cursor))
        if isinstance(waited, Refusal):
            return waited
        if not waited.events or not all(_of_others(each.stream, me) for each in waited.events):
            return None  # without events it was true before it was asked: nobody knows by what
        seq, cursor = waited.events[-1].seq, waited.cursor


def _of_others(stream: str, me: Me) -> bool:
    """Whether a change of that record is one of other members' processes, which says nothing of any Work."""
    noun, _, record_id = stream.partition("/")
    return noun in {"capability", "effect"} or (noun == "session" and record_id != me.session_id)
