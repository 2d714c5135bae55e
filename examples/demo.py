"""``make demo``: the house, from start to stop, with proofs. Runs with agents come with later chapters.

Starts a node in a temporary folder, writes from eight sides at once, kills the daemon in the middle, and counts.
Needs no network, starts no model, leaves nothing behind. Ends with 1 when a proof fails.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import attrs

from client.cli.ask import Conversation, Unavailable, new_key
from client.cli.index import DIGEST

FIRM = str(Path(sys.executable).with_name("firm"))
WRITERS = 8
#: The daemon is killed when this many changes were acknowledged, in the middle of the others.
ENOUGH = 1500
PATIENCE = 60
_WRAP = textwrap.TextWrapper(
    80, initial_indent=" " * 5, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False
)


class Failed(Exception):
    """Something did not go as it must; the message says what."""


@attrs.frozen
class Node:
    """A FIRM_HOME, and the folder in which its person stands."""

    home: Path
    cwd: Path

    def run(self, *words: str, refused: bool = False) -> str:
        """Run ``firm`` and return what it said. Raises ``Failed`` when it ends otherwise than expected."""
        done = subprocess.run(
            [FIRM, *words],
            env={**os.environ, "FIRM_HOME": str(self.home)},
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if (done.returncode != 0) is not refused:
            raise Failed(f"firm {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return (done.stderr if refused else done.stdout).rstrip()

    def show(self, *words: str, refused: bool = False) -> None:
        """Run a command and let the reader see both the command and its answer."""
        print(f"   $ firm {' '.join(words)}")
        for line in self.run(*words, refused=refused).replace(str(self.home.parent), "$DEMO").splitlines():
            print(_WRAP.fill(line.strip()))

    def answer(self, *words: str) -> Any:  # noqa: ANN401 — whatever the operation answers
        return json.loads(self.run(*words, "--json"))["answer"]

    def pid(self) -> int:
        return int(json.loads(self.run("node", "status", "--json"))["pid"])

    def agents(self) -> list[str]:
        """The name of every agent, page by page."""
        names: list[str] = []
        cursor: list[str] = []
        while True:
            page = self.answer("agent", "list", "--limit", "500", *cursor)
            names += [item["name"] for item in page["items"]]
            if page["next"] is None:
                return names
            cursor = ["--cursor", page["next"]]


@attrs.define
class Writer:
    """One client that creates agents as fast as it is answered. ``asked`` is what it has no answer to yet."""

    number: int
    tally: Tally
    acknowledged: list[str] = attrs.Factory(list)
    asked: tuple[str, str] | None = None

    def write(self, node: Node) -> None:
        """Until the daemon goes away."""
        try:
            conversation = Conversation(str(node.home), DIGEST)
            while True:
                self.asked = f"w{self.number}-{len(self.acknowledged)}", new_key()
                conversation.ask("agent.create", {"name": self.asked[0]}, self.asked[1])["answer"]
                self.acknowledged.append(self.asked[0])
                self.tally.one_more()
        except Unavailable:
            return

    def ask_again(self, node: Node) -> bool:
        """Ask the last question again, under its key. Whether it had been done."""
        assert self.asked is not None
        name, key = self.asked
        answer = json.loads(node.run("agent", "create", name, "--idempotency-key", key, "--json"))
        self.acknowledged.append(name)
        return bool(answer["replayed"])


class Tally:
    """How many changes were acknowledged, over all writers."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def one_more(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def until(self, count: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= count, PATIENCE):
                raise Failed(f"only {self.count} changes were acknowledged in {PATIENCE} s")


def proof(what: str, *, holds: bool) -> None:
    print(f"   {'proven' if holds else 'NOT TRUE'}: {what}")
    if not holds:
        raise Failed(what)


def step(title: str) -> None:
    print(f"\n{title}")


def team(node: Node) -> None:
    step("2. Agents, a team with its Host, an invitation")
    for name in ("kiwi", "emu"):
        print(f"   $ firm agent create {name}")
        node.run("agent", "create", name)
    print("   $ firm team create core --host-agent-id kiwi")
    node.run("team", "create", "core", "--host-agent-id", "kiwi")
    print("   $ firm membership invite core --agent-member-id emu")
    invited = node.answer("membership", "invite", "core", "--agent-member-id", "emu")
    print(f"   $ firm membership join {invited['id']} --expected-version 1")
    node.run("membership", "join", invited["id"], "--expected-version", "1")
    print("   $ firm team show core")
    print("\n".join(f"     {line}" for line in node.run("team", "show", "core").splitlines()[-3:]))


def refusal(node: Node) -> None:
    step("3. A refusal says what lifts it")
    host = node.answer("team", "show", "core")["members"][0]["membership"]["id"]
    node.show("membership", "leave", host, "--expected-version", "1", refused=True)
    print("   $ firm team hand-over core --to-agent-id emu --expected-version 1")
    node.run("team", "hand-over", "core", "--to-agent-id", "emu", "--expected-version", "1")
    print(f"   $ firm membership leave {host} --expected-version 2")
    left = node.answer("membership", "leave", host, "--expected-version", "2")
    proof("after what was advised, kiwi could leave", holds=left["state"] == "inactive")


def crash(node: Node) -> list[Writer]:
    step(f"4. {WRITERS} writers at once, and kill -9 in the middle")
    tally = Tally()
    writers = [Writer(number, tally) for number in range(WRITERS)]
    threads = [threading.Thread(target=writer.write, args=(node,), daemon=True) for writer in writers]
    pid = node.pid()
    began = time.monotonic()
    for thread in threads:
        thread.start()
    tally.until(ENOUGH)
    kill(pid)
    seconds = time.monotonic() - began
    for thread in threads:
        thread.join(PATIENCE)
    print(f"   $ kill -9 {pid}")
    print(f"     {tally.count} changes were acknowledged in {seconds:.1f} s, each after a commit to disk")
    node.show("agent", "list", refused=True)
    return writers


def kill(pid: int) -> None:
    """Kill the daemon and wait until it is gone."""
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        if not select.select([process], [], [], PATIENCE)[0]:
            raise Failed(f"{pid} lives after kill -9")
    finally:
        os.close(process)


def recovery(node: Node, writers: list[Writer]) -> None:
    step("5. The next daemon has everything, and nothing twice")
    node.show("node", "start")
    acknowledged = [name for writer in writers for name in writer.acknowledged]
    kept = [name for name in node.agents() if name.startswith("w")]
    missing = set(acknowledged) - set(kept)
    proof(f"{len(acknowledged)} acknowledged, {len(missing)} of them missing", holds=not missing)
    replayed = sum(writer.ask_again(node) for writer in writers)
    print(f"   {len(writers)} lost answers asked for again with their keys: {replayed} had been done already")
    acknowledged = [name for writer in writers for name in writer.acknowledged]
    kept = [name for name in node.agents() if name.startswith("w")]
    twice = len(kept) - len(set(kept))
    proof(f"{len(kept)} asked, {len(set(kept))} there, {twice} twice", holds=sorted(kept) == sorted(acknowledged))


def backup(node: Node) -> None:
    step("6. A backup while it runs")
    node.show("node", "backup", "copy.db")


def end(node: Node) -> None:
    step("7. The end")
    node.show("node", "stop")
    left = processes(node)
    sockets = list((node.home / "run").iterdir())
    proof(f"{len(left)} processes and {len(sockets)} sockets are left", holds=not left and not sockets)


def processes(node: Node) -> list[int]:
    """Whatever runs on this machine with our FIRM_HOME in its environment."""
    found: list[int] = []
    mark = f"FIRM_HOME={node.home}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # not ours to read, or gone
    return found


def main() -> int:
    began = time.monotonic()
    print("firm, the house: one daemon keeps the teams of a machine. Kill it, and nothing")
    print("acknowledged is lost. (Runs with agents come with later chapters.)")
    with tempfile.TemporaryDirectory(prefix="firm-demo-") as root:
        node = Node(Path(root) / "home", Path(root) / "project")
        node.cwd.mkdir()
        try:
            step(f"1. A node in a temporary folder, DEMO={root}")
            node.show("node", "start")
            team(node)
            refusal(node)
            recovery(node, crash(node))
            backup(node)
            end(node)
        except Failed as why:
            print(f"\nThe demo failed: {why}", file=sys.stderr)
            return 1
        finally:
            for pid in processes(node):
                os.kill(pid, signal.SIGKILL)
    proof(f"the folder is gone; all of this took {time.monotonic() - began:.1f} s", holds=not Path(root).exists())
    return 0


if __name__ == "__main__":
    sys.exit(main())
