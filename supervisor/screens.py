"""What a terminal showed last, once its process has ended: a diagnostic for a person, kept for seven days.

Plain text in private files, with what is known to be secret masked. Nothing parses it again, and no database, event or
log has it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import attrs
import trio

from client.protocol.ids import SessionId, UnixMs
from client.protocol.session import AgentSession
from providers.screen import last_lines, plain
from supervisor.folders import write

log = logging.getLogger(__name__)

#: Milliseconds for which one is kept, and how many are at most: the newest.
KEPT, MOST = 7 * 86_400_000, 500
#: What is told of an end before it is known how: the last screen is read and kept between the two.
UNREAD = "how it ended is not read yet"
#: Seconds that writing one may take: a disk that hangs must not keep the end of a process from being told.
_WRITE_SECONDS = 2.0
#: What stands where a secret stood.
MASK = "***"
#: Characters of a secret that are masked also where the others are cut off; and of the shortest that is one: whatever
#: is shorter would be found everywhere.
_PART, _LEAST = 12, 6
#: Names of variables whose values are taken for secret.
_SECRET = re.compile(
    r"TOKEN|SECRET|PASS(?:WORD|WD|PHRASE|CODE)|CREDENTIAL|CREDS|COOKIE|CAPABILITY|AUTH(?!OR(?!IZATION))"
    r"|(?:^|_)PASS(?:_|$)|_PWD(?:_|$)|(?:^|_|API|ACCESS|PRIVATE)KEYS?(?:_|$)"
)


@attrs.frozen
class Last:
    """``at`` is when it was kept."""

    text: str
    at: UnixMs


@attrs.frozen
class Screens:
    """One file for each session and generation in ``base``, as old as the disk says by the clock of ``now``.
    ``secrets`` are the node's own.
    """

    base: Path
    now: Callable[[], UnixMs]
    secrets: tuple[str, ...] = ()

    def of(self, session: AgentSession) -> Path:
        return self.base / f"{session.id}.{session.session_gen}"

    async def keep(self, session: AgentSession, screen: str, secrets: Iterable[str]) -> None:
        """In the place of an earlier one of the same session. A blank one is none. What is too old goes."""
        known = [*self.secrets, *secrets]
        with trio.move_on_after(_WRITE_SECONDS) as late:
            await trio.to_thread.run_sync(self._keep, self.of(session), screen, known, abandon_on_cancel=True)
        if late.cancelled_caught:
            log.warning("the last screen of session=%s is not written within %g s", session.id, _WRITE_SECONDS)

    async def last(self, session: AgentSession) -> Last | None:
        return await trio.to_thread.run_sync(self._last, self.of(session))

    async def sweep(self, stays: Callable[[Collection[SessionId]], Collection[SessionId]]) -> None:
        """Remove what is too old, and what is of no session that ``stays``."""
        there = await trio.to_thread.run_sync(self._tidy)
        whole = [path for path in there if not path.name.startswith(".")]  # the others may be being written
        stay = stays({SessionId(path.stem) for path in whole})
        await trio.to_thread.run_sync(_remove, [path for path in whole if path.stem not in stay])

    def _keep(self, path: Path, screen: str, secrets: Iterable[str]) -> None:
        text = last_lines(masked(screen, secrets))
        if text.strip():
            try:
                write(self.base, path.name, text, Path.replace)
            except OSError as error:
                log.warning("the last screen of session=%s cannot be kept: %s", path.stem, error)
        self._tidy()

    def _last(self, path: Path) -> Last | None:
        at = _modified(path)
        if self._old(at):
            return None
        try:
            return Last(path.read_text("utf-8", "replace"), at)
        except OSError as error:
            log.warning("the last screen at %s cannot be read: %s", path, error)
            return None

    def _tidy(self) -> list[Path]:
        """What is left once everything went that is too old or too much."""
        try:
            there = sorted(((_modified(path), path) for path in self.base.iterdir()), reverse=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("last screens cannot be looked through: %s", error)
            return []
        _remove([path for number, (at, path) in enumerate(there) if number >= MOST or self._old(at)])
        return [path for at, path in there[:MOST] if not self._old(at)]

    def _old(self, at: UnixMs) -> bool:
        return self.now() - at > KEPT


def values(environment: Mapping[str, str]) -> list[str]:
    """Those of variables whose names say that they are secret."""
    return [value for name, value in environment.items() if _SECRET.search(name.upper())]


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text, without control characters and without the secrets: also where one is broken over several lines, or
    only a part of it is shown.
    """
    text = plain(text)
    where = [at for at, char in enumerate(text) if not char.isspace()]
    dense = "".join(text[at] for at in where)
    parts: dict[int, set[str]] = {}
    for secret in ("".join(plain(each).split()) for each in secrets):
        if (size := min(len(secret), _PART)) >= _LEAST:
            parts.setdefault(size, set()).update(secret[at : at + size] for at in range(len(secret) - size + 1))
    hidden: set[int] = set()
    for size, known in parts.items():
        for begin in range(len(dense) - size + 1):
            if dense[begin : begin + size] in known:
                hidden.update(where[begin : begin + size])
    return re.sub("\0+", MASK, "".join("\0" if at in hidden else char for at, char in enumerate(text)))


def _modified(path: Path) -> UnixMs:
    """When; long ago where there is none."""
    try:
        return UnixMs(path.lstat().st_mtime_ns // 1_000_000)
    except OSError:
        return UnixMs(0)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the last screen at %s cannot be removed: %s", path, error)
