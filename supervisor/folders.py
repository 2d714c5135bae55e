"""The folder of a session: what its program is given as files. Private, and gone with the session's process."""

from __future__ import annotations

import contextlib
import logging
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import trio

from client.protocol.ids import SessionId

log = logging.getLogger(__name__)


@attrs.frozen
class Folders:
    """One folder for each session below ``base``. Files in them are 0600, and are there whole or not at all."""

    base: Path

    def of(self, session_id: SessionId) -> Path:
        return self.base / session_id

    async def give(self, session_id: SessionId, files: Mapping[str, str]) -> None:
        """What a profile has for the program, by relative path. What is there already stays: a program may have changed
        it since. Raises ``OSError``.
        """
        for name, text in files.items():
            await trio.to_thread.run_sync(write, self.of(session_id), name, text, _once)

    async def tell(self, session_id: SessionId, name: str, text: str) -> Path:
        """A text that is too long to be typed. Raises ``OSError``."""
        return await trio.to_thread.run_sync(write, self.of(session_id), f"told/{name}", text, Path.replace)

    async def drop(self, session_id: SessionId) -> None:
        """Once nothing of the session's process is left."""
        try:
            await trio.to_thread.run_sync(shutil.rmtree, self.of(session_id))
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("the folder of session=%s cannot be removed: %s", session_id, error)


def write(folder: Path, name: str, text: str, put: Callable[[Path, Path], object]) -> Path:
    """A private file below ``folder``, there whole or not at all: ``put`` gives what is written its name. Raises
    ``OSError``.
    """
    path = folder / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    for each in (folder, *reversed([above for above in path.parents if folder in above.parents])):
        each.mkdir(mode=0o700, exist_ok=True)  # ``parents`` would leave those above to the umask
    part = path.with_name(f".{secrets.token_hex(6)}")
    try:
        part.touch(mode=0o600, exist_ok=False)
        part.write_text(text, "utf-8", errors="replace")
        put(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _once(part: Path, path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(part)
