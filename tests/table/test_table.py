"""What must hold for every row of the operation table, for every code and for every statement."""

from __future__ import annotations

import ast
import contextlib
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import store
from client.cli.main import ALIASES, BY_HAND
from client.protocol.frames import MAX_REQUEST
from client.protocol.operation import MEMBERS, OPERATOR, SUPERVISOR, Effect, Operation, Plane, row
from client.protocol.refusals import COMMON, HELLO, LAUNCHES, ROWS, WRITING, Code, Retry
from client.protocol.shape import shapes
from client.protocol.table import BY_NAME, BY_REQUEST, OPERATIONS
from daemon.handlers import GUARDS, HANDLERS
from daemon.kernel.attempt import MOST_BODY
from daemon.kernel.message import MOST_QUEUED
from daemon.operations.work_plan import MOST_OPEN
from daemon.outside import LOOKS
from daemon.socket import MAX_WAITS
from store import migrate
from store.sql import REGISTERED, Sql
from tests.support.node import assembled

ROOT = Path(__file__).parents[2]
for module in pkgutil.iter_modules(store.__path__):
    importlib.import_module(f"store.{module.name}")  # so that every statement is registered

#: What a request is about stands first even where it may be left out: then the caller's own is meant.
OWN_WHEN_EMPTY = {"team_run_id", "work_id"}
#: Writes that several planes may ask for without a guard, and why none is needed.
UNGUARDED = {
    "attention.ack": "it is looked for among what the caller itself has to look at",
    "message.ack": "it is looked for in the caller's own mail",
    "message.respond": "it is looked for in the caller's own mail",
    "session.claims": "it is looked for among the sessions of the caller's run; the operator sees all",
}

every_operation = pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: str(op.name))


def test_every_operation_is_answered_by_one_thing_of_its_effect(tmp_path: Path) -> None:
    with assembled(tmp_path / "home") as node:
        answers, streams = node.live.answers, node.live.streams
    by_effect = {
        Effect.READ: HANDLERS,
        Effect.SCAN: HANDLERS,
        Effect.WRITE: HANDLERS,
        Effect.LIVE: answers,
        Effect.STREAM: streams,
    }
    for op in OPERATIONS:
        answering = [place for place in (HANDLERS, answers, streams) if op.name in place]
        assert answering == [by_effect[op.effect]], op.name
    assert {*HANDLERS, *answers, *streams} == set(BY_NAME)


def test_names_are_sorted_and_unique() -> None:
    names = [op.name for op in OPERATIONS]
    assert names == sorted(set(names))
    assert len(BY_REQUEST) == len(BY_NAME) == len(OPERATIONS)


@every_operation
def test_the_row_of_a_request_stands_in_the_module_of_its_noun(op: Operation) -> None:
    assert row(op.request) is op


@every_operation
def test_every_operation_can_be_named_on_every_surface(op: Operation) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*", op.name)
    assert op.request.__module__.startswith("client.protocol.")
    assert op.summary.endswith(".")
    assert "\n" not in op.summary
    assert op.planes <= set(Plane)
    # What only a session's own process, or only the supervisor of a run, can say is not the operator's to say.
    assert Plane.OPERATOR in op.planes or op.planes in {MEMBERS, SUPERVISOR}
    assert isinstance(op.response, type)


@every_operation
def test_every_field_has_a_shape_and_help(op: Operation) -> None:
    names = [shape.name for shape in shapes(op.request)]
    assert len(set(names)) == len(names)
    for shape in shapes(op.request):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", shape.name)
        assert shape.help.strip() == shape.help
        assert shape.help.isprintable()
        assert shape.help
        assert not shape.help.endswith(".")
    required = [shape.required for shape in shapes(op.request)]
    if names and names[0] in OWN_WHEN_EMPTY and not required[0]:
        required = required[1:]
    assert required == sorted(required, reverse=True), "what is required stands first"


@every_operation
def test_every_text_and_list_of_a_request_is_bounded(op: Operation) -> None:
    """Else its only limit is that of a frame."""
    for shape in shapes(op.request):
        if shape.many or (shape.kind is str):
            assert shape.bounds.most is not None, shape.name


def test_the_limits_are_those_that_were_promised() -> None:
    """That each refuses what is beyond it is shown where it refuses: here they are what they are."""
    most = {(op.name, s.name): s.bounds.most for op in OPERATIONS for s in shapes(op.request)}
    kib = 1024
    limits = [MAX_REQUEST, MAX_WAITS, MOST_QUEUED, MOST_OPEN, MOST_BODY]
    assert limits == [256 * kib, 100, 1_000, 10_000, 32 * kib]
    for write in ("work.create", "work.update"):
        assert (most[write, "title"], most[write, "context"]) == (200, 64 * kib)
    assert {
        most["work.create", "prerequisite_work_ids"],
        most["work.replace-dependencies", "prerequisite_work_ids"],
    } == {128}
    bodies = {limit for (name, field), limit in most.items() if name.startswith("message.") and field == "body"}
    assert bodies == {32 * kib}
    del most["message.receive", "limit"]  # whole letters, not a page to look at
    assert {limit for (_, field), limit in most.items() if field == "limit"} == {500}


@every_operation
def test_no_operation_lists_what_all_may_refuse_with(op: Operation) -> None:
    assert len(set(op.refuses)) == len(op.refuses)
    assert not set(op.refuses) & {*COMMON, *(WRITING if op.effect is Effect.WRITE else ())}


def test_guards_and_folders_belong_to_writes() -> None:
    writes = {op.name for op in OPERATIONS if op.effect is Effect.WRITE}
    assert set(GUARDS) <= writes
    assert set(LOOKS) <= writes
    # A session speaks for itself only and a supervisor for its run only: their verbs look among what is theirs.
    alone = (OPERATOR, MEMBERS, SUPERVISOR)
    shared = {op.name for op in OPERATIONS if op.name in writes and op.planes not in alone}
    assert set(GUARDS) == shared - set(UNGUARDED), "a write that more than one plane may ask for says who of them"
    assert set(UNGUARDED) <= shared


def test_every_code_has_a_row() -> None:
    assert list(ROWS) == list(Code) == sorted(Code)
    assert all(code.name == code.value for code in Code)


@pytest.mark.parametrize("code", Code)
def test_every_row_of_a_code_is_complete(code: Code) -> None:
    row = ROWS[code]
    assert row.meaning.endswith(".")
    assert 400 <= row.http < 600
    assert row.exit in {1, 2, 3, 5}
    if row.exit == 3:
        assert row.retry is Retry.SAME
    if row.exit == 2:
        assert row.retry is Retry.NEVER


def test_every_code_is_refused_with_by_somebody() -> None:
    used = {*COMMON, *WRITING, *HELLO, *LAUNCHES}.union(*(op.refuses for op in OPERATIONS))
    assert used == set(Code)


def _calls(root: Path, name: str) -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(root.rglob("*.py")):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id == name:
                yield f"{path.relative_to(ROOT)}:{found.lineno}", found


def test_every_refusal_says_what_lifts_it() -> None:
    folders = ("client", "daemon", "store", "supervisor")
    refusals = [each for folder in folders for each in _calls(ROOT / folder, "Refusal")]
    assert refusals
    silent = [where for where, call in refusals if not {"code", "about", "lifted_by"} <= {k.arg for k in call.keywords}]
    assert silent == []


def test_every_code_is_made_by_somebody() -> None:
    """A code that nothing returns is a promise that nothing keeps."""
    text = "\n".join(
        path.read_text()
        for folder in ("daemon", "store", "supervisor", "client/protocol/codec.py", "client/protocol/frames.py")
        for path in ([ROOT / folder] if folder.endswith(".py") else sorted((ROOT / folder).rglob("*.py")))
    )
    assert [code for code in Code if not re.search(rf"Code\.{code}\b", text)] == []


def test_every_outcome_has_a_test() -> None:
    found: list[str] = []
    for path in (ROOT / "tests" / "operations").glob("test_*.py"):
        tree = ast.parse(path.read_text())
        found += [each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    wanted = {
        f"test_{op.noun}_{op.verb}_{outcome}".replace("-", "_")
        for op in OPERATIONS
        for outcome in ("ok", *(code.lower() for code in op.refuses))
    }
    assert sorted(wanted - set(found)) == []


def test_every_alias_and_command_by_hand_is_near_the_table() -> None:
    assert {f"{noun}.{verb}" for noun, verb in ALIASES.values()} <= set(BY_NAME)
    nouns = {op.noun for op in OPERATIONS}
    assert {noun for noun, verb in BY_HAND if verb} <= nouns
    assert not set(ALIASES) & nouns


@pytest.fixture(scope="module")
def migrated() -> Iterator[apsw.Connection]:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.migrate(connection)
        yield connection


@pytest.mark.parametrize("statement", REGISTERED, ids=lambda each: " ".join(each.text.split())[:60])
def test_every_statement_compiles(migrated: apsw.Connection, statement: Sql) -> None:
    names = set(re.findall(r":(\w+)", statement.text))
    migrated.execute(f"EXPLAIN {statement.text}", dict.fromkeys(names)).fetchall()


def test_sql_is_spoken_only_in_registered_statements() -> None:
    """Outside ``sql(…)`` no string of the product begins like a statement; migrations run before there are any."""
    statement = re.compile(r"(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE|DROP|ALTER|REPLACE|VACUUM) ")
    odd: list[str] = []
    for folder in ("client", "daemon", "store"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            registered = {
                id(part)
                for call in ast.walk(tree)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "sql"
                for part in ast.walk(call)
            }
            for part in ast.walk(tree):
                if not (isinstance(part, ast.Constant) and isinstance(part.value, str)):
                    continue
                if statement.match(part.value.strip()) and id(part) not in registered:
                    odd.append(f"{path.relative_to(ROOT)}:{part.lineno}")
    assert [where for where in odd if not where.startswith("store/migrate.py:")] == []
