"""``firm up`` with ``when_done = "end"``: a team ends by itself once its last Work is closed, in a real tmux."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.shell import PATIENCE, complaints
from tests.support.apart import apart, until_adopted
from tests.support.runs import Field
from tests.support.teams import Person, person

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

#: A managed Host, a member, and two Works of which the second needs the first.
TEAM = """\
[team]
name = "core"
host = "ann"
when_done = "end"

[[member]]
name = "ann"

[[member]]
name = "bob"

[[work]]
key = "a"
title = "the parser"
criteria = ["it reads"]
context = "#!/bin/sh\\necho new > made"
check = ["there=test -e made"]
assign = "bob"

[[work]]
key = "b"
title = "the printer"
criteria = ["it prints"]
context = "#!/bin/sh\\necho more > printed"
check = ["there=test -e printed"]
needs = ["a"]
assign = "bob"
"""


@pytest.fixture
def me() -> Generator[Person]:
    with person() as made:
        made.writes(TEAM)
        yield made


def the_run(me: Person) -> dict[str, Any]:
    (run,) = me.shell.answer("team-run", "list")["items"]
    return dict(run)


def test_a_managed_team_ends_by_itself_and_leaves_nothing(me: Person) -> None:
    """From the file to the end nobody types anything; the Host is ended with the others."""
    done = me.shell.tries("up", "--json")
    assert (done.status, complaints(done.err)) == (0, ""), done
    assert (done.json["accepted"], done.json["state"], done.json["left"]) == (True, "completed", [])
    assert the_run(me)["state"] == "completed"
    assert "No run goes on" in me.shell.firm("ps")
    assert [each.pid for each in me.left()] == [me.shell.pid()]
    sessions = me.shell.answer("session", "list")["items"]
    assert {each["state"] for each in sessions} == {"closed"}
    stops = [each for each in me.shell.answer("effect", "list", the_run(me)["id"])["items"] if each["kind"] == "stop"]
    assert [each["certainty"] for each in stops] == ["applied", "applied"]


def test_nobody_has_to_follow_it(me: Person) -> None:
    """The run ends without ``firm up``, and a second ``firm up`` of the same file follows it to its end."""
    first = me.ups()
    again = me.shell.begin("up", "--json")
    out, err = again.communicate(timeout=PATIENCE)
    assert (again.returncode, complaints(err.decode())) == (0, "")
    assert json.loads(out)["run"] == first["run"]
    assert the_run(me)["state"] == "completed"
    assert [each.pid for each in me.left()] == [me.shell.pid()]


def test_an_up_while_its_members_are_being_ended_takes_nothing_back(field: Field) -> None:
    """Whoever ends them stands still in the middle of that."""
    work = '[[work]]\nkey = "w"\ntitle = "wait"\ncriteria = ["x"]\nassign = "kiwi"\ncontext = "#!/bin/sh"\n'
    file = field.team("kiwi", works=work)
    file.write_text(file.read_text().replace('host = "me"\n', 'host = "me"\nwhen_done = "end"\n'))
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (session,) = field.until_live()
    run_id = session["team_run_id"]
    with apart(field, run_id, lease=60, FIRM_CRASH_AT="stop-prepared:1:stop") as other:
        until_adopted(field, session["id"], other.sup_gen)
        (work,) = field.look("work.list")["items"]
        field.wait(f"work:{work['id']}.phase=review")  # its member has done with it, and it moves no more
        (work,) = field.look("work.list")["items"]
        field.ask("work", "cancel", work["id"], "--expected-version", str(work["version"]), "--reason", "no")
        os.waitid(os.P_PID, other.process.pid, os.WSTOPPED)
        before = field.look("team-run.show", team_run_id=run_id)["run"]
        assert (before["state"], before["completing"]) == ("draining", True)
        assert field.call("up", "team.toml", "--detach").returncode == 0
        assert field.look("team-run.show", team_run_id=run_id)["run"] == before
        other.process.send_signal(signal.SIGCONT)
        field.wait(f"team-run:{run_id}.state=completed")
    assert field.members() == []


def test_a_person_who_hosts_says_when_a_work_is_done_and_with_the_last_it_ends(me: Person) -> None:
    """Also when not every Work was accepted; then the status says so."""
    text = TEAM.replace('host = "ann"', 'host = "me"').replace('[[member]]\nname = "ann"\n', "", 1)
    me.writes("\n".join(line for line in text.splitlines() if not line.startswith("check")))
    works = me.ups()["works"]
    up = me.shell.begin("up")
    assert me.accepts(works["a"])["resolution"] == "accepted"
    me.shell.firm("wait", f"work:{works['b']}.phase=review", "--timeout-ms", "60000")
    assert the_run(me)["state"] == "running"
    version = str(me.works()["the printer"]["version"])
    me.shell.answer("work", "fail", works["b"], "--expected-version", version, "--reason", "no")
    out, err = up.communicate(timeout=PATIENCE)
    assert (up.returncode, complaints(err.decode())) == (1, "")
    assert (
        f"Not every Work was accepted. Run {the_run(me)['id']} is completed, and its members have ended."
        in out.decode()
    )
    assert [each.pid for each in me.left()] == [me.shell.pid()]


def test_down_ends_what_would_have_ended_by_itself_and_up_goes_on_with_it(me: Person) -> None:
    me.writes(TEAM.replace("echo more > printed", "exec sleep 600"))
    first = me.ups()
    me.shell.firm("wait", f"work:{first['works']['b']}.phase=active", "--timeout-ms", "60000")
    done = me.downs()
    assert (done.status, done.json["state"]) == (0, "draining")
    assert me.ups() == first
    run = the_run(me)
    assert (run["state"], run["completing"]) == ("running", True)
