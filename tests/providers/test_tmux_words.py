"""What is read out of the words of tmux. Pure."""

from __future__ import annotations

import pytest

from providers.port import NotStarted, Why
from providers.tmux.launching import why_not
from providers.tmux.listing import read
from providers.tmux.server import Said


@pytest.mark.parametrize(
    ("error", "why"),
    [
        # As tmux 3.3a said them. A process limit does not hold for root, so it is not provoked here.
        ("create window failed: fork failed: No space left on device", Why.TERMINAL_LIMIT),
        ("create window failed: fork failed: Resource temporarily unavailable", Why.PROCESS_LIMIT),
        ("create session failed: something new", Why.ENDED_AT_ONCE),
    ],
)
def test_what_tmux_says_has_a_way_out(error: str, why: Why) -> None:
    assert why_not(Said(status=1, out="", error=error)) == NotStarted(why=why, detail=error)


def test_a_row_that_is_not_ours_is_no_launch() -> None:
    good = "ab01cd34 %3 11 0 s k t77 m0"
    rows = [
        good,
        "main %1 12 0 s k t m0",
        "ab02cd34 %1 12 0 s k t m0 more",
        "ab01cd34 %9 12 1 s0 k t m0",
        "",
        "AB01CD34 %1 1 0 s k t m",
    ]
    found = read("\n".join(rows))
    assert set(found) == {"ab01cd34"}
    assert (found["ab01cd34"].pane, found["ab01cd34"].pid, found["ab01cd34"].start_ticks, found["ab01cd34"].dead) == (
        "%3",
        11,
        77,
        False,
    )


@pytest.mark.parametrize(
    ("row", "known"),
    [("1 s7 k t1 m", True), ("1 s k9 t1 m", True), ("1 s k t1 m", False), ("0 s k t1 m", False)],
)
def test_how_it_ended_is_known_only_when_it_is_said(row: str, *, known: bool) -> None:
    assert read(f"ab01cd34 %1 12 {row}")["ab01cd34"].known is known
