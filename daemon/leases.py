"""Leases of supervisors that run in processes of their own: nobody else takes such a run while its holder may act.

They end with the daemon that gave them, and so does their holders' trust in themselves: its end is the end of their
connections. The clock is one for all processes of this machine, and stands still while it sleeps. So a holder, who
counts from before it asked, stops earlier than its lease ends here.
"""

from __future__ import annotations

import time

import attrs

from client.protocol.ids import TeamRunId


@attrs.define
class Leases:
    """Until when, by run and supervisor generation. Asked and told by units of work, one after another."""

    _until: dict[TeamRunId, tuple[int, float]] = attrs.Factory(dict)

    def renew(self, run_id: TeamRunId, sup_gen: int, milliseconds: int) -> None:
        self._until[run_id] = sup_gen, time.monotonic() + milliseconds / 1000

    def held(self, run_id: TeamRunId, sup_gen: int) -> bool:
        """Whether the supervisor of that generation may still act."""
        of, _ = self._until.get(run_id, (0, 0.0))
        return of == sup_gen and self.left(run_id) > 0

    def left(self, run_id: TeamRunId) -> float:
        """Seconds for which nobody else takes that run."""
        _, until = self._until.get(run_id, (0, 0.0))
        return max(0.0, until - time.monotonic())
