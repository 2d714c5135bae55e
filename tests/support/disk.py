"""What a disk would hold: files with a written image and a durable image, and folders likewise.

A plain model without SQLite in it; ``vfs.py`` feeds it every call. It is deliberately the worst disk that
POSIX allows: nothing lasts without a sync of its own, and a failed sync drops what it should have kept, for
good (Linux marks such pages clean, so that a later successful sync does not write them either).
"""

from __future__ import annotations

import random
from pathlib import Path

_SECTOR = 512  # the unit in which a disk tears a write
_LUCK = (0.5, 0.9, 0.99, 1.0)  # a coin alone would hardly ever let a whole page through


class FileImage:
    """One file: ``live`` is what processes read, ``durable`` what is left when the power goes."""

    def __init__(self, content: bytes = b"") -> None:
        self.live = bytearray(content)
        self.durable = bytearray(content)
        self._dirty: list[tuple[int, int]] = []
        self._doubtful: list[tuple[int, int]] = []

    @property
    def dirty(self) -> bool:
        """Whether anything waits for a sync, the length included."""
        return bool(self._dirty) or len(self.live) != len(self.durable)

    def write(self, data: bytes, start: int) -> None:
        """Write to the live image only; a gap reads as zeros."""
        end = start + len(data)
        _resize(self.live, max(len(self.live), end))
        self.live[start:end] = data
        self._dirty.append((start, end))

    def truncate(self, size: int) -> None:
        """Set the length of the live image only."""
        _resize(self.live, size)

    def synced(self) -> None:
        """Make everything durable that was written since the last sync, failed ones excepted."""
        _resize(self.durable, len(self.live))
        for start, end in self._dirty:
            self.durable[start : min(end, len(self.live))] = self.live[start:end]
        self._dirty.clear()

    def sync_failed(self) -> None:
        """From now on only writing the bytes again can make them durable."""
        self._doubtful += self._dirty
        self._dirty.clear()

    def after_power_loss(self, survivors: random.Random | None) -> bytes:
        """Return the durable image; with ``survivors``, sectors that were not synced survive by chance."""
        image = bytearray(self.durable)
        if survivors is None:
            return bytes(image)
        luck = survivors.choice(_LUCK)
        for start, end in self._dirty + self._doubtful:
            for at in range(start - start % _SECTOR, end, _SECTOR):
                low, high = max(at, start), min(at + _SECTOR, end, len(self.live))
                if low < high and survivors.random() < luck:
                    _resize(image, max(len(image), high))
                    image[low:high] = self.live[low:high]
        if len(self.live) < len(image) and survivors.random() < luck:
            _resize(image, len(self.live))
        return bytes(image)


class Disk:
    """Names of files, as seen now and as they are durable. Knows only absolute paths."""

    def __init__(self) -> None:
        self._now: dict[str, FileImage] = {}
        self._durable: dict[str, FileImage] = {}

    def file(self, path: str) -> FileImage | None:
        """Return the file that carries this name now."""
        return self._now.get(path)

    def adopt(self, path: str, content: bytes) -> FileImage:
        """Bring in a file that was there before anybody watched: taken to be durable, name and content."""
        image = FileImage(content)
        self._now[path] = self._durable[path] = image
        return image

    def create(self, path: str) -> FileImage:
        """Bring in a new empty file. Its name lasts only after ``folder_synced``."""
        image = self._now[path] = FileImage()
        return image

    def delete(self, path: str) -> None:
        """Take the name away. It comes back after power loss unless the folder was synced."""
        self._now.pop(path, None)

    def folder_synced(self, path: str) -> None:
        """Make the names in the folder of ``path`` durable, new and deleted ones."""
        folder = Path(path).parent
        for name in self._now.keys() | self._durable.keys():
            if Path(name).parent == folder:
                _put(self._durable, name, self._now.get(name))

    def after_power_loss(self, survivors: random.Random | None) -> dict[str, bytes]:
        """Return path and content of every file found when the power is back."""
        found: dict[str, bytes] = {}
        for path in sorted(self._now.keys() | self._durable.keys()):
            lucky = survivors is not None and survivors.random() < 0.5
            image = (self._now if lucky else self._durable).get(path)
            if image is not None:
                found[path] = image.after_power_loss(survivors)
        return found

    def after_process_loss(self) -> dict[str, bytes]:
        """Return path and content of every file after ``kill -9``: the system kept all that was written."""
        return {path: bytes(image.live) for path, image in self._now.items()}


def _resize(image: bytearray, size: int) -> None:
    if size < len(image):
        del image[size:]
    else:
        image.extend(bytes(size - len(image)))


def _put(names: dict[str, FileImage], name: str, image: FileImage | None) -> None:
    if image is None:
        names.pop(name, None)
    else:
        names[name] = image
