"""Removing what was said in a run: the same words in its place in rows, events and remembered replies.

Row and events are rewritten alike, field by field, so a row stays the fold of its events. No version moves: what
happened, when and by whom is what it was.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from client.protocol.codec import packb, unpackb
from client.protocol.ids import TeamRunId
from client.protocol.message import Message
from store import message as messages
from store import rows
from store.attempt import BINDINGS
from store.delegation import DELEGATIONS
from store.effect import EFFECTS
from store.keeper import Keeper
from store.message import MAIL
from store.sql import sql
from store.tx import Tx, Unreadable
from store.verdict import VERDICTS
from store.work import WORKS

#: What people and agents wrote, by the noun that has it. A title names its record. A receipt stays whole, since its
#: digest is in a chain; so the criteria, which it answers, and the summary, which is a copy of its own, stay too.
_SAID: tuple[tuple[Keeper[Any], tuple[str, ...]], ...] = (
    (BINDINGS, ("reason",)),
    (DELEGATIONS, ("context", "reason")),
    (EFFECTS, ("text",)),
    (MAIL, ("reason",)),
    (VERDICTS, ("reason",)),
    (WORKS, ("context", "reason")),
)
_SAID_IN_MESSAGES = ("body", "options")

_OF_RUN = {keeper.noun: keeper.select("WHERE team_run_id = :run_id ORDER BY n") for keeper, _ in _SAID}
_WRITE = {
    keeper.noun: sql(f"UPDATE {keeper.table} SET {', '.join(f'{f} = :{f}' for f in fields)} WHERE id = :id")  # noqa: S608
    for keeper, fields in _SAID
}
_EVENTS = sql("SELECT seq, run, body FROM events WHERE stream = :stream")
_WRITE_EVENT = sql("UPDATE events SET body = :body WHERE seq = :seq")
_WRITE_MESSAGE = sql("UPDATE messages SET body = :body, options = :options WHERE id = :id")
_REPLIES = sql("SELECT n, answer FROM replies WHERE instr(answer, CAST(:run AS BLOB)) > 0")
_WRITE_REPLY = sql("UPDATE replies SET answer = :answer WHERE n = :n")


def purge(tx: Tx, run_id: TeamRunId, words: str) -> None:
    """Put ``words`` wherever somebody said something in this run. Raises ``Unreadable``, and then nothing is kept: what
    does not decode cannot have been exported.
    """
    said: dict[str, tuple[str, ...]] = {}
    runs = {str(run_id)}  # a Work that came from another run has answers of there
    for keeper, fields in _SAID:
        for record in keeper.many(tx, _OF_RUN[keeper.noun], run_id=run_id):
            said[record.id] = fields
            plain = {name: getattr(record, name) for name in fields}
            tx.rows(_WRITE[keeper.noun], id=record.id, **_columns(_without(plain, fields, words)))
            runs |= _rewrite_events(tx, f"{keeper.noun}/{record.id}", fields, words)
    for message in messages.of_run(tx, run_id):
        said[message.id] = _SAID_IN_MESSAGES
        _rewrite_message(tx, message, words)
    for run in runs:
        for n, answer in tx.rows(_REPLIES, run=run):
            tx.rows(_WRITE_REPLY, n=n, answer=packb(_within(unpackb(answer), said, words)))


def _rewrite_message(tx: Tx, message: Message, words: str) -> None:
    plain = {name: getattr(message, name) for name in _SAID_IN_MESSAGES}
    tx.rows(_WRITE_MESSAGE, id=message.id, **_columns(_without(plain, _SAID_IN_MESSAGES, words)))


def _rewrite_events(tx: Tx, stream: str, fields: tuple[str, ...], words: str) -> set[str]:
    """The runs in which they happened."""
    runs: set[str] = set()
    for seq, run, body in tx.rows(_EVENTS, stream=stream):
        try:
            plain = unpackb(body)
        except ValueError as error:
            raise Unreadable(f"events/{seq}", str(error)[:200]) from error
        tx.rows(_WRITE_EVENT, seq=seq, body=packb(_without(plain, fields, words)))
        runs |= {run} if run else set()
    return runs


def _columns(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rows.column(value) for name, value in plain.items()}


def _without(plain: Mapping[str, Any], fields: tuple[str, ...], words: str) -> dict[str, Any]:
    return {name: _instead(value, words) if name in fields else value for name, value in plain.items()}


def _instead(value: object, words: str) -> object:
    """Where nothing was said, nothing is said to have been removed."""
    if isinstance(value, list):
        return [words] * len(typing.cast("list[object]", value))
    return words if value else value


def _within(value: object, said: Mapping[str, tuple[str, ...]], words: str) -> object:
    """An answer without what was said in the records that are in it, however deep."""
    if isinstance(value, list):
        return [_within(each, said, words) for each in typing.cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    inner = {name: _within(each, said, words) for name, each in typing.cast("dict[str, object]", value).items()}
    return _without(inner, said.get(str(inner.get("id")), ()), words)
