"""What a session may at most be allowed; of the member, and frozen in each of its sessions."""

from __future__ import annotations

import enum


class Ceiling(enum.StrEnum):
    """The most a session of this member may ever be allowed. Recorded in each session; nothing enforces it yet."""

    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    FULL_ACCESS = "full_access"
