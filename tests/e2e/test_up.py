"""``firm up``, ``firm ps`` and ``firm down`` as a person types them: a real daemon, real members in a real tmux."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import PATIENCE, complaints, has_ended, watched
from tests.support.teams import TEAM, Person, person

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

#: A program whose child leaves it: forked twice, in a session of its own, deaf to the end of its terminal.
LEAVES = """\
#!/usr/bin/env python3
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with open({pipe!r}, "w") as pipe:
            pipe.write(str(os.getpid()))
        while True:
            signal.pause()
    os._exit(0)
os.wait()
while True:
    signal.pause()
"""


@pytest.fixture
def me() -> Generator[Person]:
    with person() as made:
        yield made


def rows(me: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(me.shell.firm("ps", "--json"))["members"]
    return found


def _sessions(me: Person, run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = me.shell.answer("session", "list", "--team-run-id", run)["items"]
    return found


def counted(me: Person) -> tuple[int, int, int, int]:
    """Agents, teams, runs and Works."""
    lists = [me.shell.answer(noun, "list")["items"] for noun in ("agent", "team", "team-run")]
    agents, teams, runs = map(len, lists)
    return agents, teams, runs, len(me.works())


def test_up_starts_the_daemon_and_follows_the_run_to_its_end(me: Person) -> None:
    """Until the last Work is accepted; the second is begun when the first was accepted."""
    up = me.shell.begin("up", "team.toml")
    assert up.stdout is not None
    said = up.stdout.readline().decode()
    assert said.startswith("The daemon started")
    while "1 review" not in said:
        said = up.stdout.readline().decode()
        assert said, "it ended"
    works = me.works()
    for title in ("the parser", "the printer"):
        assert me.accepts(works[title]["id"])["resolution"] == "accepted"
    out, err = up.communicate(timeout=PATIENCE)
    assert (up.returncode, complaints(err.decode())) == (0, "")
    assert "Every Work was accepted." in out.decode()
    done = me.downs()
    assert (done.status, done.json["state"], done.json["left"]) == (0, "completed", [])
    assert [each["ended"] for each in done.json["members"]] == [True]


def test_up_says_1_when_a_work_was_not_accepted(me: Person) -> None:
    me.writes(TEAM.split('[[work]]\nkey = "b"')[0])
    me.ups()
    work = me.works()["the parser"]
    me.shell.firm("wait", f"work:{work['id']}.phase=review")
    version = str(me.works()["the parser"]["version"])
    me.shell.answer("work", "fail", work["id"], "--expected-version", version, "--reason", "no")
    done = me.shell.tries("up", "--json")
    assert (done.status, done.json["accepted"], done.json["works"][0]["resolution"]) == (1, False, "failed")


def test_the_same_file_twice_changes_nothing(me: Person) -> None:
    first = me.ups()
    me.shell.firm("wait", f"work:{first['works']['a']}.phase=review")
    before, seq = counted(me), me.shell.answer("events", "--limit", "500")["items"][-1]["seq"]
    assert me.ups() == first
    assert counted(me) == before == (2, 1, 1, 2)
    assert me.shell.answer("events", "--limit", "500")["items"][-1]["seq"] == seq


def test_ten_at_once_give_one_run(me: Person) -> None:
    """And one daemon, since none ran."""
    racers = [me.shell.begin("up", "--detach", "--json") for _ in range(10)]
    ended = [(each.communicate(timeout=PATIENCE), each.returncode) for each in racers]
    assert {status for _, status in ended} == {0}, ended
    answers = [json.loads(out.splitlines()[-1]) for (out, _), _ in ended]
    assert all(each == answers[0] for each in answers)
    assert counted(me) == (2, 1, 1, 2)


def test_a_changed_file_shows_the_difference_and_changes_nothing_without_a_yes(me: Person) -> None:
    me.ups()
    me.shell.firm("wait", f"work:{me.works()['the parser']['id']}.phase=review")
    before = me.works()
    me.writes(
        TEAM.replace('["it prints"]', '["it prints", "in colour"]').replace('name = "bob"', 'name = "bob"\nrole = "b"')
    )
    done = me.shell.tries("up", "--detach")
    assert done.status == 1
    assert "[CONFIRMATION_REQUIRED core]" in done.err
    for difference in ("member bob: role nothing → b", "work b: criteria with in colour"):
        assert difference in done.err
    assert me.shell.tries("up", "--json").refusal["code"] == "CONFIRMATION_REQUIRED"
    assert me.works() == before
    me.ups("--yes")
    assert me.works()["the printer"]["criteria"] == ["it prints", "in colour"]
    assert me.ups() == me.ups()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[team", "team.toml:1: not TOML"),
        (TEAM.replace("[[member]]", "[[member]]\nrank = 7"), "team.toml:6: member.rank: no such field"),
    ],
    ids=["not TOML", "unknown field"],
)
def test_a_file_that_is_wrong_is_told_before_anything_is_started(me: Person, text: str, said: str) -> None:
    me.writes(text)
    done = me.shell.tries("up")
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert said in me.shell.tries("up", "--json").refusal["lifted_by"]
    assert not me.shell.home.exists()


def test_a_verifier_of_the_file_is_waited_for_shown_and_taken_away_with_it(me: Person) -> None:
    """Also one that joins later than its Work was made."""
    first = TEAM.split('[[work]]\nkey = "b"')[0]
    cid = '[[member]]\nname = "cid"\n\n[[work]]'
    verified = first.replace("[[work]]", cid, 1) + 'verifier = "cid"\n'
    me.writes(first)
    me.ups()
    me.shell.firm("wait", f"work:{me.works()['the parser']['id']}.phase=review")
    me.writes(verified)
    assert "work a: verifier nothing → cid" in me.shell.tries("up", "--detach").err
    me.ups("--yes")
    work = me.works()["the parser"]
    members = me.shell.answer("team-run", "show", work["team_run_id"])["members"]
    (named,) = [each["member_run"]["membership_id"] for each in members if each["name"] == "cid"]
    assert work["verifier_id"] == named
    me.ups()
    shown = me.shell.answer("work", "show", work["id"])["work"]
    assert [each["kind"] for each in me.shell.answer("events", "--stream", f"work/{work['id']}")["items"]].count(
        "updated"
    ) == 1
    words = ("--expected-version", str(shown["version"]), "--receipt-id", shown["receipt_id"])
    refusal = me.shell.tries("work", "accept", work["id"], *words, "--json").refusal
    assert (refusal["code"], shown["version"]) == ("GATE_NOT_PASSED", work["version"])
    assert "bob, cid: to verify" in me.shell.firm("board")
    lines = me.shell.firm("work", "show", work["id"]).splitlines()
    assert f"  verifier cid ({named}): nothing said yet" in lines
    assert any(line.startswith(f"  firm member work verify {work['id']} --expected-version ") for line in lines)
    me.writes(verified.replace('verifier = "cid"\n', ""))
    assert "work a: verifier cid → nothing" in me.shell.tries("up", "--detach").err
    me.ups("--yes")
    assert me.accepts(work["id"])["resolution"] == "accepted"


def test_a_ceiling_is_that_of_the_next_session_and_the_commands_that_are_named_open_it(me: Person) -> None:
    works = me.ups()["works"]
    me.shell.firm("wait", f"work:{works['a']}.phase=review")
    me.writes(TEAM.replace('name = "bob"', 'name = "bob"\nceiling = "read_only"'))
    anew = "firm close bob, then firm reopen bob"
    later = f"member bob: ceiling workspace_write → read_only (from its next session on: {anew})"
    assert f"The file asks for 1 change: {later}. " in me.shell.tries("up", "--detach").err
    assert me.ups("--yes")["not_changed"] == [f"member bob: its open session keeps the ceiling workspace_write: {anew}"]
    assert [row["ceiling"] for row in rows(me) if row["member"] == "bob"] == ["workspace_write"]
    for command in anew.split(", then "):
        me.shell.firm(*command.split()[1:])
    assert me.ups()["not_changed"] == []
    ((agent, name),) = [(each["id"], each["name"]) for each in me.shell.answer("agent", "list")["items"][1:]]
    assert name == "bob"
    (run,) = me.shell.answer("team-run", "list")["items"]
    seq = 0
    while not (opened := [s for s in _sessions(me, run["id"]) if s["state"] != "closed"]):
        seq = json.loads(me.shell.firm("wait", f"team-run:{run['id']}.seq>{seq}", "--json"))["seq"]
    assert [(each["agent_member_id"], each["ceiling"]) for each in opened] == [(agent, "read_only")]


def test_of_a_work_that_has_begun_is_said_when_a_change_counts_and_who_keeps_it(me: Person) -> None:
    pipe = me.root / "pipe"
    os.mkfifo(pipe)
    first = TEAM.replace("echo new > made", f"cat {pipe} > made").replace('needs = ["a"]\n', "")
    me.writes(first)
    work = me.ups()["works"]["a"]
    me.shell.firm("wait", f"work:{work}.phase=active")
    changed = first.replace('["it reads"]', '["it reads", "it is fast"]\nneeds = ["b"]').replace(
        '"bob"\n\n[[work]]', "@", 1
    )
    changed = changed.replace('assign = "bob"', 'assign = "cid"', 1).replace(
        "@", '"bob"\n\n[[member]]\nname = "cid"\n\n[[work]]'
    )
    me.writes(changed)
    said = me.shell.tries("up", "--detach").err
    given = "(it is active: bob has been given it as it was; firm send bob TEXT)"
    assert f"work a: criteria with it is fast {given}" in said
    assert "work a: needs with b (it is active: that holds once it is open again)" in said
    assert "work a: who does it: the Host gives it to bob → the Host gives it to cid" in said
    keeps = "work a: bob answers for it, not cid; "
    assert me.ups("--yes")["not_changed"] == [f"{keeps}it is active, and can be released once it is open again"]
    assert me.shell.firm("send", "bob", "be fast").startswith("To bob: ")
    pipe.write_text("new")
    me.shell.firm("wait", f"work:{work}.phase=review")
    (said,) = me.ups()["not_changed"]
    back = re.fullmatch(f"{keeps}firm (.+) --reason TEXT sends it back, then it can be released", said)
    assert back is not None
    me.shell.firm(*back[1].split(), "--reason", "no")
    (said,) = me.ups()["not_changed"]
    release = re.fullmatch(f"{keeps}firm (.+) takes it back, and firm up goes on", said)
    assert release is not None
    me.shell.firm(*release[1].split())
    assert me.ups()["not_changed"] == []
    assert me.shell.answer("work", "show", work)["owner"] == "cid"


def test_a_file_that_is_not_there_is_told(me: Person) -> None:
    refusal = me.shell.tries("up", "other.toml", "--json").refusal
    assert (refusal["code"], refusal["about"]) == ("FILE_UNUSABLE", "other.toml")


def test_ps_shows_who_runs_in_which_process(me: Person) -> None:
    me.shell.firm("node", "start")
    assert "No run goes on" in me.shell.firm("ps")
    works = me.ups()["works"]
    me.shell.firm("wait", f"work:{works['a']}.phase=review")
    bob = next(row for row in rows(me) if row["member"] == "bob")
    assert (bob["team"], bob["session"], bob["work"]) == ("core", "idle, live", "the parser")
    assert (bob["ceiling"], bob["ceiling_enforced"]) == ("workspace_write", False)
    assert "Ceilings are recorded and not enforced" in me.shell.firm("ps")
    assert Path(f"/proc/{bob['pid']}").exists()
    assert str(bob["pid"]) in me.shell.firm("ps")
    assert me.shell.firm("logs", "bob").strip()


def test_down_leaves_no_process_not_even_one_that_left_its_tree(me: Person) -> None:
    pipe = me.root / "pipe"
    os.mkfifo(pipe)
    script = json.dumps(LEAVES.format(pipe=str(pipe)))
    me.writes(TEAM.replace('"#!/bin/sh\\necho new > made"', script))
    me.ups()
    pid = int(pipe.read_text())
    bob = next(row for row in rows(me) if row["member"] == "bob")
    with watched(pid) as stray, watched(bob["pid"]) as worker:
        done = me.downs()
        assert done.status == 0, done
        assert has_ended(stray)
        assert has_ended(worker)
    assert [each["ended"] for each in done.json["members"]] == [True]
    daemon = me.shell.pid()
    assert [each.pid for each in me.left()] == [daemon]


def test_down_names_what_may_be_of_another_run_that_goes_on_and_the_last_one_ends_it(me: Person) -> None:
    pipe = me.root / "pipe"
    os.mkfifo(pipe)
    forgets = LEAVES.replace(
        "        while True:\n            signal.pause()\n", "        os.execve('/bin/cat', ['cat', {pipe!r}], {{}})\n"
    )
    me.writes(TEAM.replace('"#!/bin/sh\\necho new > made"', json.dumps(forgets.format(pipe=str(pipe)))))
    first = me.ups()["run"]
    pid = int(pipe.read_text())
    other = me.file.with_name("other.toml")
    other.write_text('[team]\nname = "other"\nhost = "me"\n[[member]]\nname = "cid"\n')
    second = me.ups(str(other))["run"]
    me.shell.firm("wait", f"team-run:{second}.seq>0")
    with watched(pid) as stray:
        done = me.downs(first)
        assert (done.status, done.json["left"], done.json["strays"]) == (1, [], [pid]), done
        assert not has_ended(stray)
        assert f"NOT PROVEN ENDED process {pid} lost its parents and its mark" in me.shell.tries("down", first).out
        assert me.downs(second).status == 0
        assert has_ended(stray)


@pytest.mark.parametrize("when_done", ["stay", "end"])
def test_an_up_whose_run_is_taken_down_ends_and_says_so(me: Person, when_done: str) -> None:
    """Nobody would ever do anything that it could wait for."""
    me.writes(TEAM.replace('host = "me"\n', f'host = "me"\nwhen_done = "{when_done}"\n', 1))
    works = me.ups()["works"]
    me.shell.firm("wait", f"work:{works['a']}.phase=review")
    up = me.shell.begin("up")
    assert up.stdout is not None
    while "1 review" not in (said := up.stdout.readline().decode()):
        assert said, "it ended"
    assert me.downs().json["state"] == "draining"
    out, err = up.communicate(timeout=PATIENCE)
    assert (up.returncode, complaints(err.decode())) == (1, "")
    (run,) = me.shell.answer("team-run", "list")["items"]
    told = f"Run {run['id']} was taken down, and its members have ended; firm up goes on with it."
    assert out.decode().endswith(f"Not every Work was accepted. {told}\n")


def test_down_names_what_it_could_not_prove_once_that_is_known_and_ends_it_once_a_person_has_looked(me: Person) -> None:
    """Its terminals do not answer: whether they have ended nobody can say."""
    works = me.ups()["works"]
    me.shell.firm("wait", f"work:{works['a']}.phase=review")
    server = int(json.loads((me.shell.home / "run" / "tmux" / "server.json").read_bytes())["pid"])
    os.kill(server, signal.SIGSTOP)
    try:
        done = me.downs()
    finally:
        os.kill(server, signal.SIGCONT)
    assert (done.status, done.json["state"]) == (1, "draining")
    ((name, ended, why),) = [(each["name"], each["ended"], each["why"]) for each in done.json["members"]]
    assert (name, ended, why) == ("bob", False, f"the tmux server {server} did not answer within 5 s")
    again = me.shell.tries("down")
    assert again.status == 1
    (look,) = re.findall(r"NOT PROVEN ENDED bob: .*: (firm resolve \w+)$", again.out, re.MULTILINE)
    (told,) = re.findall(r"^(firm resolve EFFECT .*)$", me.shell.firm("resolve"), re.MULTILINE)
    assert told.startswith("firm resolve EFFECT --finding confirm_applied")
    me.shell.firm(*look.split()[1:], "--finding", "confirm_applied", "--reason", "looked")
    assert me.downs().status == 0
    assert [each.pid for each in me.left()] == [me.shell.pid()]


def test_a_run_with_a_work_that_is_not_closed_stays_draining_and_up_goes_on_with_it(me: Person) -> None:
    first = me.ups()
    assert me.accepts(first["works"]["a"])["resolution"] == "accepted"
    me.shell.firm("wait", f"work:{first['works']['b']}.phase=review")
    done = me.downs("core")
    assert (done.status, done.json["state"]) == (0, "draining")
    assert "firm up goes on with it" in me.shell.firm("down", first["run"])
    assert me.ups() == first
    (run,) = me.shell.answer("team-run", "list")["items"]
    assert (run["id"], run["state"]) == (first["run"], "running")
    assert me.accepts(first["works"]["b"])["resolution"] == "accepted"
    done = me.downs()
    assert (done.status, done.json["state"]) == (0, "completed")
    assert [each.pid for each in me.left()] == [me.shell.pid()]


def test_down_of_a_run_that_is_not_there_says_which_are(me: Person) -> None:
    me.shell.firm("node", "start")
    done = me.shell.tries("down", "core")
    assert (done.status, done.out) == (2, "")
    assert "firm up FILE" in done.err


def test_the_first_commands_of_the_readme_work_as_they_stand(me: Person) -> None:
    blocks = re.findall(r"^```(?:toml)?\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (file,) = (block for block in blocks if block.startswith("[team]"))
    (commands,) = (block for block in blocks if "firm up team.toml" in block)
    me.writes(file)
    done = me.shell.bash("set -e\n" + commands)
    # A daemon that is slow to begin is said to be waited for.
    said = [line for line in done.err.splitlines() if not line.startswith("firm: waiting for the daemon (")]
    assert (done.status, said) == (0, []), done
    assert "kiwi" in done.out
    assert me.left() == []
