"""Telling a service manager how it goes: READY, WATCHDOG, STOPPING. Does nothing where there is none.

A manager that is gone or does not read is its own trouble: the daemon serves on, and never waits for it.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping

import trio

log = logging.getLogger(__name__)


class Notifier:
    """One datagram a message, as ``sd_notify(3)`` describes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._to = environment.get("NOTIFY_SOCKET", "")
        self._told = False
        usec = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._every = int(usec) / 2_000_000 if usec.isdigit() and mine else None

    def tell(self, message: str) -> None:
        if not self._to:
            return
        address = "\0" + self._to[1:] if self._to.startswith("@") else self._to
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with socket.socket(socket.AF_UNIX, kind) as sender:
            try:
                sender.connect(address)
                sender.send(message.encode())
            except OSError as error:
                if not self._told:
                    log.warning("the service manager at %s does not hear %s: %s", self._to, message, error)
                self._told = True

    async def keep_alive(self) -> None:
        """Ping the watchdog twice in its interval, from the loop that answers peers."""
        while self._every is not None:
            self.tell("WATCHDOG=1")
            await trio.sleep(self._every)
