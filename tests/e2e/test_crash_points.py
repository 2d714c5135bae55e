"""What a kill leaves behind, in particular. That it does so at every boundary: ``test_kill_matrix.py``."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.runs import Field


def test_an_up_whose_daemon_is_killed_in_a_launch_is_asked_again_and_ends_with_one_proven_process(field: Field) -> None:
    field.team("kiwi")
    dying = field.start(FIRM_CRASH_AT="launch-done")
    field.call("up", "team.toml", "--detach")  # the daemon may be gone before it is done
    assert dying.wait() == -signal.SIGKILL
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (session,) = field.until_live()
    assert field.roots() == [session["pid"]]
    unsettled = [e for e in field.ask("effect", "list")["items"] if e["state"] != "settled"]
    assert unsettled == []
    assert field.call("down").returncode == 0
    assert (field.members(), field.server_lives()) == ([], False)


def test_killed_between_an_end_and_how_it_ended_the_next_daemon_starts_its_successor(field: Field) -> None:
    """How it ended stays unread, and is called so."""
    field.team("kiwi")
    dying = field.start(FIRM_CRASH_AT="exit-reported")
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (first,) = field.until_live()
    os.kill(first["pid"], signal.SIGKILL)
    assert dying.wait() == -signal.SIGKILL
    field.start()
    field.wait(f"session:{first['id']}.state=closed")
    (second,) = field.until_live()
    assert (second["session_gen"], field.roots()) == (first["session_gen"] + 1, [second["pid"]])
    kinds = [each["kind"] for each in field.ask("event", "list", "--stream", f"session/{first['id']}")["items"]]
    assert kinds[-2:] == ["exited: how it ended is not read yet", "superseded"]


def test_members_outlive_the_daemon_and_are_adopted_as_they_are(field: Field) -> None:
    field.team("kiwi", "lime")
    first = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    before = {s["id"]: s["pid"] for s in field.until_live(2)}
    first.kill()
    assert sorted(field.roots()) == sorted(before.values())
    field.start()
    run = field.ask("team-run", "list")["items"][0]["id"]
    for session_id in before:
        field.wait(f"session:{session_id}.version>3")
    after = {s["id"]: (s["pid"], s["sup_gen"]) for s in field.live()}
    assert {each: pid for each, (pid, _) in after.items()} == before
    assert field.ask("team-run", "show", run)["run"]["sup_gen"] == 2


def test_a_member_that_is_killed_gets_a_successor_and_only_one(field: Field) -> None:
    field.team("kiwi")
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (first,) = field.until_live()
    os.kill(first["pid"], signal.SIGKILL)
    field.wait(f"session:{first['id']}.state=closed")
    (second,) = field.until_live()
    assert (second["session_gen"], field.roots()) == (first["session_gen"] + 1, [second["pid"]])


def test_a_member_that_died_with_its_terminal_while_no_daemon_looked_gets_a_successor(field: Field) -> None:
    """Nobody saw how it ended; that it has is proven, and nothing that carries its mark is left."""
    field.team("kiwi")
    daemon = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (first,) = field.until_live()
    daemon.kill()
    server = field.server()
    assert server is not None
    os.kill(server, signal.SIGKILL)
    field.start()
    field.wait(f"session:{first['id']}.state=closed")
    (second,) = field.until_live()
    assert (second["session_gen"], field.roots()) == (first["session_gen"] + 1, [second["pid"]])
    kinds = [each["kind"] for each in field.ask("event", "list", "--stream", f"session/{first['id']}")["items"]]
    assert "exited: lost: its terminal is gone and its process has ended" in kinds


def test_a_member_that_outlives_its_terminal_is_lost_within_seconds_and_a_person_ends_it(field: Field) -> None:
    """It does not listen when its terminal hangs up: nobody sees it or types to it, and it is not shown as running."""
    profiles = Path(field.environment["XDG_CONFIG_HOME"]) / "firm" / "profiles"
    profiles.mkdir(parents=True)
    stands = field.home.temporary / "stands"
    os.mkfifo(stands)
    deaf = f"trap '' HUP; echo it does > {stands}; while :; do sleep 600; done"
    (profiles / "deaf.toml").write_text(f'argv = ["/bin/sh", "-c", "{deaf}"]\n')
    path = field.team("kiwi")
    path.write_text(path.read_text() + 'profile = "deaf"\n')
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (session,) = field.until_live()
    assert stands.read_text() == "it does\n"
    server = field.server()
    assert server is not None
    os.kill(server, signal.SIGKILL)
    waited = field.look("event.wait", predicate=f"session:{session['id']}.state=recovery_required", timeout_ms=5000)
    assert not waited["timed_out"]
    kinds = [each["kind"] for each in field.ask("event", "list", "--stream", f"session/{session['id']}")["items"]]
    assert kinds[-1] == "lost: lost: its terminal is gone, its process is not"
    assert field.roots() == [session["pid"]]
    assert field.call("close", "kiwi").returncode == 0
    assert field.roots() == []
    assert field.call("down").returncode == 0
