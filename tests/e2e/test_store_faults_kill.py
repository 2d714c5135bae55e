"""``kill -9`` of a real daemon under load: what was acknowledged is there, and nothing was done halfway or twice."""

from __future__ import annotations

import select
import signal

import pytest

from tests.support.crash import dice
from tests.support.daemon import Home
from tests.support.load import Accounts, Load

WRITERS = 32


@pytest.mark.parametrize("nth", [3, 20])
@pytest.mark.parametrize("point", ["after-unit", "before-commit", "after-commit"])
def test_at_each_boundary_of_a_commit(home: Home, point: str, nth: int) -> None:
    accounts = Accounts()
    daemon = home.start(env={"FIRM_CRASH_AT": f"{point}:{nth}"})
    with Load(daemon, writers=WRITERS) as load:
        assert daemon.wait() == -signal.SIGKILL
    assert load.refusals == set()
    daemon = home.start()
    with daemon.client() as client:
        assert client.ask("node.status")["answer"]["daemon_gen"] == 2
        done = accounts.settle(client, load)
    accounts.check(home.database)
    assert done, "somebody was waiting"
    assert any(done) is (point == "after-commit")


def _kill_at_random(home: Home, kills: int) -> None:
    moments, accounts, acknowledged = dice(), Accounts(), 0
    for turn in range(kills):
        daemon = home.start()
        with Load(daemon, writers=WRITERS) as load:
            load.until_answered(moments.randrange(1, 150))
            assert not select.select([daemon.fd], [], [], moments.uniform(0, 0.03))[0]
            daemon.kill()
        assert load.refusals == set()
        acknowledged += len(load.asked) - len(load.lost)
        daemon = home.start()
        with daemon.client() as client:
            assert client.ask("node.status")["answer"]["daemon_gen"] == 2 * turn + 2
            accounts.settle(client, load)
        accounts.check(home.database)
        assert daemon.stop() == 0
    assert acknowledged >= kills


def test_at_random_moments_under_32_writers(home: Home) -> None:
    _kill_at_random(home, 5)


@pytest.mark.soak
def test_at_200_random_moments_under_32_writers(home: Home) -> None:
    _kill_at_random(home, 200)
