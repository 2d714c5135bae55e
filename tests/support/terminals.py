"""Programs that run in terminals, where tests of providers look for what is left of them, and a tmux in a folder."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import trio

from providers.port import Handle, Launch, Provider, Typing, Unreachable
from providers.process import MARK, Process, process
from providers.tmux.provider import Opened, Tmux

T = TypeVar("T")

QUICK = Typing(before_enter=0.1, settle=0.4)

#: Prints what it was sent, line by line, as a program with a composer does: without echo, Enter empties the line.
COMPOSER = """
import os, sys, termios, tty
tty.setraw(0)
swallow = int(sys.argv[1])
line = b""
os.write(1, b"\\x1b[?2004hready\\r\\n")
while True:
    for byte in os.read(0, 4096):
        if byte != 13 or (line.endswith(b"\\x1b[200~") or b"\\x1b[200~" in line and b"\\x1b[201~" not in line):
            line += bytes([byte]); os.write(1, bytes([byte]) if byte >= 32 else b"."); continue
        if swallow:
            swallow -= 1; continue
        text = line.replace(b"\\x1b[200~", b"").replace(b"\\x1b[201~", b"").replace(b"\\r", b"/")
        os.write(1, b"\\r\\ntook <" + text + b">\\r\\n"); line = b""
"""

#: A member with a composer: when it begins it writes its launch and pid to the file ``ran`` of a folder, and what it
#: took to ``took``, a line each; then it runs the program ``does`` that stands there, if one does, as an agent runs
#: commands. Before and after that it runs ``hook`` there with the name of the event and the number of the turn, as an
#: agent runs its hooks. What it runs finds its last word, the id of its conversation where it keeps one, as NATIVE. The
#: interrupt key empties its line. The second word is how many Enters it swallows, the third what its composer shows
#: before a line. For each line ``TEXT -> KEY`` of the file ``asks`` it begins with a dialog that this key ends; what is
#: pressed there it writes to ``pressed``. It asks nothing in a folder that the JSON file of its environment's
#: MEMBER_TRUSTS has among its values. With a file ``silent`` its screen shows nothing of what it takes.
MEMBER = """
import json, os, subprocess, sys, termios, tty
tty.setraw(0)
folder, swallow, prompt = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
with open(folder + "/ran", "a") as log: log.write(os.environ.get("FIRM_LAUNCH_ID", "-") + f" {os.getpid()}\\n")
trusts = json.load(open(os.environ["MEMBER_TRUSTS"])) if "MEMBER_TRUSTS" in os.environ else {}
asks = os.path.exists(folder + "/asks") and os.getcwd() not in trusts.values()
for row in open(folder + "/asks").read().splitlines() if asks else []:
    text, key = row.rsplit(" -> ", 1)
    os.write(1, b"\\x1b[2J\\x1b[H" + text.replace("|", "\\r\\n").encode() + b"\\r\\n")
    pressed = b""
    while pressed != key.encode():
        pressed = os.read(0, 1)
        with open(folder + "/pressed", "ab") as log: log.write(pressed)
    os.write(1, b"\\x1b[2J\\x1b[H")
line, turn = b"", 0
os.environ["NATIVE"] = sys.argv[-1]
def hook(event):
    if os.path.exists(folder + "/hook"): subprocess.run([folder + "/hook", event, str(turn)])
os.write(1, b"\\x1b[?2004hready\\r\\n" + prompt)
while True:
    for byte in os.read(0, 4096):
        if byte == 3:
            line = b""; os.write(1, b"\\r\\n" + prompt); continue
        if byte != 13 or (line.endswith(b"\\x1b[200~") or b"\\x1b[200~" in line and b"\\x1b[201~" not in line):
            line += bytes([byte]); os.write(1, bytes([byte]) if byte >= 32 else b"."); continue
        if swallow:
            swallow -= 1; continue
        text = line.replace(b"\\x1b[200~", b"").replace(b"\\x1b[201~", b"").replace(b"\\r", b"/")
        line = b""
        turn += 1
        with open(folder + "/took", "ab") as log: log.write(text + b"\\n")
        silent = os.path.exists(folder + "/silent")
        os.write(1, b"" if silent else b"\\r\\ntook it\\r\\n")
        hook("Begin")
        if os.path.exists(folder + "/does"):
            with open(folder + "/did", "ab") as log: subprocess.run(folder + "/does", input=text, stdout=log)
        hook("Stop")
        os.write(1, b"" if silent else b"\\r\\n" + prompt)
"""

#: The same, with a conversation that it keeps in a folder of its own by the id that it was given: ``took`` is its
#: transcript, which comes with the first text. It begins none that is there, and goes on with none that is not.
KEEPER = (
    """
import os, sys
way, own = sys.argv[4], sys.argv[1] + "/" + sys.argv[5]
if os.path.exists(own + "/took") != (way == "--resume"):
    sys.exit("no: " + way)
os.makedirs(own, exist_ok=True)
sys.argv[1] = own
"""
    + MEMBER
)

#: A child in a session of its own whose parents are gone; its pid goes to a file.
STRAY = """
import os, sys, signal, time
stubborn = sys.argv[2] == "stubborn"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if stubborn: signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        open(sys.argv[1] + ".part", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        while True: signal.pause()
    os._exit(0)
os.wait()
while True: signal.pause()
"""

#: A stray that starts another one when it is asked to end, which then does not heed the asking.
PHOENIX = """
import os, sys, signal
def again(number, frame):
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell(sys.argv[2])
def tell(path):
    open(path + ".part", "w").write(str(os.getpid()))
    os.rename(path + ".part", path)
    while True: signal.pause()
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, again)
    tell(sys.argv[1])
while True: signal.pause()
"""


def launch(folder: Path, *words: str, launch_id: str = "", env: Mapping[str, str] | None = None) -> Launch:
    """A launch of these words. The mark is set as the launcher sets it, unless ``env`` says what to set."""
    launch_id = launch_id or secrets.token_hex(8)
    marks = [f"{name}={value}" for name, value in (env if env is not None else {MARK: launch_id}).items()]
    return Launch(launch_id=launch_id, argv=("/usr/bin/env", *marks, *words, launch_id), cwd=str(folder))


def shell(folder: Path, script: str) -> Launch:
    return launch(folder, "/bin/sh", "-c", script)


def python(folder: Path, program: str, *words: str, env: Mapping[str, str] | None = None) -> Launch:
    return launch(folder, sys.executable, "-I", "-S", "-c", program, *words, env=env)


async def started(provider: Provider, wanted: Launch) -> Handle:
    found = await provider.start(wanted)
    assert isinstance(found, Handle), found
    return found


async def until(look: Callable[[], Awaitable[T]], *, within: float = 10.0) -> T:
    """The first answer that is true."""
    with trio.fail_after(within):
        while not (found := await look()):  # noqa: ASYNC110 — of other processes; nothing tells
            await trio.lowlevel.checkpoint()
    return found


async def shown(provider: Provider, handle: Handle, text: str) -> str:
    """The screen, once it shows that text."""

    async def look() -> str:
        screen = await provider.capture(handle)
        assert not isinstance(screen, Unreachable), screen
        return screen if text in screen else ""

    return await until(look)


async def written(path: Path) -> Process:
    """The process whose number a program writes to that file."""
    await until(trio.Path(path).exists)
    found = process(int(await trio.Path(path).read_text()))
    assert found is not None
    return found


@asynccontextmanager
async def tmux_in(folder: Path | None = None) -> AsyncIterator[Tmux]:
    """An open tmux provider in a short folder, and nothing of it afterwards, however the test ended."""
    place = folder or Path(tempfile.mkdtemp(prefix="firm-")) / "t"
    provider = Tmux(place)
    try:
        assert isinstance(await provider.open(), Opened)
        yield provider
    finally:
        with trio.fail_after(30) as scope:
            scope.shield = True
            left = await provider.close()
            assert not left_over(place), "the tmux server or what is below it is still there"
            assert not isinstance(left, Unreachable), left
            assert left.left == ()
        shutil.rmtree(place.parent if folder is None else place, ignore_errors=True)


def left_over(place: Path) -> list[int]:
    """Processes that name this folder in their command, but for this one."""
    named = str(place)
    found: list[int] = []
    for each in psutil.process_iter(["cmdline"]):
        words = each.info["cmdline"] or []
        if each.pid != os.getpid() and any(word.startswith(named) for word in words):
            found.append(each.pid)
    return found
