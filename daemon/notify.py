"""Telling a service manager how it goes: READY, WATCHDOG, STOPPING. Does nothing where there is none."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

import trio


class Notifier:
    """One datagram a message, as ``sd_notify(3)`` describes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._to = environment.get("NOTIFY_SOCKET", "")
        usec = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._every = int(usec) / 2_000_000 if usec.isdigit() and mine else None

    def tell(self, message: str) -> None:
        if not self._to:
            return
        address = "\0" + self._to[1:] if self._to.startswith("@") else self._to
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(address)
            sender.send(message.encode())

    async def keep_alive(self) -> None:
        """Ping the watchdog twice in its interval, from the loop that answers peers."""
        while self._every is not None:
            self.tell("WATCHDOG=1")
            await trio.sleep(self._every)
