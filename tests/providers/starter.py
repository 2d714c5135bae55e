"""Opens the tmux of a folder in a process of its own, starts one terminal, says what it has, and waits to be killed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import trio

from providers.port import Handle, Launch
from providers.tmux.provider import Opened, Tmux


async def main(folder: str, launch_id: str) -> None:
    tmux = Tmux(Path(folder))
    opened = await tmux.open()
    assert isinstance(opened, Opened), opened
    handle = None
    if launch_id:
        handle = await tmux.start(
            Launch(launch_id=launch_id, argv=("/bin/sh", "-c", "echo mine; read x", launch_id), cwd="/")
        )
        assert isinstance(handle, Handle), handle
    said = {"server": opened.server.pid, "adopted": opened.adopted, "handle": handle and attrs.asdict(handle)}
    print(json.dumps(said), flush=True)  # noqa: T201 — what the test reads
    await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
