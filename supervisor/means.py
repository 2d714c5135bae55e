"""With what processes are started and ended, and what is looked at before and after."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import attrs

from client.protocol.board import Seat
from client.protocol.boundary import Crash, no_crash
from client.protocol.effect import RuntimeEffect
from client.protocol.ids import SessionId
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession
from providers.port import Handle, Launch, NotStarted, Provider, Stopped, Unreachable, Why
from providers.profiles import Place, Profile
from supervisor import transcripts
from supervisor.checks import Checks
from supervisor.folders import Folders
from supervisor.screens import Screens
from supervisor.worktrees import Worktrees

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Means:
    """With what processes are started. ``launcher`` makes the words of our launcher for a launch id."""

    provider: Provider
    ready: Callable[[], Awaitable[object]]  # makes the provider answer, if it can
    folder: Callable[[Seat], Awaitable[Path | Refusal]]  # where the member of a seat works
    launcher: Callable[[str], tuple[str, ...]]
    profiles: Mapping[str, Profile]
    home: str  # the home folder that members get
    folders: Folders
    screens: Screens
    checks: Checks | None = None  # without it, named checks wait
    worktrees: Worktrees | None = None  # without it, nothing is archived
    #: When a session last called, on trio's clock; without it nobody listens, and what a cycle came to is not known.
    heard: Callable[[SessionId], float] | None = None
    crash: Crash = no_crash  # ends this process at a boundary of an effect, for tests

    def transcript(self, profile: str, native_id: str, cwd: str) -> Path | None:
        """Where the program of a member that works in ``cwd`` keeps that conversation; None where it keeps none."""
        native = self.profiles[profile].native if profile in self.profiles else None
        return native.file(native_id, cwd=cwd, home=self.home) if native and native_id else None


async def goes_on(means: Means, seat: Seat, session: AgentSession, folder: Path | Refusal) -> bool | Refusal:
    """Whether a launch goes on with the conversation of its session, or why there is none. One that the session began
    itself is there where an earlier launch of it came so far.
    """
    if isinstance(folder, Refusal):
        return folder
    path = means.transcript(session.profile, session.native_session, str(folder))
    there = await transcripts.found(path)
    needed = session.resumed_from is not None
    return transcripts.missing(session, seat.agent_name, path) if needed and not there else there


async def give(means: Means, session: AgentSession, effect: RuntimeEffect) -> str:
    """Put the files of its profile into the session's own folder; why they are not there."""
    profile = means.profiles.get(session.profile)
    if profile is None:  # it was there when the session was opened
        return f"there is no profile {session.profile!r}"
    place = Place(effect.cwd, str(means.folders.of(effect.session_id)))
    try:
        await means.folders.give(effect.session_id, place.files(profile))
    except OSError as error:
        return f"files of its profile cannot be written: {error}"
    return ""


async def start(means: Means, effect: RuntimeEffect) -> Handle | NotStarted:
    """Start a launch. Where the answer is lost it is asked for once more: the same id is the same terminal, and whoever
    has begun in it waits at the door until its process is known.
    """
    wanted = Launch(launch_id=effect.id, argv=means.launcher(effect.id), cwd=effect.cwd)
    await means.ready()
    found = await means.provider.start(wanted)
    if isinstance(found, NotStarted) and found.why is Why.UNREACHABLE:
        await means.ready()
        found = await means.provider.start(wanted)
    return found


async def end(means: Means, handle: Handle, session_id: SessionId) -> Stopped | Unreachable:
    """End all of a launch. Once that is proven, nobody needs its session's folder any more."""
    stopped = await means.provider.stop(handle)
    if not isinstance(stopped, Unreachable) and not stopped.left:
        await means.folders.drop(session_id)
    return stopped


async def cleared(means: Means, seat: Seat) -> bool:
    """Whether nothing of the former launch is left. Whoever followed it may have died before it had ended that."""
    launch, former = seat.launch, handle_of(seat.launch)
    if launch is None or former is None:
        return True
    stopped = await end(means, former, launch.session_id)
    if isinstance(stopped, Unreachable):
        # Only where it does not answer: one that was closed is not begun again for what has ended with it.
        await means.ready()
        stopped = await end(means, former, launch.session_id)
    if not isinstance(stopped, Unreachable) and not stopped.left:
        return True
    log.warning("%s waits for the end of launch=%s: %s", seat.agent_name, former.launch_id, stopped)
    return False


def handle_of(launch: RuntimeEffect | None) -> Handle | None:
    """What a launch started; None where there was none, or nobody recorded that."""
    if launch is None or not launch.pid:
        return None
    return Handle(
        launch_id=launch.id,
        pane=launch.pane,
        pid=launch.pid,
        start_ticks=launch.start_ticks,
        boot_id=launch.boot_id,
    )
