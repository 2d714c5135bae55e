"""Typing into the panes of a tmux server, and reading what it lists."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio

from providers.port import Delivered, Exit, NotStarted, Taken, Unreachable, Why
from providers.process import Process
from providers.tmux.launching import why_not
from providers.tmux.listing import read, seen_in
from providers.tmux.provider import Tmux
from providers.tmux.server import Said
from tests.support.terminals import COMPOSER, QUICK, python, shell, shown, started, tmux_in


async def test_a_copy_mode_is_left_before_typing(tmux: Tmux, tmp_path: Path) -> None:
    handle = await started(tmux, python(tmp_path, COMPOSER, "0"))
    await shown(tmux, handle, "ready")
    assert tmux._server is not None
    await tmux._server.ask("copy-mode", "-t", handle.pane)
    assert await tmux.deliver(handle, "words", QUICK, "1") == Delivered(taken=Taken.SUBMITTED)
    await shown(tmux, handle, "took <words>")


async def test_a_copy_mode_does_not_keep_an_interrupt(tmux: Tmux, tmp_path: Path) -> None:
    handle = await started(tmux, shell(tmp_path, "trap 'exit 5' INT; echo set; while :; do sleep 0.05; done"))
    await shown(tmux, handle, "set")
    assert tmux._server is not None
    await tmux._server.ask("copy-mode", "-t", handle.pane)
    assert await tmux.interrupt(handle) is True
    with trio.fail_after(5):
        assert (await tmux.ended(handle)).status == 5


async def test_a_long_text_arrives_whole(tmux: Tmux, tmp_path: Path) -> None:
    count = (
        "import sys,tty; tty.setraw(0); print('ready\\r');\nn=0\nwhile (c:=sys.stdin.buffer.read1(1))!=b'\\r': n+=1\n"
    )
    handle = await started(tmux, python(tmp_path, count + "print('took', n, '\\r', flush=True); sys.stdin.read()"))
    await shown(tmux, handle, "ready")
    await tmux.deliver(handle, "x" * 100_000, QUICK, "1")
    await shown(tmux, handle, "took 100000")


@pytest.mark.parametrize(("read_only", "taken"), [(True, Taken.SUBMITTED), (False, Taken.HELD)])
async def test_somebody_who_may_type_holds_a_delivery(
    tmux: Tmux,
    tmp_path: Path,
    *,
    read_only: bool,
    taken: Taken,
) -> None:
    handle = await started(tmux, python(tmp_path, COMPOSER, "0"))
    await shown(tmux, handle, "ready")
    async with tmux_in() as elsewhere:
        person = await started(
            elsewhere, shell(tmp_path, f"exec {' '.join(tmux.attach_command(handle, read_only=read_only))}")
        )
        await shown(elsewhere, person, "ready")
        found = await tmux.deliver(handle, "words", QUICK, "1")
        assert isinstance(found, Delivered)
        assert found.taken is taken


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


@pytest.mark.parametrize(
    ("status", "out", "error", "sees"),
    [
        (0, "7\nab01 %3 11 0 s k t77\n", "", {"ab01"}),
        (1, "7\n", "no current target", set[str]()),
        (0, "8\nab01 %3 11 0 s k t77\n", "", None),
        (1, "7\n", "something new", None),
        (1, "", "no current target", None),
    ],
    ids=["rows", "no session", "another server", "another error", "nobody"],
)
async def test_what_could_not_be_looked_at_is_not_empty(  # noqa: ASYNC124 — for its fixture
    tmux: Tmux, status: int, out: str, error: str, sees: set[str] | None
) -> None:
    server = attrs.evolve(tmux._server, process=Process(7, 1)) if tmux._server else None
    assert server is not None
    found = seen_in(Said(status=status, out=out, error=error), server)
    assert (None if isinstance(found, Unreachable) else set(found)) == sees


def test_a_row_that_is_not_ours_is_no_launch() -> None:
    good = "ab01 %3 11 0 s k t77"
    rows = [
        good,
        "Main %1 12 0 s k t",
        "ab02 %1 12 0 s k t more",
        "ab01 %9 12 1 s0 k t",
        "",
        "AB %1 1 0 s k t",
    ]
    found = read("\n".join(rows))
    assert set(found) == {"ab01"}
    assert (found["ab01"].pane, found["ab01"].pid, found["ab01"].start_ticks, found["ab01"].dead) == (
        "%3",
        11,
        77,
        False,
    )


@pytest.mark.parametrize(
    ("row", "known"),
    [("1 s7 k t1", True), ("1 s k9 t1", True), ("1 s k t1", False), ("0 s k t1", False)],
)
def test_how_it_ended_is_known_only_when_it_is_said(row: str, *, known: bool) -> None:
    assert read(f"ab01 %1 12 {row}")["ab01"].known is known


async def test_a_status_that_nobody_has_stays_unknown(tmux: Tmux, tmp_path: Path) -> None:
    handle = await started(tmux, shell(tmp_path, "sleep 0.1; exit 3"))
    assert tmux._server is not None
    await tmux._server.ask("kill-session", "-t", f"={handle.launch_id}")
    with trio.fail_after(5):
        assert await tmux.ended(handle) == Exit(status=None, signal=None, screen="")
