"""The loop of a worker: see what was delivered, start it, run it, submit what came of it, wait for the run to change.

Nothing polls. What a worker knows of an attempt it holds in memory only: one that it finds started and has not run
itself, it blocks and says so, since nobody knows what was done.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from client.git import one_line
from client.protocol.attempt import Binding, HeartbeatWork
from client.protocol.event import WaitForEvent
from client.protocol.ids import Fence, WorkId
from client.protocol.refusals import Code, Refusal
from client.protocol.session import ShowSession
from client.protocol.work import Condition, Phase, Work
from client.protocol.work_asks import BlockWork, ShowWork, StartWork, WorkShown
from client.worker.claims import claim_one
from client.worker.evidence import Evidence, Obstacle, base_of, gather
from client.worker.identity import Me, delivered
from client.worker.link import Link, told
from client.worker.news import APART, news
from client.worker.program import Ended, NotStarted, Program, choose, run
from client.worker.settings import Settings, of_program

#: Seconds before something is looked at again that the daemon could not say, and tells nothing about when it can.
_AGAIN = 10.0
#: After these an attempt is not ours any more, and what came of it is of no use.
_OVER = frozenset({Code.CLAIM_LOST, Code.FENCE_STALE, Code.NOT_FOUND, Code.WORK_NOT_ASSIGNED})
#: These are lifted by somebody else, and the Work then changes.
_LATER = frozenset({Code.VERSION_CONFLICT, Code.WORK_ON_HOLD})
#: Characters of a reason, by its bounds.
_REASON = 4000

_Key = tuple[WorkId, Fence]
_RESTARTED = Obstacle(
    "it was started before this worker was, which has not run its program and does not know whether another did; "
    "look at what was done, then resume it: its program then runs from its beginning"
)


@attrs.define(eq=False)
class Worker:
    """One at a time: ``_left`` is what is left to do for an attempt; None: its program runs once it is resumed."""

    link: Link
    me: Me
    settings: Settings
    say: Callable[[str], None]
    _left: dict[_Key, Evidence | Obstacle | None] = attrs.Factory(dict)
    _bases: dict[WorkId, str | None] = attrs.Factory(dict)
    _last_said: str = ""
    _running: trio.CancelScope | None = None
    _interrupted: bool = False

    async def serve(self) -> None:
        """Until it is cancelled, or ``Gone`` is raised."""
        while True:
            looked = trio.current_time()
            _, seq = await self.link.ask_at(ShowSession(session_id=self.me.session_id))
            found = await delivered(self.link, self.me)
            if isinstance(found, Refusal):
                self._tell(found)
                await trio.sleep(_AGAIN)
                continue
            if not await self._take_one(found):
                if not found and not self.me.hosts and (refused := await claim_one(self.link, self.me)) is not None:
                    self._tell(refused)
                    await trio.sleep(_AGAIN)
                    continue
                if (refused := await news(self.link, self.me, seq)) is not None:
                    self._tell(refused)
                    await trio.sleep(_AGAIN)
                await trio.sleep_until(looked + APART)

    def interrupt(self) -> None:
        """End the program that runs; its Work is then blocked."""
        if self._running is None:
            self.say("nothing runs that could be interrupted")
            return
        self._interrupted = True
        self._running.cancel()

    async def _wait(self, predicate: str) -> None:
        waited = await self.link.ask(WaitForEvent(predicate=predicate, limit=0))
        if isinstance(waited, Refusal):
            self._tell(waited)
            await trio.sleep(_AGAIN)

    def _tell(self, refusal: Refusal) -> None:
        """Once for each refusal: what is asked again at every change is not told again at every change."""
        if (text := told(refusal)) != self._last_said:
            self._last_said = text
            self.say(text)

    async def _take_one(self, found: list[WorkShown]) -> bool:
        """Whether anything came of one of them; then all are looked at again."""
        for shown in found:
            binding = self.me.attempt(shown)
            if binding is not None and await self._take(shown.work, binding):
                return True
        return False

    async def _take(self, work: Work, binding: Binding) -> bool:
        key = (work.id, binding.fence)
        match work.phase, work.condition:
            case Phase.OPEN, Condition.NORMAL:
                return await self._start(work, binding)
            case Phase.ACTIVE, Condition.BLOCKED:
                self._left.setdefault(key, None)
            case Phase.ACTIVE, Condition.NORMAL:
                match self._left.get(key, _RESTARTED):
                    case None:
                        self.say(f"{work.id} was resumed")
                        return await self._run(work, binding)
                    case left:
                        self._left[key] = left
                        return await self._bring(key)
            case _:
                pass  # on hold, or not ours to move
        return False

    async def _start(self, work: Work, binding: Binding) -> bool:
        asked = StartWork(work_id=work.id, expected_version=work.version)
        started = await self.link.ask(asked, key=_key("start", work, binding.fence))
        if isinstance(started, Refusal):
            self._tell(started)
            return False
        return await self._run(started, binding)

    async def _run(self, work: Work, binding: Binding) -> bool:
        """Run the program of a started Work and bring what came of it."""
        key = (work.id, binding.fence)
        self._left[key] = _RESTARTED
        program = choose(work.context, self.settings.command)
        if isinstance(program, NotStarted):
            self._left[key] = Obstacle(program.why)
            return await self._bring(key)
        if work.id not in self._bases:
            self._bases[work.id] = await base_of(self.settings.folder)
        self.say(f"{work.id} attempt {binding.fence}: {one_line(work.title)}: runs {one_line(program.name)}")
        ended = await self._watched(program, work, binding)
        if ended is None:
            said = "it is not ours any more; its program was ended, and nothing is submitted"
            self.say(f"{work.id} attempt {binding.fence}: {said}")
            self._left.pop(key)
            return True
        if isinstance(ended, Ended):
            self.say(f"{work.id} attempt {binding.fence}: {ended.how}")
            done = (program, ended, self.me.author)
            self._left[key] = await gather(self.settings.folder, self._bases[work.id], work, binding.fence, done)
        else:
            self._left[key] = ended
        return await self._bring(key)

    async def _watched(self, program: Program, work: Work, binding: Binding) -> Ended | Obstacle | None:
        """How the program ended; None when the attempt was taken from us meanwhile, and the program with it."""
        log = self.settings.logs / work.id / f"{binding.fence}-{work.version}.log"
        env = of_program(self.settings.environment, work, binding.fence)
        found: list[Ended | NotStarted] = []  # stays empty when the program was ended from here
        self._interrupted = False
        async with trio.open_nursery() as nursery:
            self._running = nursery.cancel_scope
            nursery.start_soon(self._beat, binding, nursery.cancel_scope)
            nursery.start_soon(self._until_stale, work, binding.fence, nursery.cancel_scope)
            found.append(await run(program, env=env, folder=self.settings.folder, log=log))
            nursery.cancel_scope.cancel()
        self._running = None
        for ended in found:
            return Obstacle(ended.why) if isinstance(ended, NotStarted) else ended
        if not self._interrupted:
            return None
        return Obstacle("its program was interrupted at the worker's terminal; what it did until then is still there")

    async def _beat(self, binding: Binding, program: trio.CancelScope) -> None:
        """Three times a lease. The program itself shows whether the attempt is over; this only says that it lives."""
        while True:
            await trio.sleep(binding.lease_ms / 3000)
            beaten = await self.link.ask(HeartbeatWork(work_id=binding.work_id, fence=binding.fence))
            if isinstance(beaten, Refusal) and beaten.code in _OVER and await self._is_over(binding):
                program.cancel()

    async def _is_over(self, binding: Binding) -> bool:
        shown = await self.link.ask(ShowWork(work_id=binding.work_id))
        if isinstance(shown, Refusal):
            return shown.code in _OVER
        return not self.me.may_go_on(shown, binding.fence)

    async def _until_stale(self, work: Work, fence: int, program: trio.CancelScope) -> None:
        version = work.version
        while True:
            await self._wait(f"work:{work.id}.version>{version}")
            shown = await self.link.ask(ShowWork(work_id=work.id))
            if isinstance(shown, Refusal):
                if shown.code in _OVER:
                    program.cancel()
                await trio.sleep(_AGAIN)
                continue
            if not self.me.may_go_on(shown, fence):
                program.cancel()
            version = shown.work.version

    async def _bring(self, key: _Key) -> bool:
        """Bring what is left of an attempt to the daemon: its evidence, or what stands in its way."""
        left = self._left[key]
        assert left is not None, "then its program runs"
        work_id, fence = key
        shown = await self.link.ask(ShowWork(work_id=work_id))
        if isinstance(shown, Refusal):
            self._tell(shown)
            return False
        work = shown.work
        if self.me.attempt(shown) is None or work.phase is not Phase.ACTIVE:
            self.say(f"{work_id} attempt {fence}: it is {work.phase} without this worker; nothing is submitted")
            self._left.pop(key)
            return True
        if work.condition is Condition.BLOCKED:
            self.say(f"{work_id} attempt {fence}: it was blocked while its program ran; it runs again once resumed")
            self._left[key] = None
            return True
        if isinstance(left, Evidence):
            outcome = await self.link.ask(left.request(work), key=_key("submit", work, fence))
            said = f"submitted for review, {'commit ' + left.revision if left.revision else 'a report only'}"
        else:
            blocked = BlockWork(work_id=work_id, expected_version=work.version, reason=left.why[:_REASON])
            outcome = await self.link.ask(blocked, key=_key("block", work, fence))
            said = f"blocked: {one_line(left.why, most=_REASON)}"
        if isinstance(outcome, Refusal):
            return await self._not_taken(key, outcome)
        self.say(f"{work_id} attempt {fence}: {said}")
        if isinstance(left, Evidence):
            self._left.pop(key)
        else:
            self._left[key] = None
        return True

    async def _not_taken(self, key: _Key, refusal: Refusal) -> bool:
        """What a refusal makes of what was brought."""
        self._tell(refusal)
        if refusal.code in _OVER:
            self._left.pop(key)
        elif refusal.code not in _LATER and isinstance(self._left[key], Evidence):
            # Nothing of ours lifts it, and an active Work that stands still would tell nobody why.
            self._left[key] = Obstacle(f"its evidence was refused: {told(refusal)}")
            return True
        return refusal.code is Code.VERSION_CONFLICT


def _key(verb: str, work: Work, fence: int) -> str:
    """Of what is asked, not of who asks: whoever asks the same for this attempt gets the same answer."""
    return f"worker {verb} {work.id} {work.version} {fence}"
