"""What a measurement says, and how it is printed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import attrs


@attrs.frozen
class Figure:
    """One bar of chapter 8: ours against the floor. ``at_most`` tells which way the bar stands."""

    name: str
    what: str
    ours: str
    floor: str
    ratio: float
    bar: float
    at_most: bool

    @property
    def holds(self) -> bool:
        return self.ratio <= self.bar if self.at_most else self.ratio >= self.bar

    def row(self) -> str:
        sign = "≤" if self.at_most else "≥"
        said = "holds" if self.holds else "**does not hold**"
        cells = [self.name, self.what, self.ours, self.floor, f"x{self.ratio:.2f}", f"{sign} {self.bar:g}", said]
        return f"| {' | '.join(cells)} |"


HEAD = "| | figure | ours | floor | ratio | bar | |\n| --- | --- | --- | --- | --- | --- | --- |"


def median(values: list[float]) -> float:
    return statistics.median(values)


def laps(run: Callable[[], object], count: int) -> list[float]:
    """Seconds of each of ``count`` runs."""
    found: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return found


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f} ms"
