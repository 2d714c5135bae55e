"""A node on which no run goes on, or several: what asks for one says so, and what to type."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.shell import Shell

ONE_MEMBER = """\
[team]
name = "TEAM"
host = "me"

[[member]]
name = "MEMBER"
profile = "external"
"""
BEGIN = "no run goes on; begin one: firm up FILE, or name one that ended: firm team-run list"


@pytest.mark.parametrize("words", [["board"], ["work", "list"], ["work", "graph"]], ids=" ".join)
def test_without_a_run_a_command_says_how_one_is_begun(served: Shell, words: list[str]) -> None:
    done = served.tries(*words)
    assert (done.status, done.out) == (1, "")
    assert done.err.endswith(f"[NOT_FOUND team_run_id]\n  To lift it: {BEGIN}\n")


@pytest.mark.parametrize(
    "words", [["attach", "bob"], ["logs", "bob"], ["send", "bob", "hi"], ["reopen", "bob"], ["down"]]
)
def test_without_a_run_nobody_takes_part(served: Shell, words: list[str]) -> None:
    done = served.tries(*words)
    assert (done.status, done.err) == (2, "firm: No run goes on. [USAGE]\n  To lift it: start one: firm up FILE\n")


def test_without_a_run_there_is_nobody_and_no_mail(served: Shell) -> None:
    assert served.firm("ps") == "No run goes on. Start one: firm up FILE\n"
    assert served.firm("inbox") == "None. No run goes on; start one: firm up FILE\n"


def test_with_several_runs_they_are_named_and_a_member_is_found_in_its_own(shell: Shell) -> None:
    runs: list[str] = []
    for team, member in (("core", "bob"), ("docs", "cid")):
        file = shell.cwd / f"{team}.toml"
        file.write_text(ONE_MEMBER.replace("TEAM", team).replace("MEMBER", member))
        shell.firm("up", file.name, "--detach")
        runs += [each["id"] for each in shell.answer("team-run", "list", "--team-id", team)["items"]]
    which = f"say which with --team-run-id: {runs[0]} of core, {runs[1]} of docs"
    for words in (["board"], ["work", "list"], ["work", "graph"]):
        assert shell.tries(*words, "--json").refusal["lifted_by"] == f"several runs go on; {which}"
        assert shell.firm(*words, "--team-run-id", runs[1])
    assert [line.split()[0] for line in shell.firm("ps").splitlines()[1:]] == ["core", "core", "docs", "docs"]
    assert shell.firm("inbox") == "None.\n"
    for team, member in (("core", "bob"), ("docs", "cid")):
        shown = shell.answer("team-run", "show", runs[0] if team == "core" else runs[1])["members"]
        (place,) = [each["member_run"] for each in shown if each["name"] == member]
        shell.firm("member-run", "close", place["id"], "--expected-version", str(place["version"]))
        assert shell.firm("reopen", member) == f"{member} takes part again; its process is started.\n"
        done = shell.tries("reopen", member)
        assert f"'{member}' has no closed place in run {place['team_run_id']}" in done.err


def test_the_last_screen_of_a_name_that_fits_two_members_is_that_of_neither(shell: Shell) -> None:
    with shell.running():
        ids: list[str] = []
        for team in ("a", "b"):
            ids.append(shell.answer("agent", "create", "kiwi")["id"])
            shell.firm("team", "create", team, "--host-agent-id", ids[-1])
            run = shell.answer("team-run", "create", team)
            shell.firm("team-run", "start", str(run["id"]), "--expected-version", "1")
            with subprocess.Popen(["/bin/sleep", "60"]) as own:
                session = shell.answer("session", "bind", ids[-1], "--pid", str(own.pid))
                own.kill()
            shell.firm("wait", f"session:{session['id']}.state=closed")
        done = shell.tries("logs", "kiwi", "--last")
        assert done.status == 2
        assert all(each in done.err for each in ids)


def test_reopen_says_what_a_process_waits_for_where_the_run_drains(shell: Shell) -> None:
    (shell.cwd / "team.toml").write_text(ONE_MEMBER.replace("TEAM", "core").replace("MEMBER", "bob"))
    shell.firm("up", "--detach")
    (run,) = shell.answer("team-run", "list")["items"]
    drained = shell.answer("team-run", "drain", run["id"], "--expected-version", str(run["version"]))
    (place,) = [
        each["member_run"] for each in shell.answer("team-run", "show", run["id"])["members"] if each["name"] == "bob"
    ]
    shell.firm("member-run", "close", place["id"], "--expected-version", str(place["version"]))
    resume = f"firm team-run resume {run['id']} --expected-version"
    said = shell.firm("reopen", "bob")
    assert said.startswith(
        f"bob takes part again; its process is started once the run, which is draining, goes on: {resume} "
    )
    assert int(said.split()[-1]) >= drained["version"]
