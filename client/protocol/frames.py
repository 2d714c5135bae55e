"""Length-prefixed frames, without I/O: four bytes of length, most significant first, then the payload."""

from __future__ import annotations

#: The largest request, in bytes. Answers may be larger: a page of records is bounded by its own limit.
MAX_REQUEST = 256 * 1024
MAX_ANSWER = 64 * 1024 * 1024
PREFIX = 4
#: What lifts FRAME_TOO_LARGE.
TOO_LARGE = f"keep a request within {MAX_REQUEST} bytes; give large content as a reference"


class Frames:
    """Feed bytes in, take whole frames out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        #: The size of a frame that was announced and is too large; nothing after it can be read.
        self.too_large = 0

    @property
    def partial(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """The frames that ``data`` completes. After each call look at ``too_large``."""
        buffer = self._buffer
        buffer += data
        whole: list[bytes] = []
        at = 0
        while len(buffer) - at >= PREFIX:
            size = int.from_bytes(buffer[at : at + PREFIX], "big")
            if size > self._limit:
                self.too_large = size
                break
            if len(buffer) - at - PREFIX < size:
                break
            whole.append(bytes(buffer[at + PREFIX : at + PREFIX + size]))
            at += PREFIX + size
        if at:
            del buffer[:at]
        return whole


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(PREFIX, "big") + payload
