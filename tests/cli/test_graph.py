"""``firm work graph``: a drawing a person can read, whatever the shape of the graph, and DOT for Graphviz."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from client.cli.eyes import dot, graph
from client.cli.render import NARROW, width
from tests.cli.shell import Shell


def node(id_: str, *needs: str, title: str = "", state: str = "open", owner: str = "") -> dict[str, Any]:
    closed = state in {"accepted", "cancelled", "failed"}
    condition = state if state in {"blocked", "on_hold"} else "normal"
    phase = "closed" if closed else "active" if condition != "normal" else state
    return {
        "id": id_,
        "title": title or f"do {id_}",
        "phase": phase,
        "condition": condition,
        "resolution": state if closed else "",
        "owner": owner,
        "needs": list(needs),
    }


def drawn(*nodes: dict[str, Any]) -> list[str]:
    return graph.lay({"nodes": list(nodes)}).splitlines()


def test_each_work_hangs_below_what_it_needs_and_says_how_it_stands() -> None:
    assert drawn(
        node("a", state="accepted", owner="ann"),
        node("b", "a", state="review", owner="bob"),
        node("c", "a"),
        node("d", "b"),
        node("e", "d", state="blocked", owner="bob"),
        node("x"),
    ) == [
        "6 Works: 1 review, 1 blocked, 2 ready, 1 waiting, 1 accepted",
        "a  ✓ accepted  ann  do a",
        "c  ○ ready     -    ├─ do c",
        "b  ◆ review    bob  ↓ do b",
        "d  · waiting   -    ↓ do d",
        "e  ! blocked   bob  ↓ do e",
        "x  ○ ready     -    do x",
    ]


def test_several_prerequisites_are_named_and_the_work_is_drawn_once() -> None:
    lines = drawn(node("a"), node("b", "a"), node("c"), node("d", "a", "b", "c"))
    assert [line.split()[0] for line in lines[1:]] == ["a", "b", "d", "needs", "c"]
    assert lines[4].strip() == "needs a, b, c"


def test_a_cancelled_prerequisite_leaves_a_work_stuck() -> None:
    assert drawn(node("a", state="cancelled"), node("b", "a"))[0] == "2 Works: 1 stuck, 1 cancelled"


def test_a_branch_that_ends_in_leaves_is_closed_by_its_last() -> None:
    assert [line.split("  -  ")[1] for line in drawn(node("a"), node("b", "a"), node("c", "a"))[1:]] == [
        "do a",
        "├─ do b",
        "└─ do c",
    ]


@st.composite
def graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to two hundred Works, each after what it needs, from one long chain to no edge at all."""
    size = draw(st.integers(1, 200))
    near = draw(st.integers(1, 200))
    dice = random.Random(draw(st.integers(0, 2**32)))  # drawn one by one they would take a second
    made: list[dict[str, Any]] = []
    for n in range(size):
        candidates = range(max(0, n - near), n)
        needs = dice.sample(candidates, min(len(candidates), dice.choice([0, 1, 1, 2, 3])))
        made.append(node(f"w{n}", *(f"w{need}" for need in needs)))
    return made


@given(graphs())
def test_every_work_is_drawn_once_and_the_drawing_stays_narrow(nodes: list[dict[str, Any]]) -> None:
    """Two hundred Works, however deep: at most log2 of that many levels of indent."""
    lines = graph.lay({"nodes": nodes}).splitlines()[1:]
    works = [line for line in lines if line.startswith("w")]
    assert sorted(line.split()[0] for line in works) == sorted(each["id"] for each in nodes)
    indents = [line.rpartition("do ")[0].count("│") for line in works]
    assert 2 ** max(indents) <= len(nodes)
    assert len(lines) - len(works) == sum(len(each["needs"]) > 1 for each in nodes)


def test_a_chain_as_long_as_a_run_may_be_is_drawn() -> None:
    chain = [node("w0"), *(node(f"w{n}", f"w{n - 1}") for n in range(1, 10_000))]
    assert len(drawn(*chain)) == 10_001


def test_our_own_marks_take_one_column() -> None:
    assert [cell_len(mark) for mark in NARROW] == [1] * len(NARROW)
    assert width("├─ ○ 日") == 7


_NODE = re.compile(r'  "((?:[^"\\]|\\.)*)" \[label="((?:[^"\\]|\\.)*)"[^"]*(?:"\w+")?\];')
_EDGE = re.compile(r'  "((?:[^"\\]|\\.)*)" -> "((?:[^"\\]|\\.)*)";')


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.sampled_from(["utf-8", "ascii"]))
def test_any_title_stays_inside_its_quotes_in_dot(titles: list[str], encoding: str) -> None:
    nodes = [node(f"w{n}", *([f"w{n - 1}"] if n else []), title=title) for n, title in enumerate(titles)]
    first, rank, looks, *lines, last = dot.draw({"nodes": nodes}, encoding).split("\n")
    assert (first, rank, looks, last) == ("digraph works {", "  rankdir=LR;", "  node [shape=box];", "}")
    assert all(_NODE.fullmatch(line) for line in lines[: len(titles)])
    edges = [_EDGE.fullmatch(line) for line in lines[len(titles) :]]
    assert [match and match.groups() for match in edges] == [(f"w{n - 1}", f"w{n}") for n in range(1, len(titles))]


def test_dot_says_quotes_backslashes_and_ampersands_as_they_are() -> None:
    nodes = [node("a", title='say "hi" \\n & &amp; \x1b[2J\nnext', owner="日本")]
    (line,) = (line for line in dot.draw({"nodes": nodes}, "utf-8").splitlines() if "label" in line)
    assert line == '  "a" [label="say \\"hi\\" \\\\n &amp; &amp;amp; \N{REPLACEMENT CHARACTER}[2J next\\nready, 日本"];'
    assert "ready, &#26085;&#26412;" in dot.draw({"nodes": nodes}, "ascii")


_TITLES = ['say "hi" \\n & &amp;', "ends in \\", '"] ; } ->', "<b>\\l {x|y} \\N %s", "日本 schön", "#35; /* x */ // y"]
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_shows_every_work_with_its_words_and_what_it_needs() -> None:
    nodes = [node(f"w{n}", *([f"w{n - 1}"] if n else []), title=title) for n, title in enumerate(_TITLES)]
    said = subprocess.run(
        ["dot", "-Tsvg"],
        input=dot.draw({"nodes": nodes}, "utf-8").encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert said.stderr == b""
    drawing = ET.fromstring(said.stdout)  # noqa: S314 - dot wrote it
    words = {
        str(group.findtext(f"{_SVG}title")): [line.text for line in group.iter(f"{_SVG}text")]
        for group in drawing.iter(f"{_SVG}g")
        if group.get("class") == "node"
    }
    lines = [group.findtext(f"{_SVG}title") for group in drawing.iter(f"{_SVG}g") if group.get("class") == "edge"]
    plain = {id_: [str(line).replace("\xa0", " ") for line in text] for id_, text in words.items()}
    assert plain == {f"w{n}": [title, "ready" if n == 0 else "waiting"] for n, title in enumerate(_TITLES)}
    assert sorted(map(str, lines)) == [f"w{n - 1}->w{n}" for n in range(1, len(_TITLES))]


@pytest.fixture(scope="module")
def run(served: Shell) -> str:
    """A run with two Works, one of which needs the other."""
    served.firm("agent", "create", "hana", "--profile", "me")
    served.firm("team", "create", "core", "--host-agent-id", "hana")
    made = str(served.answer("team-run", "create", "core")["id"])
    served.firm("team-run", "start", made, "--expected-version", "1")
    words = ("--team-run-id", made, "--completion-criteria", "it does", "--title")
    first = served.answer("work", "create", *words, 'the "first"')["id"]
    served.firm("work", "create", *words, "日本語", "--prerequisite-work-id", first)
    return made


def test_the_graph_of_a_run_is_drawn_for_eyes_for_programs_and_for_graphviz(served: Shell, run: str) -> None:
    shown = served.firm("work", "graph", run).splitlines()
    assert shown[0] == "2 Works: 1 ready, 1 waiting"
    assert [line.split()[-1] for line in shown[1:]] == ['"first"', "日本語"]
    assert len(served.answer("work", "graph", run)["nodes"]) == 2
    source = served.firm("work", "graph", run, "--dot")
    assert '[label="the \\"first\\"\\nready"];' in source
    assert source.count(" -> ") == 1
    assert served.tries("work", "graph", "nosuch", "--dot").status == 1


def test_on_a_terminal_only_the_first_line_is_bold_and_lines_are_cut(served: Shell, run: str) -> None:
    first, *rest = served.terminal("work", "graph", run, columns=80).out.splitlines()
    assert first.startswith("\x1b[1m")
    assert "\x1b" not in "".join(rest)
    assert "\x1b" not in served.having(NO_COLOR="1").terminal("work", "graph", run).out
    assert all(width(line) <= 80 for line in rest)
