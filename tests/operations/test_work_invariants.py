"""Invariants of a Work that no single verb shows: events, keys, readiness, completion. I numbers are of the domain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import msgpack
import pytest

from client.protocol.ids import AgentMemberRef, TeamRef
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.shape import shapes
from client.protocol.table import OPERATIONS
from client.protocol.team import HandOverTeam
from client.protocol.team_run import CompleteTeamRun, TeamRun
from client.protocol.work import Phase, Work
from client.protocol.work_asks import ClaimWork, CreateWork, ReplaceDependencies, UpdateWork
from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import close_all
from tests.support.works import VERBS


def folded(node: InProcessNode, work: Work) -> dict[int, dict[str, Any]]:
    """What the events of a Work add up to, at each of its versions."""
    state: dict[str, Any] = {}
    found: dict[int, dict[str, Any]] = {}
    for row in sorted(row for row in node.rows()["events"] if row[2] == f"work/{work.id}"):
        state = {**state, **msgpack.unpackb(row[6])}
        found[row[3]] = state
    return found


def plain(work: Work) -> dict[str, Any]:
    return {f.name: getattr(value := getattr(work, f.name), "value", value) for f in attrs.fields(Work)}


async def long_way(s: Stage) -> list[Work]:
    """Everything that may happen to one Work, one after the other."""
    need = await works.accepted(s, await s.submitted(s.cid, "need"))
    way = [await s.work()]

    async def then(name: str, who: Callable[[Stage], works.Voice], **changes: object) -> None:
        request: Any = VERBS[name].request(s, way[-1])
        way.append(await who(s).ok(attrs.evolve(request, **changes)))

    await then("replace-dependencies", works.ann, prerequisite_work_ids=[need.id])
    for name, who in (
        ("claim", works.bob),
        ("release", works.bob),
        ("assign", works.ann),
        ("redeliver", works.operator),
        ("update", works.ann),
        ("hold", works.ann),
        ("unhold", works.ann),
    ):
        await then(name, who)
    await s.admit(way[-1], s.bob)
    for name in ("start", "block", "resume"):
        await then(name, works.bob)
    await works.lost(s, s.bob)
    await then("recover", works.operator)
    await then("retarget", works.ann)
    await then("assign", works.ann, membership_id=s.cid.membership.id)
    for last in ("request-changes", "accept"):
        await s.admit(way[-1], s.cid)
        await then("start", works.cid)
        await then("submit", works.cid)
        await then(last, works.ann)
    return way


async def test_i2_every_change_is_one_event_and_the_row_is_their_sum(node: InProcessNode) -> None:
    """At every version; the sequence is the version, without a gap."""
    s = await stage(node)
    way = await long_way(s)
    assert [work.version for work in way] == list(range(1, len(way) + 1))
    found = folded(node, way[-1])
    assert list(found) == [work.version for work in way]
    for work in way:
        assert found[work.version] == plain(work)


async def test_i2_the_events_of_every_record_of_a_run_add_up_to_its_row(node: InProcessNode) -> None:
    s = await stage(node)
    await long_way(s)
    tables = {"work": "works", "binding": "bindings", "delivery": "work_deliveries"}
    for noun, table in tables.items():
        for row in node.rows()[table]:
            found = sorted(e for e in node.rows()["events"] if e[2] == f"{noun}/{row[1]}")
            assert [e[3] for e in found] == list(range(1, row[2] + 1))


#: Verbs that say which version they saw; an attempt is spoken of by its session, generation and fence.
VERSIONED = [
    op.verb for op in OPERATIONS if op.noun == "work" and "expected_version" in {s.name for s in shapes(op.request)}
]


@pytest.mark.parametrize("name", VERSIONED)
async def test_i4_a_version_that_is_not_the_current_one_changes_nothing_of_any_verb(
    node: InProcessNode, name: str
) -> None:
    """One of before, the next, and one that is far ahead."""
    s, verb = await stage(node), VERBS[name]
    work = await verb.work(s)
    request: Any = verb.request(s, work)
    for version in {1, work.version - 1, work.version + 1, 2**53} - {0, work.version}:
        refusal = await verb.who(s).refused(attrs.evolve(request, expected_version=version))
        assert (refusal.code, refusal.current_version) == (Code.VERSION_CONFLICT, work.version)


async def test_i5_a_key_answers_as_it_did_though_the_work_moved_on(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    ask = ClaimWork(work_id=work.id, expected_version=1)
    first = await works.bob(s).ok(ask, key="k")
    await s.admit(first, s.bob)
    await s.submit(await s.start(first, s.bob), s.bob)
    assert await works.bob(s).ok(ask, key="k") == first
    other = await works.bob(s).refused(attrs.evolve(ask, expected_version=2), key="k")
    assert other.code is Code.IDEMPOTENCY_KEY_REUSED


async def test_i6_authority_comes_before_a_remembered_answer(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    ask = ReplaceDependencies(work_id=work.id, expected_version=1)
    await works.ann(s).ok(ask, key="k")
    over = HandOverTeam(team_id=TeamRef(s.team.id), expected_version=1, to_agent_id=AgentMemberRef(s.bob.agent.id))
    await node.ok(over)
    assert (await works.ann(s).refused(ask, key="k")).code is Code.NOT_AUTHORIZED


async def test_i7_neither_assign_nor_claim_nor_admission_moves_a_phase(node: InProcessNode) -> None:
    s = await stage(node)
    for name, who in (("assign", works.ann), ("claim", works.bob)):
        work = await s.work(name)
        after = await who(s).ok(VERBS[name].request(s, work))
        assert (after.phase, after.condition) == (Phase.OPEN, work.condition)
    work = await works.admitted(s)
    assert (await s.shown(work)).work.phase is Phase.OPEN


async def test_i10_two_starts_of_one_member_in_one_batch_start_one_work(node: InProcessNode) -> None:
    """The second delivery is of a time before; only the check at the start stands in the way."""
    s = await stage(node)
    first, second = await s.owned(s.bob, "a"), await s.owned(s.bob, "b")
    await s.admit(first, s.bob)
    node.execute("UPDATE bindings SET membership_id = ?", s.cid.membership.id)
    await s.admit(second, s.bob)
    asks = [VERBS["start"].request(s, work) for work in (first, second)]
    sent = [node.send(ask, plane=Plane.MEMBER, actor=s.bob.session) for ask in asks]
    one, two = [await each.outcome() for each in sent]
    assert isinstance(one, Work)
    assert isinstance(two, Refusal)
    assert two.code is Code.MEMBER_BUSY


@pytest.mark.parametrize("at", ["claim", "admit", "start"])
async def test_i12_readiness_is_looked_at_again(node: InProcessNode, at: str) -> None:
    """A need that is added in between counts at the next step; accepted, it stands in nobody's way."""
    s = await stage(node)
    need = await s.submitted(s.cid, "need")
    make: dict[str, Callable[[], Awaitable[Work]]] = {
        "claim": s.work,
        "admit": lambda: s.owned(s.bob),
        "start": lambda: works.admitted(s),
    }
    work = await make[at]()
    ask = ReplaceDependencies(work_id=work.id, expected_version=work.version, prerequisite_work_ids=[need.id])
    work = await works.ann(s).ok(ask)
    request = VERBS[at].request(s, work)
    refusal = await VERBS[at].who(s).refused(request)
    assert (refusal.code, refusal.about) == (Code.WORK_NOT_READY, f"work/{work.id}")
    await works.accepted(s, need)
    await VERBS[at].who(s).ok(request)


async def test_i15_an_acceptance_is_of_the_receipt_and_the_version_that_were_reviewed(node: InProcessNode) -> None:
    """An edit after the review moves the version, so that the acceptor looks again."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    ask = VERBS["accept"].request(s, work)
    await works.ann(s).ok(UpdateWork(work_id=work.id, expected_version=work.version, context="more"))
    assert (await works.ann(s).refused(ask)).code is Code.VERSION_CONFLICT


@pytest.mark.parametrize("first", ["complete", "create"])
async def test_i16_a_run_is_complete_or_has_the_new_work_never_both(node: InProcessNode, first: str) -> None:
    """Asked in one batch, in either order: the second is refused."""
    s = await stage(node)
    await close_all(s)
    complete = CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version)
    create = CreateWork(team_run_id=s.run.id, title="late", completion_criteria="done")
    requests: list[Request[Any]] = [complete, create] if first == "complete" else [create, complete]
    sent = [node.send(each) for each in requests]
    one, two = [await each.outcome() for each in sent]
    assert isinstance(one, TeamRun if first == "complete" else Work)
    assert isinstance(two, Refusal)
    assert two.code is (Code.TEAM_RUN_NOT_OPEN if first == "complete" else Code.WORK_NOT_CLOSED)


@pytest.mark.parametrize("phase", ["open", "active", "review"])
async def test_i16_a_run_is_not_completed_over_a_work_that_is_not_closed(node: InProcessNode, phase: str) -> None:
    s = await stage(node)
    make: dict[str, Callable[[], Awaitable[Work]]] = {
        "open": s.work,
        "active": lambda: s.started(s.bob),
        "review": lambda: s.submitted(s.bob),
    }
    work = await make[phase]()
    ask = CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version)
    refusal = await node.refused(ask)
    assert (refusal.code, refusal.about) == (Code.WORK_NOT_CLOSED, f"work/{work.id}")
    await works.cancelled(s, work)
    await close_all(s)
    await node.ok(ask)


def test_the_verbs_of_the_table_are_those_that_are_tried() -> None:
    """Every verb about one Work stands in the list that the tests go through."""
    named = {op.verb for op in OPERATIONS if op.noun == "work"}
    assert set(VERBS) == named - {"create", "graph", "list"}
