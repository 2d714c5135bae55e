"""The command in a member's environment: FIRM_SOCKET says whom it asks, and nobody else is asked instead."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import attrs
import pytest

from tests.cli.conftest import somebody
from tests.cli.shell import Shell


@attrs.frozen
class Member:
    """``shell`` is an environment as a launch makes it; ``person`` has the daemon that a shell without a word of firm
    in it would ask.
    """

    shell: Shell
    person: Shell

    def told(self, socket: Path | str, capability: str = "") -> Shell:
        return self.shell.having(FIRM_SOCKET=str(socket), FIRM_CAPABILITY=capability)


@pytest.fixture(scope="module")
def member() -> Generator[Member]:
    with somebody() as any_shell:
        state = any_shell.cwd / "state"
        person = any_shell.having(FIRM_HOME=str(state / "firm"))
        person.firm("node", "start")
        try:
            yield Member(any_shell.having(FIRM_HOME="", XDG_STATE_HOME=str(state)), person)
        finally:
            person.tries("node", "stop")


def test_a_socket_that_nobody_listens_at_is_refused_and_nobody_else_is_asked(member: Member) -> None:
    assert member.shell.tries("team", "list").status == 0  # whom a shell would ask that is told nothing
    done = member.told("/nosuch/member.sock").tries("team", "list", "--json")
    assert (done.status, done.refusal["code"]) == (4, "NODE_DAEMON_UNAVAILABLE")
    why = "nobody answers at /nosuch/member.sock (No such file or directory), which FIRM_SOCKET names"
    assert why in done.refusal["meaning"]
    assert done.refusal["lifted_by"] == "ask the person at this machine: firm node start"


@pytest.mark.parametrize("door", ["member.sock", "node.sock"])
@pytest.mark.parametrize(("capability", "code"), [("of another store", "CAPABILITY_DENIED"), ("", "NOT_AUTHORIZED")])
def test_a_daemon_that_does_not_know_the_session_refuses_it(
    member: Member, door: str, capability: str, code: str
) -> None:
    """Also at the door of the person whose key this shell could read: a member never shows it."""
    told = member.told(Path(member.person.env()["FIRM_HOME"]) / "run" / door, capability)
    done = told.tries("team", "list", "--json")
    assert (done.status, done.refusal["code"]) == (1, code)


def test_a_home_that_somebody_names_is_asked_instead(member: Member) -> None:
    told = member.told("/nosuch/member.sock", "of another store")
    assert told.having(FIRM_HOME=member.person.env()["FIRM_HOME"]).tries("team", "list").status == 0


@pytest.mark.parametrize("verb", ["stop", "logs", "install"])
def test_what_is_done_to_a_daemon_needs_its_folder(member: Member, verb: str) -> None:
    pid = member.person.pid()
    done = member.told("/nosuch/member.sock").tries("node", verb)
    assert (done.status, "FIRM_HOME" in done.err) == (2, True)
    assert member.person.pid() == pid


def test_the_status_of_the_daemon_that_is_named_is_said_without_its_folder(member: Member) -> None:
    done = member.told("/nosuch/member.sock").tries("node", "status")
    assert (done.status, "which FIRM_SOCKET names" in done.err) == (4, True)
