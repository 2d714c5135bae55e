"""Why a daemon did not start. Each has a code, a sentence, and what lifts it."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class StartCode(enum.StrEnum):
    """Printed on stderr by a daemon that ends before it serves anybody."""

    HOME_UNSAFE = "HOME_UNSAFE"
    HOME_UNUSABLE = "HOME_UNUSABLE"
    NODE_DAEMON_ALREADY_RUNNING = "NODE_DAEMON_ALREADY_RUNNING"
    SOCKET_PATH_TAKEN = "SOCKET_PATH_TAKEN"
    STORE_NEWER = "STORE_NEWER"
    STORE_UNUSABLE = "STORE_UNUSABLE"


MEANINGS: Mapping[StartCode, str] = {
    StartCode.HOME_UNSAFE: "FIRM_HOME is not a folder that only its owner can use.",
    StartCode.HOME_UNUSABLE: "FIRM_HOME cannot be written.",
    StartCode.NODE_DAEMON_ALREADY_RUNNING: "Another daemon holds this FIRM_HOME.",
    StartCode.SOCKET_PATH_TAKEN: "Something not ours stands where a socket belongs, or no socket can be made there.",
    StartCode.STORE_NEWER: "The database was written by a newer firm; nothing was changed.",
    StartCode.STORE_UNUSABLE: "The database cannot be opened for writing.",
}

#: In general, for the reference; a daemon that does not start says it of its own folder.
LIFTED_BY: Mapping[StartCode, str] = {
    StartCode.HOME_UNSAFE: "`chmod 700` on the folder and `chmod 600` on its keys, or another FIRM_HOME",
    StartCode.HOME_UNUSABLE: "free space, or make the folder writable; or another FIRM_HOME",
    StartCode.NODE_DAEMON_ALREADY_RUNNING: "nothing has to be done: ask that one, or `firm node stop` first",
    StartCode.SOCKET_PATH_TAKEN: "move away what stands at the path that it names, or choose a shorter FIRM_HOME",
    StartCode.STORE_NEWER: "the newer firm, or a backup of before: `firm node restore`",
    StartCode.STORE_UNUSABLE: "restore a backup: `firm node restore`, or mend the disk",
}


class CannotStart(Exception):
    """Ends the process with exit status 1; nothing was changed."""

    def __init__(self, code: StartCode, what: str, lifted_by: str) -> None:
        super().__init__(f"{code}: {what}. To lift it: {lifted_by}.")
        self.code = code
