"""Six members that take text, of whom two may be in a cycle at once: the others wait, are shown so, and have theirs."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.test_cycles import cycles, endings
from tests.e2e.test_hooks import gated, opens
from tests.support.runs import Field

NAMES = ("ann", "bob", "cid", "dan", "eve", "fay")
CYCLES = 2


def crew(field: Field) -> dict[str, Path]:
    """Each with a profile and a folder of its own, waiting at a gate in each turn."""
    folders = {name: field.talker(name, hooks=True, quiet=600) for name in NAMES}
    profiles = Path(field.environment["XDG_CONFIG_HOME"]) / "firm" / "profiles"
    talker = (profiles / "talker.toml").read_text()
    rows = [f'[team]\nname = "crew"\nhost = "me"\ncycles = {CYCLES}\n']
    for name, folder in folders.items():
        (profiles / f"{name}.toml").write_text(talker.replace(str(folders[NAMES[-1]]), str(folder)))
        rows.append(f'[[member]]\nname = "{name}"\nprofile = "{name}"\n')
        gated(folder)
    (field.repo.root / "team.toml").write_text("".join(rows))
    return folders


def look(field: Field) -> tuple[set[str], dict[str, str]]:
    """Who is in a cycle, and what everybody else waits for."""
    members = field.ask("board")["members"]
    active = {m["name"] for m in members if m["session"] == "active"}
    return active, {m["name"]: m["waits"] for m in members if m["name"] in NAMES and m["waits"]}


def full(field: Field) -> set[str]:
    """Who is in a cycle, once so many are as may be."""
    while True:
        seq = field.firm("event", "list", "--limit", "1")["seq"]
        active, _ = look(field)
        if len(active) == CYCLES:
            return active
        field.wait(f"seq>{seq}")


def test_six_talkers_and_two_cycles(field: Field) -> None:
    folders = crew(field)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    field.until_live(len(NAMES))
    for name in NAMES:
        field.ask("message", "send", "--body", "go on", "--recipient", name, "--response-required")
    served: list[str] = []
    while len(served) < len(NAMES):
        active = full(field)
        assert len([e for e in cycles(field) if e["ending"] is None]) <= CYCLES
        _, waits = look(field)
        left = set(NAMES) - set(served) - active
        assert waits == dict.fromkeys(left, f"for one of {CYCLES} cycles to end")
        for name in sorted(active):
            served.append(name)
            opens(folders[name] / "gate")
            endings(field, len(served))
    assert sorted(served) == sorted(NAMES)
    assert [e["ending"] for e in cycles(field)] == ["empty_output"] * len(NAMES)
    assert f"waits for one of {CYCLES} cycles" not in field.call("board").stdout


def test_a_run_keeps_its_cycles_whatever_the_file_says_later(field: Field) -> None:
    field.talker()
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    path = field.repo.root / "team.toml"
    path.write_text(path.read_text().replace('host = "me"', 'host = "me"\ncycles = 2'))
    done = field.call("up", "team.toml", "--detach")
    assert done.returncode == 0
    (run,) = field.ask("team-run", "list")["items"]
    said = f"not changed: team: cycles 4 → 2: run {run['id']} keeps its own, the next one has it"
    assert (said in done.stdout, run["cycles"]) == (True, 4)
