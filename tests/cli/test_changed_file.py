"""A team file that is changed: every field is compared, shown, and then applied; what cannot be is said.

Its members are external, so that nothing is started: what is told here is what stands in the node.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import attrs
import pytest

from client.cli import crew
from tests.cli.conftest import somebody
from tests.cli.shell import Done, Shell, complaints
from tests.support.repos import Repo

#: ``@`` stands for what makes the names of one test its own.
FILE = """\
[team]
name = "core@"
host = "me"

[[member]]
name = "bob@"
profile = "external"

[[member]]
name = "cid@"
profile = "external"

[[work]]
key = "a"
title = "the parser"
criteria = ["it reads"]
check = ["unit=make unit", "lint=make lint"]

[[work]]
key = "b"
title = "the printer"
context = "one"
criteria = ["it prints"]
needs = ["a"]
"""
#: The Host is a member, and the first Work is given to one.
MANAGED = FILE.replace('host = "me"', 'host = "bob@"')


@attrs.frozen
class Team:
    """A team of its own, of a file that may be written again."""

    shell: Shell
    file: Path
    own: str

    def writes(self, text: str) -> None:
        self.file.write_text(text.replace("@", self.own))

    def tries(self, *words: str) -> Done:
        done = self.shell.tries("up", str(self.file), "--detach", *words)
        return attrs.evolve(done, out=done.out.replace(self.own, "@"), err=complaints(done.err).replace(self.own, "@"))

    def ups(self, *words: str) -> dict[str, Any]:
        done = self.tries("--json", *words)
        assert (done.status, done.err) == (0, ""), done
        return done.json

    def works(self) -> dict[str, Any]:
        """The Works of its run by title."""
        items = self.shell.answer("work", "list", "--team-run-id", self.run()["id"])["items"]
        return {each["title"]: each for each in items}

    def run(self) -> dict[str, Any]:
        run: dict[str, Any] = self.shell.answer("team-run", "list", "--team-id", f"core{self.own}")["items"][-1]
        return run

    def agent(self, name: str) -> dict[str, Any]:
        return self.shell.answer("agent", "show", f"{name}{self.own}")

    def team(self) -> dict[str, Any]:
        return self.shell.answer("team", "show", f"core{self.own}")

    def membership(self, name: str) -> str:
        (found,) = [
            each for each in self.team()["members"] if each["name"] == (name if name == "me" else name + self.own)
        ]
        return str(found["membership"]["id"])

    def facts(self) -> object:
        """Everything that a file can change; a supervisor may be taking the run meanwhile."""
        run = self.run()
        agents = [self.agent(name) for name in ("bob", "cid")]
        return [self.works(), self.team(), agents, run["id"], run["completing"]]


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def node() -> Generator[Shell]:
    with somebody() as shell:
        shell.firm("node", "start")
        yield shell


@pytest.fixture
def team(node: Shell, tmp_path: Path) -> Team:
    Repo(tmp_path).git("init", "-q")  # without git two would write into one folder
    # Without what an id or a number may be.
    made = Team(node, tmp_path / "team.toml", f"-{next(_numbers):03}-")
    made.writes(FILE)
    made.ups()
    return made


A, B = "the parser", "the printer"
WORKS = {
    "title": ('"the printer"', '"The Printer"', "work b: title the printer → The Printer", ("title", "The Printer")),
    "context": ('"one"', '"two"', "work b: context one → two", ("context", "two")),
    "lines of the context": (
        '"one"',
        '"one\\ntwo\\nthree"',
        "work b: context line 2: nothing → two, and 1 more",
        ("context", "one\ntwo\nthree"),
    ),
    "priority": ('"one"', '"one"\npriority = "high"', "work b: priority normal → high", ("priority", "high")),
    "criteria": (
        '["it prints"]',
        '["it is fast", "it is small"]',
        "work b: criteria without it prints, with it is fast, with it is small",
        ("criteria", ["it is fast", "it is small"]),
    ),
    "no check": (
        'check = ["unit=make unit", "lint=make lint"]\n',
        "",
        "work a: check without unit=make unit, without lint=make lint",
        ("checks", []),
    ),
    "another check of the same name": (
        '["unit=make unit", "lint=make lint"]',
        '["lint=make all", "slow=make slow"]',
        "work a: check without unit=make unit, without lint=make lint, with lint=make all, with slow=make slow",
        ("checks", ["lint=make all", "slow=make slow"]),
    ),
    "one check more": (
        '["unit=make unit", "lint=make lint"]',
        '["unit=make unit", "slow=make slow", "lint=make lint"]',
        "work a: check with slow=make slow",
        ("checks", ["unit=make unit", "lint=make lint", "slow=make slow"]),
    ),
    "needs": ('needs = ["a"]\n', "", "work b: needs without a", ("needs", [])),
}


@pytest.mark.parametrize("name", WORKS)
def test_every_field_of_a_work_is_shown_and_then_changed(team: Team, name: str) -> None:
    old, new, words, (field, value) = WORKS[name]
    text = FILE.replace(old, new)
    assert text != FILE
    team.writes(text)
    before = team.facts()
    done = team.tries()
    assert (done.status, "[CONFIRMATION_REQUIRED core@]" in done.err) == (1, True)
    assert f"The file asks for 1 change: {words}. [" in done.err
    assert team.facts() == before
    assert f"  changed: {words}\n" in team.tries("--yes").out
    after = team.facts()
    id_ = team.ups()["works"][words[len("work ")]]
    assert team.facts() == after
    (shown,) = [each for each in team.works().values() if each["id"] == id_]
    assert shown[field] == value


def test_what_a_work_needs_can_be_turned_around(team: Team) -> None:
    """With a new Work in between, which is made first."""
    text = FILE.replace('needs = ["a"]\n', "").replace('key = "a"\n', 'key = "a"\nneeds = ["b", "c"]\n')
    team.writes(f'{text}\n[[work]]\nkey = "c"\ntitle = "c"\ncriteria = ["c"]\nneeds = ["b"]\n')
    assert "2 changes: work b: needs without a; work a: needs with b, with c. [" in team.tries().err
    ids = team.ups("--yes")["works"]
    needs = {each["id"]: each["needs"] for each in team.works().values()}
    assert needs == {ids["a"]: sorted([ids["b"], ids["c"]]), ids["b"]: [], ids["c"]: [ids["b"]]}


def test_a_work_that_anybody_may_claim_is_for_some_and_then_given_to_one(team: Team) -> None:
    team.writes(FILE.replace('key = "b"', 'key = "b"\nclaim = ["bob@", "cid@"]'))
    words = "work b: who does it: any member may claim it → bob@ or cid@ may claim it"
    assert words in team.tries().err
    team.ups("--yes")
    work, (bob, cid) = team.works()[B], (team.agent("bob")["id"], team.agent("cid")["id"])
    assert (work["claim_mode"], work["eligible"], work["owner_id"]) == ("team_claim", sorted([bob, cid]), None)
    team.writes(FILE.replace('key = "b"', 'key = "b"\nassign = "cid@"'))
    assert "work b: who does it: bob@ or cid@ may claim it → the Host gives it to cid@" in team.tries().err
    team.ups("--yes")
    work = team.works()[B]
    assert (work["claim_mode"], work["eligible"]) == ("host_assign", [cid])
    assert work["owner_id"] == team.membership("cid")
    assert team.ups() == team.ups()
    team.writes(FILE)
    assert "work b: who does it: the Host gives it to cid@ → any member may claim it" in team.tries().err
    team.ups("--yes")
    work = team.works()[B]
    assert (work["claim_mode"], work["eligible"]) == ("team_claim", [])


def test_a_work_that_is_given_already_to_whom_the_file_gives_it_is_not_asked_about(team: Team) -> None:
    work = team.works()[B]
    words = ("--expected-version", str(work["version"]), "--membership-id", team.membership("cid"))
    team.shell.firm("work", "assign", work["id"], *words)
    team.writes(FILE.replace('key = "b"', 'key = "b"\nassign = "cid@"'))
    given = team.works()
    assert team.ups()["not_changed"] == []
    assert team.works() == given


def test_a_work_that_somebody_else_answers_for_is_named_with_what_takes_it_back(team: Team) -> None:
    text = FILE.replace('key = "b"', 'key = "b"\nassign = "bob@"')
    team.writes(text)
    team.ups("--yes")
    team.writes(text.replace('assign = "bob@"', 'assign = "cid@"'))
    (said,) = team.ups("--yes")["not_changed"]
    work = team.works()[B]
    release = f"firm work release {work['id']} --expected-version {work['version']}"
    assert said.replace(team.own, "@") == (
        f"work b: bob@ answers for it, not cid@; {release} takes it back, and firm up goes on".replace(team.own, "@")
    )
    team.shell.firm(*release.split()[1:])
    assert team.ups()["not_changed"] == []
    assert team.works()[B]["owner_id"] == team.membership("cid")


def test_a_verifier_may_join_with_the_change_that_names_it(team: Team) -> None:
    added = '[[member]]\nname = "eve@"\nprofile = "external"\n\n[[work]]'
    team.writes(FILE.replace("[[work]]", added, 1).replace('key = "b"', 'key = "b"\nverifier = "eve@"'))
    assert "The file asks for 1 change: work b: verifier nothing → eve@. [" in team.tries().err
    team.ups("--yes")
    assert team.works()[B]["verifier_id"] == team.membership("eve")
    assert team.ups() == team.ups()


def test_a_closed_work_stays_as_it_was(team: Team) -> None:
    work = team.works()[A]
    team.shell.firm("work", "cancel", work["id"], "--expected-version", "1", "--reason", "no")
    team.writes(FILE.replace('["it reads"]', '["it reads", "it is fast"]'))
    assert team.ups()["not_changed"] == ["work a is closed, and stays as it was: criteria with it is fast"]
    assert "  not changed: work a is closed, and stays" in team.tries().out
    assert team.works()[A]["criteria"] == ["it reads"]


MEMBERS = {
    "profile": ("profile external → command", "command", ""),
    "role": ("role nothing → builder", "builder", " (in this run it stays member-1)"),
    "description": ("description nothing → it builds", "it builds", ""),
    "model": ("model nothing → large", "large", ""),
    "workspace": ("workspace worktree → shared", "shared", ""),
    "ceiling": ("ceiling workspace_write → read_only", "read_only", ""),
}


@pytest.mark.parametrize("field", MEMBERS)
def test_every_field_of_a_member_is_shown_and_then_changed(team: Team, field: str) -> None:
    words, value, later = MEMBERS[field]
    team.shell.firm("agent", "pause", team.agent("bob")["id"], "--expected-version", "1")  # so that nothing is started
    old = 'name = "bob@"\nprofile = "external"\n'
    line = f'{field} = "{value}"\n'
    team.writes(FILE.replace(old, f'name = "bob@"\n{line}' if field == "profile" else old + line))
    before = team.facts()
    assert f"The file asks for 1 change: member bob@: {words}{later}. " in team.tries().err
    assert team.facts() == before
    team.ups("--yes")
    assert team.agent("bob")[field] == value
    assert team.ups() == team.ups()


def test_a_paused_member_is_named_with_what_resumes_it(team: Team) -> None:
    team.shell.firm("agent", "pause", team.agent("cid")["id"], "--expected-version", "1")
    (said,) = team.ups()["not_changed"]
    head, _, command = said.rpartition(": firm ")
    assert head.replace(team.own, "@") == "member cid@ is paused and begins nothing"
    team.shell.firm(*command.split())
    assert team.ups()["not_changed"] == []


def test_what_a_team_is_for_is_shown_and_then_changed(team: Team) -> None:
    team.writes(FILE.replace('host = "me"', 'host = "me"\ndescription = "it parses"'))
    assert "The file asks for 1 change: team: description nothing → it parses. [" in team.tries().err
    assert team.team()["team"]["description"] == ""
    team.ups("--yes")
    assert team.team()["team"]["description"] == "it parses"
    assert team.ups() == team.ups()


def test_another_host_is_shown_and_then_takes_over_and_back(team: Team) -> None:
    """What changes in a Work together with it is changed while the person is the Host."""
    team.writes(MANAGED.replace('"one"', '"two"'))
    assert "2 changes: team: host me → bob@; work b: context one → two. [" in team.tries().err
    team.ups("--yes")
    assert team.team()["members"][0]["name"] == f"bob{team.own}"
    assert team.works()[B]["context"] == "two"
    team.writes(FILE)
    assert "2 changes: team: host bob@ → me; work b: context two → one. [" in team.tries().err
    team.ups("--yes")
    assert team.team()["members"][0]["name"] == "me"
    assert team.works()[B]["context"] == "one"
    assert team.ups() == team.ups()


def test_what_only_another_host_changes_is_said(team: Team) -> None:
    team.writes(MANAGED)
    team.ups("--yes")
    team.writes(MANAGED.replace('"one"', '"two"'))
    assert [each.replace(team.own, "@") for each in team.ups()["not_changed"] if each.startswith("work b")] == [
        "work b: context one → two: only its Host bob@ changes it: firm send bob@ TEXT"
    ]
    assert team.works()[B]["context"] == "one"


def test_a_run_keeps_what_it_began_with_and_says_so(team: Team) -> None:
    team.writes(FILE.replace('host = "me"', 'host = "me"\nobjective = "a parser"\ncycles = 2'))
    keeps = f"run {team.run()['id']} keeps its own, the next one has it"
    said = [f"team: cycles 4 → 2: {keeps}", f"team: objective nothing → a parser: {keeps}"]
    assert team.ups()["not_changed"] == said


def test_a_team_that_was_to_end_with_its_last_work_may_stay_after_all(team: Team) -> None:
    ends = FILE.replace('host = "me"', 'host = "me"\nwhen_done = "end"')
    team.writes(ends)
    team.ups()
    assert team.run()["completing"]
    team.writes(FILE)
    assert "The file asks for 1 change: team: when_done end → stay. [" in team.tries().err
    team.ups("--yes")
    run = team.run()
    assert (run["completing"], run["state"]) == (False, "running")
    assert team.ups() == team.ups()


def test_what_is_not_in_the_file_stays_and_is_named_with_what_ends_it(team: Team) -> None:
    member = '[[member]]\nname = "cid@"\nprofile = "external"\n\n'
    team.writes(FILE.replace(member, "").split('[[work]]\nkey = "b"')[0])
    said = team.ups()["not_changed"]
    commands = [each.rpartition(": firm ")[2].replace("TEXT", "no") for each in said]
    assert [each.replace(team.own, "@").partition(": it stays")[0] for each in said] == [
        "member cid@ takes part, and is not in the file",
        f"work {team.works()[B]['id']} 'the printer' is not in the file".replace(team.own, "@"),
    ]
    for command in commands:
        team.shell.firm(*command.split())
    assert team.ups()["not_changed"] == []
    assert team.works()[B]["resolution"] == "cancelled"


def test_a_work_of_another_title_is_another_work_and_is_asked_about(team: Team) -> None:
    team.writes(FILE.replace('"the printer"', '"the plotter"'))
    done = team.tries()
    assert "The file asks for 1 change: work b is made anew: no Work of this run is called 'the plotter'" in done.err
    _, _, command = done.err.partition("to rename 'the printer' instead: firm ")
    rename = command.partition(". [")[0].partition(". Not changed")[0]
    team.shell.bash(f"firm {rename}")
    assert set(team.works()) == {A, "the plotter"}
    assert team.ups()["works"]["b"] == team.works()["the plotter"]["id"]
    team.writes(FILE)
    team.ups("--yes")
    assert set(team.works()) == {A, "the plotter", "the printer"}


def test_a_new_member_and_a_new_work_are_made_without_a_question(team: Team) -> None:
    added = '[[member]]\nname = "eve@"\nprofile = "external"\n\n[[work]]\nkey = "c"\ntitle = "c"\ncriteria = ["c"]\n'
    team.writes(FILE + added)
    team.ups()
    assert set(team.works()) == {A, B, "c"}


def test_what_somebody_changes_meanwhile_is_read_again(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where it was changed to what is asked for, nothing is left to do."""
    monkeypatch.setenv("FIRM_HOME", str(team.shell.home))
    node, seen = crew.Node(), team.agent("cid")
    named = {"agent_member_id": seen["id"]}
    team.shell.firm("agent", "update", seen["id"], "--expected-version", "1", "--description", "it tests")

    def step(role: str) -> Callable[[Any], crew.Asked | None]:
        return lambda found: ("agent.update", {**named, "role": role}) if found["role"] != role else None

    after = crew.settle(node, seen, step("tester"), lambda: node.ask("agent.show", **named))
    assert (after["role"], after["description"], after["version"]) == ("tester", "it tests", 3)
    assert crew.settle(node, seen, step("tester"), lambda: node.ask("agent.show", **named)) == after


def test_two_shells_with_one_changed_file_both_succeed(team: Team) -> None:
    changed = '["unit=make all", "slow=make slow"]'
    text = FILE.replace('["unit=make unit", "lint=make lint"]', changed).replace('"one"', '"two"')
    team.writes(text.replace('host = "me"', 'host = "me"\ndescription = "it parses"'))
    racers = [team.shell.begin("up", str(team.file), "--detach", "--json", "--yes") for _ in range(4)]
    ended = [(each.communicate(timeout=60), each.returncode) for each in racers]
    assert {status for _, status in ended} == {0}, ended
    assert (team.works()[A]["checks"], team.works()[B]["context"]) == (["unit=make all", "slow=make slow"], "two")
    assert team.ups()["not_changed"] == []
