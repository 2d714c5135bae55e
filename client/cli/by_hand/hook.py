"""``firm hook``: what an agent's own hook runs. It says what it was run for, and is silent; whatever goes wrong is one
line on standard error, and never the agent's business: the exit status is 0.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

from client import paths
from client.cli import ask as door
from client.cli import say
from client.cli.arguments import Field, Usage
from client.cli.index import CODES, DIGEST

_EVENT_HELP = "what it was run for; without it, the JSON on standard input says it"
_SEQUENCE_HELP = "a number that grows with each hook; a clock's when not given"
FIELDS: tuple[Field, ...] = (
    ("event", "--event", "str", False, "", None, False, "", _EVENT_HELP),
    ("turn", "--turn", "str", False, "", None, False, "", "the agent's own id of the turn"),
    ("sequence", "--sequence", "int", False, 0, None, False, "", _SEQUENCE_HELP),
)
#: What agents call these in the JSON that they write to a hook.
_EVENT, _TURN = "hook_event_name", "turn_id"
#: Seconds after which it gives up: an agent waits for its hooks.
_PATIENCE = 5.0
#: Bytes of that JSON; a prompt may stand in it.
_LARGEST = 16 * 1024 * 1024


def harmless(main: Callable[[list[str]], int], words: list[str]) -> int:
    """Run the command, and answer for whatever comes of it."""
    try:
        main(words)
    except Usage as wrong:
        _tell(f"{wrong.what}; {wrong.lifted_by}")
    except paths.NoHome:
        _tell("FIRM_HOME is relative, and the current folder has been removed")
    except KeyboardInterrupt:
        _tell("interrupted")
    except Exception as error:  # noqa: BLE001 — an agent that a bug of ours stops would be worse; it is told
        _tell(f"{type(error).__name__}: {error}")
    return 0


def run(_: str, given: dict[str, object]) -> int:
    sequence = int(str(given.get("sequence") or time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
    signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        body = {"event": given.get("event") or "", "turn": given.get("turn") or "", "sequence": sequence}
        if not body["event"]:
            body |= _said()
        answer, _welcome = door.once(DIGEST, "session.hook", body, "")
    except door.Unavailable as gone:
        _tell(str(gone))
    except ValueError as wrong:
        _tell(f"standard input says no hook: {wrong}")
    except TimeoutError:
        _tell(f"gave up after {_PATIENCE:.0f} s")
    else:
        refusal = answer.get("refusal")
        if isinstance(refusal, dict):
            meaning = CODES.get(str(refusal["code"]), (1, "never", "Refused."))[2]
            _tell(f"{meaning} [{refusal['code']}] To lift it: {refusal['lifted_by']}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


def _said() -> dict[str, object]:
    """Event and turn, out of what the agent wrote. Raises ``ValueError``."""
    import json

    stdin = sys.stdin.buffer if sys.stdin is not None else None
    if stdin is None or os.isatty(stdin.fileno()):
        raise ValueError("nothing stands there; give --event")
    found = json.loads(stdin.read(_LARGEST))
    event, turn = (found.get(_EVENT), found.get(_TURN)) if isinstance(found, dict) else (None, None)
    if not (event and isinstance(event, str)):
        raise ValueError(f"it has no {_EVENT!r}; give --event")
    return {"event": event, "turn": turn if isinstance(turn, str) else ""}


def _too_late(*_: object) -> None:
    raise TimeoutError


def _tell(text: str) -> None:
    say.err(f"firm hook: {' '.join(text.split())}")
