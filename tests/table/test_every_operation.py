"""What every operation may refuse with, or every write: asked of each of them through the dispatcher."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from client.protocol import codec
from client.protocol.agent import CreateAgent
from client.protocol.ids import AgentMemberRef, Folder, TeamRef
from client.protocol.node import ShowStatus
from client.protocol.operation import Effect, Operation, Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.shape import shapes
from client.protocol.table import OPERATIONS
from client.protocol.team import CreateTeam, HandOverTeam, UpdateTeam
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.samples import SAMPLES, sample, well_formed
from tests.support.samples_of_runs import ON_STAGE

WRITES = [op for op in OPERATIONS if op.effect is Effect.WRITE]
LOOKS = [op for op in OPERATIONS if op.effect in {Effect.READ, Effect.SCAN}]
BEGINS = [op for op in OPERATIONS if op.effect not in {Effect.READ, Effect.SCAN} and op.name != "node.status"]
#: Tables of records that change.
KEEPERS = (
    *(
        "agents",
        "bindings",
        "capabilities",
        "delegations",
        "effects",
        "member_runs",
        "memberships",
        "message_deliveries",
    ),
    *("projects", "sessions", "team_runs", "teams", "work_deliveries", "works"),
)
#: Refuses before it looks at anything.
SOMEBODY = "somebody"

every_operation = pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: str(op.name))
every_write = pytest.mark.parametrize("op", WRITES, ids=lambda op: str(op.name))


async def refused(node: InProcessNode, op: Operation, body: object, plane: Plane = Plane.OPERATOR) -> Refusal:
    actor = "" if plane is Plane.OPERATOR else SOMEBODY
    outcome = await node.begin(op.name, body, plane=plane, actor=actor).outcome()
    assert isinstance(outcome, Refusal), outcome
    return outcome


@every_operation
async def test_every_operation_has_an_answer(node: InProcessNode, op: Operation) -> None:
    """It is of the declared type, and says up to which sequence number it is true."""
    assert {*SAMPLES, *ON_STAGE} == {each.name for each in OPERATIONS}
    who, request = await sample(node, op.name)
    exchange = node.send(request, plane=who.plane, actor=who.actor)
    await wait_all_tasks_blocked()
    if op.effect is Effect.STREAM and exchange.nothing_yet():
        await scene.agent(node)
    frame = await exchange.frame()
    assert type(codec.outcome(op, frame)) is op.response
    assert frame["seq"] == node.store.seq
    assert ("more" in frame) == (op.effect is Effect.STREAM)


@pytest.mark.parametrize("op", LOOKS, ids=lambda op: str(op.name))
async def test_what_looks_creates_nothing(node: InProcessNode, op: Operation) -> None:
    """No row, no event, and no commit; asked twice, the same is answered."""
    who, request = await sample(node, op.name)
    before, seq = node.rows(), node.store.seq
    first, again = [await node.ask(request, plane=who.plane, actor=who.actor) for _ in range(2)]
    assert not isinstance(first, Refusal), first
    assert again == first
    assert (node.rows(), node.store.seq) == (before, seq)


async def test_an_operation_that_does_not_exist_is_refused(node: InProcessNode) -> None:
    for name in ("agent.destroy", "agent", "", "AGENT.LIST", "n" * 5000):
        outcome = await node.begin(name, {}).outcome()
        assert outcome == Refusal(
            code=Code.UNKNOWN_OPERATION,
            about=name[:200],
            lifted_by="see what there is: firm --help; another version of firm may have it",
        )


async def test_every_operation_refuses_every_plane_that_it_does_not_name(node: InProcessNode) -> None:
    before = node.rows()
    for op in OPERATIONS:
        for plane in set(Plane) - op.planes:
            assert await refused(node, op, well_formed(op), plane) == Refusal(
                code=Code.NOT_AUTHORIZED,
                about=op.name,
                lifted_by=f"ask as {' or '.join(sorted(op.planes))}; this connection is {plane}",
            )
    assert node.rows() == before


async def test_every_operation_refuses_a_body_that_is_no_map(node: InProcessNode) -> None:
    bodies: list[object] = [[], "text", 1, True, None, b"bytes", {b"name": 1}]
    before = node.rows()
    for op in OPERATIONS:
        for body in bodies:
            assert await refused(node, op, body, min(op.planes)) == Refusal(
                code=Code.MALFORMED, about="body", lifted_by="send body as a map of field names"
            ), op.name
    assert node.rows() == before


async def test_a_daemon_that_drains_begins_nothing(node: InProcessNode) -> None:
    before = node.rows()
    node.dispatcher.draining = True
    for op in BEGINS:
        assert await refused(node, op, well_formed(op), min(op.planes)) == Refusal(
            code=Code.NODE_DAEMON_DRAINING,
            about="node",
            lifted_by="ask again when it has started: firm node start",
        ), op.name
    assert node.rows() == before


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op not in BEGINS], ids=lambda op: str(op.name))
async def test_a_daemon_that_drains_still_tells(node: InProcessNode, op: Operation) -> None:
    who, request = await sample(node, op.name)
    node.dispatcher.draining = True
    await who.ok(request)


async def test_first_the_plane_then_draining_then_the_shape(node: InProcessNode) -> None:
    """Who may not ask learns nothing more; and a request that must wait is not first sent back for its form."""
    node.dispatcher.draining = True
    (op,) = [op for op in OPERATIONS if op.name == "agent.create"]
    assert (await refused(node, op, [], Plane.MEMBER)).code is Code.NOT_AUTHORIZED
    assert (await refused(node, op, [])).code is Code.NODE_DAEMON_DRAINING
    node.dispatcher.draining = False
    assert (await refused(node, op, [])).code is Code.MALFORMED


@every_write
async def test_every_write_answers_the_same_key_with_the_same_bytes(node: InProcessNode, op: Operation) -> None:
    """Also when the record has moved on since; and it changes nothing again."""
    who, request = await sample(node, op.name)
    first = await node.send(request, plane=who.plane, actor=who.actor, key="once").frame()
    assert first["replayed"] is False
    for table in KEEPERS:
        node.execute(f"UPDATE {table} SET version = version + 7, updated_at = updated_at + 1")  # noqa: S608 — ours
    node.execute("UPDATE agents SET name = name || ' the second'")
    before = node.rows()
    again = await node.send(request, plane=who.plane, actor=who.actor, key="once").frame()
    assert again["replayed"] is True
    assert codec.packb(again["answer"]) == codec.packb(first["answer"])
    assert node.rows() == before


def changed(op: Operation, request: object) -> dict[str, Any]:
    """The body of ``request`` with another value in one field."""
    body = codec.to_plain(request)
    free = [s.name for s in shapes(op.request) if s.kind in {str, int} and isinstance(body[s.name], str | int)]
    # Whom or what it is about is left as it is, where there is anything else: that is who may ask.
    name = max(free, key=lambda name: (not name.endswith("_id"), free.index(name)))
    return {**body, name: body[name] + (" " if isinstance(body[name], str) else 1)}


@every_write
async def test_every_write_refuses_a_key_that_stands_for_another_request(node: InProcessNode, op: Operation) -> None:
    who, request = await sample(node, op.name)
    await who.ok(request, key="once")
    before = node.rows()
    outcome = await node.begin(op.name, changed(op, request), plane=who.plane, actor=who.actor, key="once").outcome()
    assert outcome == Refusal(
        code=Code.IDEMPOTENCY_KEY_REUSED,
        about="once",
        lifted_by="use a new key for another request; repeat the first one word for word to see its answer",
    )
    assert node.rows() == before


async def test_a_key_belongs_to_one_actor_and_one_operation(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    rename = UpdateTeam(team_id=TeamRef(crew.team.id), expected_version=1, name="ship")
    assert (await node.ok(CreateAgent(name="zoe"), key="k")).name == "zoe"
    assert (await node.ok(rename, key="k")).version == 2
    by_host = await node.send(rename, plane=Plane.HOST, actor=crew.ann.id, key="k").outcome()
    assert by_host == refusals.conflict(f"team/{crew.team.id}", 2)


async def test_the_order_of_fields_makes_no_other_request(node: InProcessNode) -> None:
    first = await node.begin("agent.create", {"name": "ann", "role": "r"}, key="k").frame()
    again = await node.begin("agent.create", {"role": "r", "name": "ann"}, key="k").frame()
    assert (again["replayed"], again["answer"]) == (True, first["answer"])


async def test_a_refusal_is_not_remembered(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    request = HandOverTeam(team_id=TeamRef(crew.team.id), expected_version=1, to_agent_id=AgentMemberRef(crew.eve.id))
    assert (await node.refused(request, key="k")).code is Code.INVALID_STATE_TRANSITION
    await scene.joined(node, crew.team, crew.eve)
    assert (await node.ok(request, key="k")).team.version == 2


async def test_a_request_without_a_key_is_done_again(node: InProcessNode) -> None:
    first, second = await node.ok(CreateAgent(name="ann")), await node.ok(CreateAgent(name="ann"))
    assert first.id != second.id


async def test_whoever_may_not_do_a_thing_any_more_learns_nothing_from_a_key(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    ref = TeamRef(crew.team.id)
    rename = UpdateTeam(team_id=ref, expected_version=1, name="ship")
    await node.ok(rename, plane=Plane.HOST, actor=crew.ann.id, key="k")
    await node.ok(HandOverTeam(team_id=ref, expected_version=2, to_agent_id=AgentMemberRef(crew.bob.id)))
    refusal = await node.refused(rename, plane=Plane.HOST, actor=crew.ann.id, key="k")
    assert refusal == refusals.not_run_by_caller(crew.team.id)


async def test_a_key_answers_when_the_folder_of_its_request_is_gone(node: InProcessNode, tmp_path: Path) -> None:
    ann, folder = await scene.agent(node), tmp_path / "folder"
    await trio.Path(folder).mkdir()
    request = CreateTeam(name="crew", host_agent_id=AgentMemberRef(ann.id), project=Folder(str(folder)))
    made = await node.ok(request, key="k")
    await trio.Path(folder).rmdir()
    assert await node.ok(request, key="k") == made
    assert (await node.refused(request)).code is Code.FILE_UNUSABLE


@pytest.mark.parametrize("name", ["agent.create", "agent.list", "event.wait", "event.watch"])
async def test_a_failure_is_answered_and_logged_under_one_name_and_the_daemon_goes_on(
    node: InProcessNode, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """One operation of each effect, failing as a bug does: a statement that the database does not know."""
    _, request = await sample(node, name)
    column = "agents RENAME model" if name.startswith("agent.") else "events RENAME body"
    node.execute(f"ALTER TABLE {column} TO other")
    outcome = await node.refused(request)
    assert (outcome.code, outcome.about) == (Code.INTERNAL, name)
    advice = r"read the log at incident ([0-9a-f]{8}) \(firm node logs\) and report it; asking again is safe"
    said = re.fullmatch(advice, outcome.lifted_by)
    assert said is not None
    (logged,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert logged.getMessage() == f"{name} failed, incident {said[1]}"
    assert logged.exc_info is not None
    assert (await node.ok(ShowStatus())).live


async def test_a_failure_of_one_unit_takes_no_neighbour_along(node: InProcessNode) -> None:
    """Three writes of one batch, the second of which fails."""
    crew = await scene.crew(node)
    node.execute("CREATE TRIGGER fails BEFORE INSERT ON agents WHEN new.name = 'zoe' BEGIN SELECT no_function(); END")
    asked = [
        node.send(UpdateTeam(team_id=TeamRef(crew.team.id), expected_version=1, name="ship")),
        node.send(CreateAgent(name="zoe")),
        node.send(UpdateTeam(team_id=TeamRef(crew.team.id), expected_version=2, name="boat")),
    ]
    first, failed, last = [await each.outcome() for each in asked]
    assert not isinstance(first, Refusal)
    assert isinstance(failed, Refusal)
    assert failed.code is Code.INTERNAL
    assert not isinstance(last, Refusal)
