"""The first process of a terminal: asks the daemon what it is to become, and becomes that.

Run as ``python -I -S /abs/launcher.py SOCKET LAUNCH_ID``. What stands in argv is seen by everybody on the machine, so
it is only that; the program, its environment and its folder come through the socket. It keeps asking for a while,
since the daemon may be starting again. Standard library only, and little of it: every launch waits for this file.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs every launch the import of enum
import _socket
import errno
import os
import select
import sys
import time

COMM = "firm-launch"
PROTOCOL = 1
_ASK_FOR = 10.0  # seconds in which the daemon may be away
_ANSWER_WITHIN = 30.0
_AGAIN_AFTER_MS = 50
_LARGEST = 16 * 1024 * 1024
REFUSED, FAILED = 126, 127


class NoAnswer(Exception):
    """Nobody listens, or who listened went away."""


# --- msgpack, as much of it as a hello needs -------------------------------------------------------------------------


def pack(value: object) -> bytes:
    """Maps, strings, ints, bools and nil; always in the widest form, which every reader takes."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + value.to_bytes(8, "big", signed=True)
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        return b"\xdb" + len(raw).to_bytes(4, "big") + raw
    if isinstance(value, dict):
        parts = [pack(part) for pair in value.items() for part in pair]
        return b"\xdf" + len(value).to_bytes(4, "big") + b"".join(parts)
    raise TypeError(type(value))


class Reader:
    """Reads one value after the other. ``ValueError`` is all it raises for bytes that are none."""

    #: First byte: what kind, and in how many bytes its length or value stands.
    SIZED = {  # noqa: RUF012 — typing would cost every launch its import
        0xC4: ("bin", 1), 0xC5: ("bin", 2), 0xC6: ("bin", 4),
        0xCC: ("uint", 1), 0xCD: ("uint", 2), 0xCE: ("uint", 4), 0xCF: ("uint", 8),
        0xD0: ("int", 1), 0xD1: ("int", 2), 0xD2: ("int", 4), 0xD3: ("int", 8),
        0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4),
        0xDC: ("array", 2), 0xDD: ("array", 4), 0xDE: ("map", 2), 0xDF: ("map", 4),
    }  # fmt: skip

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.raw) - self.at:
            raise ValueError("ends early")
        self.at += count
        return self.raw[self.at - count : self.at]

    def value(self) -> object:
        first = self.take(1)[0]
        if first < 0x80 or first >= 0xE0:  # noqa: PLR2004 — of the format, like those below
            return first if first < 0x80 else first - 0x100  # noqa: PLR2004
        if first < 0xC0:  # noqa: PLR2004
            kind = "map" if first < 0x90 else "array" if first < 0xA0 else "str"  # noqa: PLR2004
            return self.sized(kind, first & (0x1F if kind == "str" else 0x0F))
        if first in {0xC0, 0xC2, 0xC3}:
            return None if first == 0xC0 else first == 0xC3  # noqa: PLR2004
        if first not in self.SIZED:
            raise ValueError(f"a value that begins with {first:#x} is not known here")
        kind, width = self.SIZED[first]
        number = int.from_bytes(self.take(width), "big", signed=kind == "int")
        return number if kind in {"uint", "int"} else self.sized(kind, number)

    def sized(self, kind: str, count: int) -> object:
        if kind == "bin":
            return self.take(count)
        if kind == "str":
            return self.take(count).decode("utf-8", "surrogateescape")
        if kind == "array":
            return [self.value() for _ in range(count)]
        return {self.key(): self.value() for _ in range(count)}

    def key(self) -> object:
        key = self.value()
        if isinstance(key, list | dict):
            raise ValueError("a key is a plain value")  # noqa: TRY004 — of the bytes, not of a caller
        return key


def unpack(raw: bytes) -> object:
    return Reader(raw).value()


# --- asking ----------------------------------------------------------------------------------------------------------


def send(sock: _socket.socket, message: object) -> None:
    body = pack(message)
    raw = len(body).to_bytes(4, "big") + body
    while raw:
        raw = raw[sock.send(raw) :]


def receive(sock: _socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = sock.recv(count)
        if not part:
            raise NoAnswer
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def ask_once(path: str, launch_id: str) -> tuple[_socket.socket, object]:
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # closes on exec, as every socket of Python
    try:
        sock.settimeout(_ANSWER_WITHIN)
        sock.connect(path)
        send(sock, {"hello": {"protocol": PROTOCOL, "launch": launch_id}})
        size = int.from_bytes(receive(sock, 4), "big")
        return sock, unpack(receive(sock, min(size, _LARGEST)))  # one that was cut short cannot be read
    except OSError as error:
        sock.close()
        raise NoAnswer from error
    except BaseException:
        sock.close()
        raise


def ask(path: str, launch_id: str) -> tuple[_socket.socket, object]:
    until = time.monotonic() + _ASK_FOR
    while True:
        try:
            return ask_once(path, launch_id)
        except NoAnswer:
            if time.monotonic() >= until:
                raise
            select.poll().poll(_AGAIN_AFTER_MS)


# --- becoming --------------------------------------------------------------------------------------------------------


def tell(text: str) -> None:
    os.write(2, f"firm: {text}\n".encode("utf-8", "surrogateescape"))


def plan_of(answer: object, launch_id: str) -> tuple[list[str], dict[str, str], str, int]:
    hello = answer.get("hello") if isinstance(answer, dict) else None
    if not isinstance(hello, dict):
        raise ValueError("the daemon's answer is no hello")  # noqa: TRY004 — of the answer, not of a caller
    argv, env, cwd, nice = hello.get("argv"), hello.get("env"), hello.get("cwd"), hello.get("nice", 0)
    if not isinstance(argv, list) or not argv or not isinstance(env, dict) or not isinstance(cwd, str):
        raise ValueError("the daemon's answer has no argv, env and cwd")
    if not isinstance(nice, int):
        raise ValueError("the daemon's answer has a nice that is no number")  # noqa: TRY004 — as above
    # The mark by which everything that the program leaves behind is found again.
    marked = {str(name): str(value) for name, value in env.items()} | {"FIRM_LAUNCH_ID": launch_id}
    return [str(word) for word in argv], marked, cwd, nice


def give_way(nice: int) -> None:
    """Let what is not niced go first. Where the kernel gives every session of processes the same share, as desktops
    do, a nice value counts within a session only, and that of the session is written here. Not every kernel has it, and
    one that has may be asked ten times a second: what stands there then is no reason to start nothing.
    """
    if nice <= os.getpriority(os.PRIO_PROCESS, 0):
        return
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    try:
        fd = os.open("/proc/self/autogroup", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(fd, b"%d" % nice)
    except OSError:
        pass
    finally:
        os.close(fd)


def attend() -> None:
    """What is ignored stays so through exec, and Python and tmux ignore some: a program would not end when its reader
    does, and not stop when it types from the background.
    """
    for number in _signal.valid_signals():
        if _signal.getsignal(number) == _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)


def become(sock: _socket.socket, argv: list[str], env: dict[str, str], cwd: str, nice: int) -> int:
    """Comes back only when it failed."""
    doing = "enter the folder"
    try:
        os.chdir(cwd)
        doing = "run the program"
        attend()
        give_way(nice)
        send(sock, {"exec": True})
        os.execve(argv[0], argv, env)  # noqa: S606 — no shell is what we want
    except (OSError, ValueError) as error:
        number = (error.errno if isinstance(error, OSError) else None) or errno.EINVAL
        what = f"cannot {doing}: {error.strerror if isinstance(error, OSError) else error}"
        tell(what)
        try:
            send(sock, {"failed": {"errno": number, "what": what}})
        except OSError as lost:
            tell(f"and the daemon is gone: {lost.strerror}")
    return FAILED


def main(path: str, launch_id: str) -> int:
    with open("/proc/self/comm", "w") as comm:  # noqa: PTH123 — pathlib is slow to import
        comm.write(COMM)
    try:
        sock, answer = ask(path, launch_id)
    except NoAnswer:
        tell("the daemon does not answer")
        return FAILED
    except ValueError as error:
        tell(f"the daemon's answer cannot be read: {error}")
        return FAILED
    refusal = answer.get("refusal") if isinstance(answer, dict) else None
    if isinstance(refusal, dict):
        tell(f"{refusal.get('code', 'refused')}: {refusal.get('lifted_by', '')}")
        return REFUSED
    try:
        argv, env, cwd, nice = plan_of(answer, launch_id)
    except ValueError as error:
        tell(str(error))
        return FAILED
    return become(sock, argv, env, cwd, nice)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
