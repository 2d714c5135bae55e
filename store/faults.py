"""What SQLite's errors mean: which refusal they become, and what they prove about a commit that failed."""

from __future__ import annotations

import errno

import apsw

from client.protocol.lifting import LIFTED_BY
from client.protocol.refusals import Code, Refusal

#: Errors of the machine or the file, not of our statements: these become refusals, everything else is a bug.
STORAGE = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
)


def code_of(error: apsw.Error, system_errno: int = 0) -> Code:
    """The refusal that ``error`` becomes; ``system_errno`` is the connection's, for errors of the disk."""
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Code.STORE_CORRUPT
    if isinstance(error, apsw.BusyError):
        return Code.STORE_BUSY
    if isinstance(error, apsw.FullError):
        return Code.STORE_FULL
    if isinstance(error, apsw.ReadOnlyError):
        return Code.STORE_READ_ONLY
    return code_of_errno(system_errno)  # an I/O error: only these set it, it is stale after any other


def code_of_errno(number: int | None) -> Code:
    """The refusal that an error of the operating system becomes."""
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return Code.STORE_FULL
    return Code.STORE_READ_ONLY if number == errno.EROFS else Code.STORE_IO_ERROR


def refusal(code: Code) -> Refusal:
    return Refusal(code=code, about="store", lifted_by=LIFTED_BY[code])


def never_whole(error: apsw.Error) -> bool:
    """Whether a failed COMMIT certainly left no whole commit in the log.

    The commit frame is the last that is written. A write that failed (disk full, I/O error on write) means that
    frame never was whole, so recovery drops the batch. A failed sync proves nothing: every frame may be there.
    """
    return isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE
    )
