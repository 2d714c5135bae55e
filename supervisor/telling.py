"""What members are told at their terminals: typed once, read back, settled; and how the cycle ends that it begins."""

from __future__ import annotations

import enum
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import trio

from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, EffectKind, RuntimeEffect, ShowWords
from client.protocol.event import WaitForEvent
from client.protocol.session import AgentSession, Ending, ReportSession, SessionCause, SessionState, ShowSession
from providers.port import Delivered, Handle, Taken, Typing, Unreachable
from providers.process import Process
from providers.records import Reading
from providers.screen import plain
from supervisor.decide import Control, Watch
from supervisor.desk import Desk, lasting
from supervisor.means import handle_of
from supervisor.wake import ending, recorded

log = logging.getLogger(__name__)

#: Seconds before a provider that does not answer is asked again: what was typed is not typed again.
_AGAIN = 10.0
#: Characters of a text in a file that are typed too.
_MOST_OF_IT = 200
#: A wait without news ends after this and is begun again; nothing depends on its length.
_WAIT_MS = 600_000

_CERTAINTY = {
    Taken.SUBMITTED: Certainty.APPLIED,
    Taken.HELD: Certainty.NOT_APPLIED,
    Taken.GONE: Certainty.NOT_APPLIED,
    Taken.UNSUBMITTED: Certainty.UNKNOWN,
}


async def tell(desk: Desk, action: Control) -> None:
    """Type what waits for a member, or what it is steered with, once, whoever began with it. While something holds what
    waits, the terminal is busy; a steer is for now or not at all.
    """
    effect, handle, typing = action.effect, handle_of(action.launch), action.typing
    if handle is None or typing is None:
        await desk.settle(effect, Certainty.NOT_APPLIED, "gone: nobody is there who could be told")
        return
    shown = await desk.ask(ShowWords(effect_id=effect.id, sup_gen=desk.sup_gen))
    if shown is None:  # settled by somebody, or what it tells of cannot be read now
        await trio.sleep(_AGAIN)
        return
    if shown.held:
        await desk.settle(effect, Certainty.NOT_APPLIED, f"{Taken.HELD.value}: {shown.held}")
        return
    try:
        text = await _typable(desk, effect, shown.text, typing)
    except OSError as error:
        why = f"it is too long to be typed, and no file can be written: {error}"
        await desk.settle(effect, Certainty.NOT_APPLIED, f"{Taken.HELD.value}: {why}")
        await trio.sleep(_AGAIN)  # nothing tells when a disk works again
        return
    await desk.records.begin(effect.session_id)
    began = trio.current_time()  # a quick one has answered before it is seen that it took the text
    said = await _typed(desk, handle, text, typing, effect)
    desk.means.crash(Boundary(f"{effect.kind.value}-done"))
    if said.taken is Taken.UNSUBMITTED and effect.kind is EffectKind.DELIVER and await _heard(desk, effect):
        said = attrs.evolve(said, taken=Taken.SUBMITTED, reason="a hook told of its turn")
    if said.taken is Taken.SUBMITTED and effect.kind is EffectKind.DELIVER and not said.earlier:
        desk.began[effect.session_id] = began
        desk.interrupted.discard(effect.session_id)
    await desk.settle(effect, _CERTAINTY[said.taken], f"{said.taken.value}: {said.reason}".removesuffix(": "))
    desk.means.crash(Boundary(f"{effect.kind.value}-settled"))
    if said.taken is Taken.HELD and effect.kind is EffectKind.DELIVER:
        await desk.means.provider.clear(handle, typing, said.reason)


async def _typable(desk: Desk, effect: RuntimeEffect, text: str, typing: Typing) -> str:
    """The text, or where it is longer than its program takes in whole, the name of the file in which it is."""
    if len(text.encode("utf-8", "replace")) <= typing.file_above:
        return text
    path = await desk.means.folders.tell(effect.session_id, f"{effect.id}.txt", plain(text))
    begins = text.split("\n", 1)[0][:_MOST_OF_IT]
    return f"Too long to be typed: read the file {path}, and do what it says.\nIt begins: {begins}"


async def _typed(desk: Desk, handle: Handle, text: str, typing: Typing, effect: RuntimeEffect) -> Delivered:
    ours = False  # whether an earlier call that pressed Enter may have been one of these
    while True:
        said = await desk.means.provider.deliver(handle, text, typing, effect.id)
        if not isinstance(said, Unreachable):
            return attrs.evolve(said, earlier=said.earlier and not ours)
        ours = True
        log.warning("cannot type to session=%s: %s", effect.session_id, said.detail)
        await trio.sleep(_AGAIN)
        await desk.means.ready()


async def _heard(desk: Desk, effect: RuntimeEffect) -> bool:
    """Whether its program has told of a turn since that was to be typed: it took it, whatever its screen shows."""
    shown = await desk.ask(ShowSession(session_id=effect.session_id))
    return shown is not None and max(shown.session.turn_begun, shown.session.turn_ended) > effect.after_turn


async def watch(desk: Desk, action: Watch) -> None:
    """Wait until a cycle is over, and report how it ended. One whose process has ended, or is being ended, is reported
    by who sees to that.
    """
    session, handle = action.session, handle_of(action.launch)
    assert handle is not None, "a cycle begins with a text that was typed to a process"
    await desk.means.ready()
    over = await _over(desk, action, handle)
    if over is _Over.NO or session.id in desk.stopping or not Process(handle.pid, handle.start_ticks).lives():
        return
    said, began = await desk.records.since(session.id), desk.began.get(session.id)
    seen = recorded(said) | ({Ending.INTERRUPTED_BY_HOST} if session.id in desk.interrupted else set())
    if over is _Over.TOLD and began is not None and desk.means.heard is not None:
        seen.add(Ending.COMPLETED if desk.means.heard(session.id) >= began else Ending.EMPTY_OUTPUT)
    await _conclude(desk, session, ending(seen), said)


class _Over(enum.Enum):
    """Whether a cycle is over, and not its session with it: not, or whose word counts says so, or its terminal rests
    where hooks were to say so.
    """

    NO = "no"
    TOLD = "told"
    UNTOLD = "untold"


async def _over(desk: Desk, action: Watch, handle: Handle) -> _Over:
    """By the word of its hooks, where it has any; by a quiet terminal where none of them was ever heard, and where no
    word of an end may come: after an interrupt, after a failure that is recorded, and where a daemon was not there from
    the beginning. Where a word was to come it may have been lost: then by a terminal that is quiet and rests.
    """
    session, typing, provider = action.session, action.typing, desk.means.provider
    if not action.hooks:
        await provider.quiet(handle, typing.quiet)
        return _Over.TOLD
    shows = _Shows.NEWS
    while True:
        shown = await desk.ask(ShowSession(session_id=session.id))
        if shown is None or shown.session.state is not SessionState.ACTIVE:
            return _Over.NO
        of = shown.session
        if of.turn_ended > action.after_turn:
            return _Over.TOLD
        if shows is not _Shows.NEWS:
            spoke, known = max(of.turn_begun, of.turn_ended) > 0, session.id in desk.began
            failed = recorded(await desk.records.since(session.id))
            if not spoke or not known or failed or session.id in desk.interrupted:
                return _Over.TOLD
        match shows:
            case _Shows.NEWS:
                shows = await _first_of(desk, of, _Shows.QUIET, partial(provider.quiet, handle, typing.quiet))
            case _Shows.QUIET:
                rests = partial(provider.quiet, handle, typing.quiet, typing) if typing.rests else trio.sleep_forever
                shows = await _first_of(desk, of, _Shows.REST, rests)
            case _Shows.REST:
                return _Over.UNTOLD


class _Shows(enum.Enum):
    """What was seen last of a member: it said something, or its terminal was quiet, or rested."""

    NEWS = "news"
    QUIET = "quiet"
    REST = "rest"


async def _first_of(desk: Desk, of: AgentSession, shows: _Shows, seen: Callable[[], Awaitable[None]]) -> _Shows:
    """Wait for the next word of a member, or for what its terminal ``shows``, whichever comes first."""
    first, prod = _Shows.NEWS, desk.prods.setdefault(of.id, trio.Event())
    async with trio.open_nursery() as any_of_them:

        async def news() -> None:
            changed = f"session:{of.id}.version>{of.version}"
            await lasting(desk.node, WaitForEvent(predicate=changed, timeout_ms=_WAIT_MS, limit=0))
            any_of_them.cancel_scope.cancel(reason="it said something")

        async def terminal() -> None:
            nonlocal first
            await seen()
            first = shows
            any_of_them.cancel_scope.cancel(reason="it shows it")

        any_of_them.start_soon(news)
        any_of_them.start_soon(terminal)
        await prod.wait()
        any_of_them.cancel_scope.cancel(reason="it was interrupted")
    return first


async def concluded(desk: Desk, effect: RuntimeEffect) -> None:
    """A process is about to be ended: what its records say of a cycle that failed comes before that end."""
    shown = await desk.ask(ShowSession(session_id=effect.session_id))
    said = await desk.records.since(effect.session_id)
    if shown is None or shown.session.state is not SessionState.ACTIVE or said is None or said.failure is None:
        return
    await _conclude(desk, shown.session, Ending.PROVIDER_FAILED, said)


async def _conclude(desk: Desk, session: AgentSession, how: Ending, said: Reading | None) -> None:
    failed = said is not None and how is Ending.PROVIDER_FAILED
    asked = ReportSession(
        session_id=session.id,
        session_gen=session.session_gen,
        sup_gen=desk.sup_gen,
        cause=SessionCause.CYCLE_ENDED,
        ending=how,
        failure=said.failure if said is not None and failed else None,
        capacity=said.capacity if said is not None else None,
        capacity_source=said.source[:200] if said is not None else "",
    )
    if await desk.ask(asked) is not None:
        desk.began.pop(session.id, None)
        desk.interrupted.discard(session.id)
        desk.prods.pop(session.id, None)
